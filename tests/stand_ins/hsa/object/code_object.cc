#include "tests/stand_ins/hsa/object/code_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/stand_ins/hsa/object/message_pack.h"

namespace kiln::stand_ins::hsa {
namespace {

constexpr uint16_t kMachineAmdgpu = 224;
constexpr uint8_t kOsAmdhsa = 64;
constexpr uint8_t kAbiVersion5 = 3;
constexpr uint32_t kNoteMetadata = 32;
constexpr uint64_t kEntryAlignment = 256;

// The processor in the lowest byte of the header's flags.
struct MachineRow {
  uint32_t flags;
  const char* processor;
};
constexpr MachineRow kMachines[] = {
    {0x3f, "gfx90a"}, {0x4c, "gfx942"}, {0x36, "gfx1030"}, {0x41, "gfx1100"}, {0x4e, "gfx1201"}};

struct Descriptor {
  uint32_t group_bytes;
  uint32_t private_bytes;
  uint32_t argument_bytes;
  uint32_t reserved0;
  int64_t entry_offset;
  uint8_t reserved1[20];
  uint32_t resources3;
  uint32_t resources1;
  uint32_t resources2;
  uint16_t properties;
  uint16_t preload;
  uint32_t reserved2;
};
static_assert(sizeof(Descriptor) == 64);

// Bits of Descriptor::properties.
constexpr uint16_t kDispatchPointer = 1 << 1;
constexpr uint16_t kQueuePointer = 1 << 2;
constexpr uint16_t kDispatchId = 1 << 4;
constexpr uint16_t kWave32 = 1 << 10;
constexpr uint16_t kDynamicStack = 1 << 11;
// In resources1, from bit 12 on: rounding of float32 and of other types, 0 for nearest; denormals
// of float32 and of other types, 3 to keep all.
constexpr int kFloatModeShift = 12;
constexpr uint32_t kFloatMode = 0xf0;

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("the code object ", parts...));
}

class ObjectReader {
 public:
  explicit ObjectReader(std::string_view file) : file_(file) {}

  absl::StatusOr<CodeObject> Read() {
    for (auto step :
         {&ObjectReader::ReadHeader, &ObjectReader::ReadSections, &ObjectReader::ReadSymbols,
          &ObjectReader::ReadDescriptor, &ObjectReader::ReadKernelMetadata}) {
      if (absl::Status status = (this->*step)(); !status.ok()) return status;
    }
    return object_;
  }

 private:
  // Reads `count` objects at an offset in the file.
  template <typename Thing>
  bool Get(uint64_t offset, uint64_t count, std::vector<Thing>* things) const {
    if (offset > file_.size() || count > (file_.size() - offset) / sizeof(Thing)) return false;
    things->resize(count);
    if (count > 0) std::memcpy(things->data(), file_.data() + offset, count * sizeof(Thing));
    return true;
  }

  absl::Status ReadHeader() {
    std::vector<Elf64_Ehdr> header;
    if (!Get(0, 1, &header) || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0)
      return Wrong("is no ELF file");
    header_ = header[0];
    const uint8_t* ident = header_.e_ident;
    if (ident[EI_CLASS] != ELFCLASS64 || header_.e_machine != kMachineAmdgpu ||
        header_.e_type != ET_DYN)
      return Wrong("is no shared object for AMD's GPUs");
    if (ident[EI_OSABI] != kOsAmdhsa || ident[EI_ABIVERSION] != kAbiVersion5)
      return Wrong("has ABI ", ident[EI_OSABI], " of version ", ident[EI_ABIVERSION]);
    for (const MachineRow& row : kMachines) {
      if ((header_.e_flags & 0xff) == row.flags) object_.processor = row.processor;
    }
    if (object_.processor.empty()) return Wrong("is for an unknown machine ", header_.e_flags);
    if (!Get(header_.e_phoff, header_.e_phnum, &segments_)) return Wrong("has cut off segments");
    for (const Elf64_Phdr& segment : segments_) {
      const bool whole =
          segment.p_offset <= file_.size() && segment.p_filesz <= file_.size() - segment.p_offset;
      if (!whole) return Wrong("is cut short");
    }
    return absl::OkStatus();
  }

  absl::Status ReadSections() {
    std::vector<Elf64_Shdr> sections;
    if (!Get(header_.e_shoff, header_.e_shnum, &sections)) return Wrong("is cut short");
    for (const Elf64_Shdr& section : sections) {
      // A loader must have no relocations to apply.
      const bool relocates = section.sh_type == SHT_RELA || section.sh_type == SHT_REL;
      if (relocates && section.sh_size > 0) return Wrong("has relocations");
      if (section.sh_type != SHT_DYNSYM) continue;
      if (section.sh_link >= sections.size()) return Wrong("has symbols without names");
      const Elf64_Shdr& names = sections[section.sh_link];
      if (!Get(section.sh_offset, section.sh_size / sizeof(Elf64_Sym), &symbols_) ||
          !Get(names.sh_offset, names.sh_size, &names_)) {
        return Wrong("is cut short");
      }
    }
    return absl::OkStatus();
  }

  std::string NameOf(const Elf64_Sym& symbol) const {
    std::string name;
    for (size_t i = symbol.st_name; i < names_.size() && names_[i] != 0; ++i)
      name.push_back(names_[i]);
    return name;
  }

  absl::Status ReadSymbols() {
    for (const Elf64_Sym& symbol : symbols_) {
      const std::string name = NameOf(symbol);
      if (symbol.st_shndx == SHN_UNDEF) {
        if (!name.empty()) return Wrong("has an undefined symbol ", name);
        continue;
      }
      if (!absl::EndsWith(name, ".kd")) continue;
      if (!object_.symbol.empty()) return Wrong("has several kernels");
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_size != sizeof(Descriptor) ||
          symbol.st_value % alignof(Descriptor) != 0) {
        return Wrong("has no descriptor at ", name);
      }
      object_.symbol = name;
      descriptor_at_ = symbol.st_value;
    }
    if (object_.symbol.empty()) return Wrong("has no kernel");
    for (const Elf64_Sym& symbol : symbols_) {
      if (absl::StrCat(NameOf(symbol), ".kd") == object_.symbol) entry_ = symbol.st_value;
    }
    return absl::OkStatus();
  }

  bool GetLoaded(uint64_t address, Descriptor* descriptor) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
      const uint64_t within = address - segment.p_vaddr;
      if (within + sizeof(Descriptor) > segment.p_filesz) continue;
      std::memcpy(descriptor, file_.data() + segment.p_offset + within, sizeof(Descriptor));
      return true;
    }
    return false;
  }

  bool IsExecutable(uint64_t address) const {
    return std::any_of(segments_.begin(), segments_.end(), [&](const Elf64_Phdr& segment) {
      return segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 &&
             address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz;
    });
  }

  absl::Status ReadDescriptor() {
    Descriptor descriptor = {};
    if (!GetLoaded(descriptor_at_, &descriptor)) return Wrong("does not load its descriptor");
    const uint64_t entry = descriptor_at_ + static_cast<uint64_t>(descriptor.entry_offset);
    if (entry != entry_ || entry % kEntryAlignment != 0 || !IsExecutable(entry))
      return Wrong("has a descriptor of another function");
    const bool reserved =
        descriptor.reserved0 != 0 || descriptor.reserved2 != 0 ||
        std::any_of(std::begin(descriptor.reserved1), std::end(descriptor.reserved1),
                    [](uint8_t byte) { return byte != 0; });
    if (reserved) return Wrong("uses reserved bytes of the descriptor");
    if ((descriptor.resources1 >> kFloatModeShift & 0xff) != kFloatMode)
      return Wrong("rounds or flushes");
    if ((descriptor.properties & (kDispatchPointer | kQueuePointer | kDispatchId)) != 0)
      return Wrong("wants its packet or queue");
    if ((descriptor.properties & kDynamicStack) != 0) return Wrong("has a stack of unknown size");
    object_.group_bytes = descriptor.group_bytes;
    object_.private_bytes = descriptor.private_bytes;
    object_.argument_bytes = descriptor.argument_bytes;
    object_.wave = (descriptor.properties & kWave32) != 0 ? 32 : 64;
    return absl::OkStatus();
  }

  // Reads the note, whose name and contents are padded to multiples of 4 bytes.
  absl::StatusOr<PackedValue> ReadNote() const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_NOTE) continue;
      std::vector<Elf64_Nhdr> note;
      if (segment.p_filesz < sizeof(Elf64_Nhdr) || !Get(segment.p_offset, 1, &note)) continue;
      const uint64_t begin = sizeof(Elf64_Nhdr) + (note[0].n_namesz + 3) / 4 * 4;
      if (note[0].n_type != kNoteMetadata || begin + note[0].n_descsz > segment.p_filesz) continue;
      if (file_.substr(segment.p_offset + sizeof(Elf64_Nhdr), 6) != "AMDGPU") continue;
      return ReadMessagePack(file_.substr(segment.p_offset + begin, note[0].n_descsz));
    }
    return Wrong("has no metadata");
  }

  absl::Status ReadKernelMetadata() {
    const auto metadata = ReadNote();
    if (!metadata.ok()) return metadata.status();
    const auto& version = metadata->At("amdhsa.version").Members();
    if (version.size() != 2 || version[0].Number() != 1 || version[1].Number() != 2)
      return Wrong("has metadata of another version");
    const std::string target = metadata->At("amdhsa.target").Text();
    const std::string wanted = absl::StrCat("amdgcn-amd-amdhsa--", object_.processor);
    if (target != wanted && !absl::StartsWith(target, absl::StrCat(wanted, ":")))
      return Wrong("has metadata for ", target);
    const auto& kernels = metadata->At("amdhsa.kernels").Members();
    if (kernels.size() != 1) return Wrong("has metadata of ", kernels.size(), " kernels");
    const PackedValue& kernel = kernels[0];
    const struct {
      const char* key;
      int64_t wanted;
    } numbers[] = {{".group_segment_fixed_size", object_.group_bytes},
                   {".private_segment_fixed_size", object_.private_bytes},
                   {".kernarg_segment_size", object_.argument_bytes},
                   {".kernarg_segment_align", 8},
                   {".wavefront_size", object_.wave}};
    for (const auto& row : numbers) {
      if (kernel.At(row.key).Number() != row.wanted)
        return Wrong("has ", row.key, " ", kernel.At(row.key).Number(), " beside ", row.wanted);
    }
    if (kernel.At(".symbol").Text() != object_.symbol)
      return Wrong("has metadata of ", kernel.At(".symbol").Text());
    object_.threads_max = static_cast<int>(kernel.At(".max_flat_workgroup_size").Number());
    const auto& threads = kernel.At(".reqd_workgroup_size").Members();
    if (threads.size() == 3) object_.threads = static_cast<int>(threads[0].Number());
    return CheckArguments(kernel.At(".args").Members());
  }

  absl::Status CheckArguments(const PackedValue::List& arguments) {
    int64_t offset = 0;
    for (const PackedValue& argument : arguments) {
      const std::string kind = argument.At(".value_kind").Text();
      if (argument.At(".offset").Number() != offset || argument.At(".size").Number() != 8 ||
          kind != (offset == 0 ? "global_buffer" : kind) || absl::StartsWith(kind, "hidden"))
        return Wrong("has an argument ", kind, " at ", argument.At(".offset").Number());
      object_.pointers.push_back(kind == "global_buffer");
      offset += 8;
    }
    if (offset != object_.argument_bytes) return Wrong("has arguments of ", offset, " bytes");
    return absl::OkStatus();
  }

  const std::string_view file_;
  CodeObject object_;
  Elf64_Ehdr header_ = {};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<char> names_;
  uint64_t descriptor_at_ = 0;
  uint64_t entry_ = 0;
};

}  // namespace

absl::StatusOr<CodeObject> ReadCodeObject(std::string_view file) {
  return ObjectReader(file).Read();
}

}  // namespace kiln::stand_ins::hsa
