#include "tests/stand_ins/level_zero/spirv.h"

#include <cstring>
#include <map>

namespace kiln::stand_ins::level_zero {
namespace {

constexpr uint32_t kMagic = 0x07230203;
constexpr size_t kHeaderWords = 5;
// SPIR-V 1.2, 3.32, 3.6 and 3.7.
constexpr uint32_t kOpEntryPoint = 15, kOpExecutionMode = 16, kOpTypeInt = 21, kOpTypeFloat = 22,
                   kOpTypeVector = 23, kOpTypeArray = 28, kOpTypePointer = 32, kOpConstant = 43,
                   kOpFunction = 54, kOpFunctionParameter = 55, kOpVariable = 59,
                   kOpConvertUToPtr = 120;
constexpr uint32_t kLocalSize = 17;
constexpr uint32_t kCrossWorkgroup = 5, kWorkgroup = 4;

struct Type {
  size_t bytes = 0;
  bool is_pointer = false;
  uint32_t storage = 0;
  uint32_t pointee = 0;
};

class Reader {
 public:
  explicit Reader(SpirvModule* module) : module_(*module) {}

  std::string Read(const std::vector<uint32_t>& words) {
    for (size_t i = kHeaderWords; i < words.size();) {
      const size_t size = words[i] >> 16;
      if (size == 0 || size > words.size() - i)
        return "an instruction ends beyond the module, at word " + std::to_string(i);
      const std::vector<uint32_t> instruction(words.begin() + static_cast<int64_t>(i),
                                              words.begin() + static_cast<int64_t>(i + size));
      if (std::string why = One(instruction); !why.empty()) return why;
      i += size;
    }
    if (module_.entry_points.empty()) return "it has no entry point";
    return "";
  }

 private:
  std::string One(const std::vector<uint32_t>& w) {
    const auto at = [&w](size_t i) { return i < w.size() ? w[i] : 0; };
    switch (w[0] & 0xffff) {
      case kOpEntryPoint: {
        EntryPoint entry;
        const auto* text = reinterpret_cast<const char*>(w.data() + 3);
        entry.name.assign(text, strnlen(text, 4 * (w.size() - 3)));
        entries_[at(2)] = module_.entry_points.size();
        module_.entry_points.push_back(entry);
        break;
      }
      case kOpExecutionMode:
        if (at(2) == kLocalSize && entries_.count(at(1)) != 0) {
          for (size_t i = 0; i < 3; ++i)
            module_.entry_points[entries_[at(1)]].group_size[i] = at(3 + i);
        }
        break;
      case kOpTypeInt:
      case kOpTypeFloat:
        types_[at(1)] = {at(2) / 8};
        break;
      case kOpTypeVector:
        types_[at(1)] = {types_[at(2)].bytes * at(3)};
        break;
      case kOpTypeArray:
        types_[at(1)] = {types_[at(2)].bytes * constants_[at(3)]};
        break;
      case kOpTypePointer:
        types_[at(1)] = {sizeof(uint64_t), true, at(2), at(3)};
        break;
      case kOpConstant:
        constants_[at(2)] = at(3);
        break;
      case kOpVariable:
        if (at(3) == kWorkgroup) module_.shared_bytes += types_[types_[at(1)].pointee].bytes;
        break;
      case kOpConvertUToPtr:
        module_.makes_pointers = true;
        break;
      case kOpFunction:
        function_ = at(2);
        break;
      case kOpFunctionParameter:
        if (entries_.count(function_) != 0) return Parameter(types_[at(1)]);
        break;
      default:
        break;
    }
    return "";
  }

  std::string Parameter(const Type& type) {
    if (type.bytes == 0) return "an entry point has a parameter of an unknown type";
    if (type.is_pointer && type.storage != kCrossWorkgroup)
      return "an entry point has a pointer to other memory than global";
    module_.entry_points[entries_[function_]].parameters.push_back({type.bytes, type.is_pointer});
    return "";
  }

  SpirvModule& module_;
  std::map<uint32_t, size_t> entries_;  // positions by id
  std::map<uint32_t, Type> types_;
  std::map<uint32_t, size_t> constants_;
  uint32_t function_ = 0;
};

}  // namespace

std::string ReadSpirv(const std::string& bytes, SpirvModule* module) {
  std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(uint32_t));
  if (words.size() < kHeaderWords || words[0] != kMagic || bytes.size() % sizeof(uint32_t) != 0)
    return "it is no SPIR-V";
  if ((words[1] >> 16 & 0xff) != 1) return "it is of another version of SPIR-V";
  module->minor_version = words[1] >> 8 & 0xff;
  return Reader(module).Read(words);
}

}  // namespace kiln::stand_ins::level_zero
