// Element types of tensors and scalars.
#ifndef KILN_COMPILER_IR_DTYPE_H_
#define KILN_COMPILER_IR_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::ir {

// Values and order equal kiln.v1.DType, which wire.cc asserts.
enum class DType : uint8_t {
  kInvalid = 0,
  kBool = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUInt8 = 6,
  kUInt16 = 7,
  kUInt32 = 8,
  kUInt64 = 9,
  kFloat16 = 10,
  kBFloat16 = 11,
  kFloat32 = 12,
  kFloat64 = 13,
  kFloat8E4M3 = 14,
  kFloat8E5M2 = 15,
};
inline constexpr int kNumDTypes = 16;

// Bytes of one element in memory; bool takes one. 0 for kInvalid.
int SizeOf(DType dtype);
bool IsFloat(DType dtype);
// Signed or unsigned; bool is not an integer.
bool IsInteger(DType dtype);
// Integers with a sign, and all floats.
bool IsSigned(DType dtype);
// "float32", "bool", "invalid": the Python array API standard's names.
std::string_view Name(DType dtype);
std::optional<DType> ParseDType(std::string_view name);

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_DTYPE_H_
