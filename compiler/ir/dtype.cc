#include "compiler/ir/dtype.h"

#include <array>

namespace kiln::ir {
namespace {

enum class Class : uint8_t { kNone, kBool, kSigned, kUnsigned, kFloat };

struct DTypeRow {
  std::string_view name;
  int size;
  Class kind;
};

// In the order of DType.
constexpr std::array<DTypeRow, kNumDTypes> kDTypeRows = {{
    {"invalid", 0, Class::kNone},
    {"bool", 1, Class::kBool},
    {"int8", 1, Class::kSigned},
    {"int16", 2, Class::kSigned},
    {"int32", 4, Class::kSigned},
    {"int64", 8, Class::kSigned},
    {"uint8", 1, Class::kUnsigned},
    {"uint16", 2, Class::kUnsigned},
    {"uint32", 4, Class::kUnsigned},
    {"uint64", 8, Class::kUnsigned},
    {"float16", 2, Class::kFloat},
    {"bfloat16", 2, Class::kFloat},
    {"float32", 4, Class::kFloat},
    {"float64", 8, Class::kFloat},
    {"float8_e4m3", 1, Class::kFloat},
    {"float8_e5m2", 1, Class::kFloat},
}};

// A number that is no DType (for example from a corrupt message) reads as kInvalid.
const DTypeRow& RowOf(DType dtype) {
  size_t index = static_cast<size_t>(dtype);
  return kDTypeRows[index < kDTypeRows.size() ? index : 0];
}

}  // namespace

int SizeOf(DType dtype) { return RowOf(dtype).size; }
bool IsFloat(DType dtype) { return RowOf(dtype).kind == Class::kFloat; }
bool IsInteger(DType dtype) {
  return RowOf(dtype).kind == Class::kSigned || RowOf(dtype).kind == Class::kUnsigned;
}
bool IsSigned(DType dtype) {
  return RowOf(dtype).kind == Class::kSigned || RowOf(dtype).kind == Class::kFloat;
}
std::string_view Name(DType dtype) { return RowOf(dtype).name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (int i = 1; i < kNumDTypes; ++i) {
    if (kDTypeRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace kiln::ir
