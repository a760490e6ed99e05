#include "compiler/codegen/x86/flatten.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace kiln::codegen {
namespace {

constexpr int64_t kSectionAlignment = 64;
constexpr int64_t kNotPlaced = -1;

// Reads tables of an object that LLVM has just written in this process, so offsets are trusted.
class Object {
 public:
  explicit Object(std::string_view bytes) : bytes_(bytes) {
    std::memcpy(&header_, bytes.data(), sizeof(header_));
    sections_.resize(header_.e_shnum);
    std::memcpy(sections_.data(), bytes.data() + header_.e_shoff,
                sizeof(Elf64_Shdr) * sections_.size());
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }

  template <typename Entry>
  std::vector<Entry> Table(const Elf64_Shdr& section) const {
    std::vector<Entry> entries(section.sh_size / sizeof(Entry));
    std::memcpy(entries.data(), bytes_.data() + section.sh_offset, entries.size() * sizeof(Entry));
    return entries;
  }

  const char* String(const Elf64_Shdr& strings, uint32_t offset) const {
    return bytes_.data() + strings.sh_offset + offset;
  }
  const char* SectionName(const Elf64_Shdr& section) const {
    return String(sections_[header_.e_shstrndx], section.sh_name);
  }
  std::string_view Content(const Elf64_Shdr& section) const {
    return bytes_.substr(section.sh_offset, section.sh_size);
  }

 private:
  std::string_view bytes_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Shdr> sections_;
};

class Flattener {
 public:
  explicit Flattener(std::string_view bytes)
      : object_(bytes), placed_at_(object_.sections().size(), kNotPlaced) {
    for (const Elf64_Shdr& section : object_.sections()) {
      if (section.sh_type != SHT_SYMTAB) continue;
      symbols_ = object_.Table<Elf64_Sym>(section);
      symbol_names_ = &object_.sections()[section.sh_link];
    }
  }

  absl::StatusOr<Blob> Run(const std::string& symbol) {
    const Elf64_Sym* entry = FindFunction(symbol);
    if (entry == nullptr) {
      return absl::InternalError(absl::StrCat("the module defines no function \"", symbol, "\""));
    }
    // The section's offset becomes Blob::entry.
    if (entry->st_value != 0) {
      return absl::InternalError(
          absl::StrCat("the function \"", symbol, "\" does not start its section"));
    }
    PlaceAll(entry->st_shndx);
    for (const Elf64_Shdr& section : object_.sections()) {
      // Sections that were left out need no relocation.
      if (section.sh_type != SHT_RELA || placed_at_[section.sh_info] == kNotPlaced) continue;
      if (absl::Status status = Relocate(section); !status.ok()) return status;
    }
    return Blob{std::move(code_), placed_at_[entry->st_shndx]};
  }

 private:
  const Elf64_Sym* FindFunction(const std::string& name) const {
    for (const Elf64_Sym& symbol : symbols_) {
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
          object_.String(*symbol_names_, symbol.st_name) == name) {
        return &symbol;
      }
    }
    return nullptr;
  }

  // Places constants, then the entry's section, then the other functions.
  void PlaceAll(int entry_section) {
    const auto& sections = object_.sections();
    auto place_if = [&](bool executable) {
      for (size_t i = 0; i < sections.size(); ++i) {
        const bool is_executable = (sections[i].sh_flags & SHF_EXECINSTR) != 0;
        if (is_executable == executable && placed_at_[i] == kNotPlaced && Belongs(sections[i]))
          Place(i);
      }
    };
    place_if(false);
    Place(entry_section);
    place_if(true);
  }

  // Unwind tables are left out: generated code throws nothing and calls nothing that does.
  bool Belongs(const Elf64_Shdr& section) const {
    return section.sh_type == SHT_PROGBITS && section.sh_size > 0 &&
           (section.sh_flags & SHF_ALLOC) != 0 && (section.sh_flags & (SHF_WRITE | SHF_TLS)) == 0 &&
           std::string_view(object_.SectionName(section)) != ".eh_frame";
  }

  void Place(int index) {
    const Elf64_Shdr& section = object_.sections()[index];
    const int64_t alignment = std::max<int64_t>(kSectionAlignment, section.sh_addralign);
    code_.resize((code_.size() + alignment - 1) / alignment * alignment);
    placed_at_[index] = code_.size();
    code_.append(object_.Content(section));
  }

  absl::Status Relocate(const Elf64_Shdr& section) {
    const int64_t base = placed_at_[section.sh_info];
    for (const Elf64_Rela& relocation : object_.Table<Elf64_Rela>(section)) {
      if (absl::Status status = Apply(relocation, base); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Apply(const Elf64_Rela& relocation, int64_t base) {
    const Elf64_Sym& symbol = symbols_[ELF64_R_SYM(relocation.r_info)];
    if (symbol.st_shndx == SHN_UNDEF) {
      return absl::InternalError(
          absl::StrCat("generated code refers to the external symbol \"", NameOf(symbol), "\""));
    }
    if (symbol.st_shndx >= placed_at_.size() || placed_at_[symbol.st_shndx] == kNotPlaced) {
      return absl::InternalError(absl::StrCat("generated code refers to \"", NameOf(symbol),
                                              "\", which is not constant data or code"));
    }
    const int64_t place = base + relocation.r_offset;
    const int64_t value =
        placed_at_[symbol.st_shndx] + symbol.st_value + relocation.r_addend - place;
    switch (ELF64_R_TYPE(relocation.r_info)) {
      case R_X86_64_PC32:
      // A call within the blob needs no linkage table.
      case R_X86_64_PLT32:
        return Write(place, static_cast<int32_t>(value), value);
      case R_X86_64_PC64:
        return Write(place, value, value);
      default:
        return absl::InternalError(absl::StrCat("generated code needs a relocation of type ",
                                                ELF64_R_TYPE(relocation.r_info), " against \"",
                                                NameOf(symbol), "\""));
    }
  }

  template <typename Field>
  absl::Status Write(int64_t place, Field field, int64_t value) {
    if (field != value)
      return absl::InternalError("generated code is too large for 32-bit displacements");
    std::memcpy(code_.data() + place, &field, sizeof(field));
    return absl::OkStatus();
  }

  // Section symbols have no name.
  std::string NameOf(const Elf64_Sym& symbol) const {
    if (ELF64_ST_TYPE(symbol.st_info) == STT_SECTION &&
        symbol.st_shndx < object_.sections().size()) {
      return object_.SectionName(object_.sections()[symbol.st_shndx]);
    }
    return object_.String(*symbol_names_, symbol.st_name);
  }

  Object object_;
  std::vector<int64_t> placed_at_;  // by section index: offset in code_
  std::vector<Elf64_Sym> symbols_;
  const Elf64_Shdr* symbol_names_ = nullptr;
  std::string code_;
};

}  // namespace

absl::StatusOr<Blob> FlattenObject(std::string_view object, const std::string& symbol) {
  if (object.size() < sizeof(Elf64_Ehdr) || object.substr(0, SELFMAG) != ELFMAG) {
    return absl::InternalError("LLVM wrote no ELF object");
  }
  return Flattener(object).Run(symbol);
}

}  // namespace kiln::codegen
