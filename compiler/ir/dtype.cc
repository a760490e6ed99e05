#include "compiler/ir/dtype.h"

#include <array>

namespace kiln::ir {
namespace {

constexpr FloatFormat NoFloat() { return {}; }
constexpr FloatFormat Ieee(int mantissa_bits, int exponent_bits) {
  return {mantissa_bits, exponent_bits, true};
}
constexpr FloatFormat Finite(int mantissa_bits, int exponent_bits) {
  return {mantissa_bits, exponent_bits, false};
}

constexpr std::array<DTypeRow, kNumDTypes> kDTypeRows = {
    {{"kInvalid", "invalid", 0, DTypeKind::kNone, NoFloat(), "void", "", ""},
#define KILN_DTYPE(constant, wire, name, size, kind, format, opencl, safetensors, ml_dtypes) \
  {#constant, name, size, DTypeKind::kind, format, opencl, safetensors, ml_dtypes},
     KILN_DTYPES(KILN_DTYPE)
#undef KILN_DTYPE
    }};

}  // namespace

const DTypeRow& RowOf(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  return kDTypeRows[index < kDTypeRows.size() ? index : 0];
}

bool IsInteger(DType dtype) {
  return RowOf(dtype).kind == DTypeKind::kSigned || RowOf(dtype).kind == DTypeKind::kUnsigned;
}

bool IsSigned(DType dtype) {
  return RowOf(dtype).kind == DTypeKind::kSigned || RowOf(dtype).kind == DTypeKind::kFloat;
}

std::optional<DType> ParseDType(std::string_view name) {
  for (const DType dtype : kAllDTypes) {
    if (Name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace kiln::ir
