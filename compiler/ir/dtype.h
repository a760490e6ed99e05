// Element types of tensors and scalars; dtype_table.h lists them.
#ifndef KILN_COMPILER_IR_DTYPE_H_
#define KILN_COMPILER_IR_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "compiler/ir/double_bits.h"
#include "compiler/ir/dtype_table.h"

namespace kiln::ir {

// Values and order equal kiln.v1.DType, which wire/node.cc asserts.
enum class DType : uint8_t {
  kInvalid,
#define KILN_DTYPE(constant, ...) constant,
  KILN_DTYPES(KILN_DTYPE)
#undef KILN_DTYPE
};
#define KILN_DTYPE(...) +1
inline constexpr int kNumDTypes = 1 KILN_DTYPES(KILN_DTYPE);  // with kInvalid
#undef KILN_DTYPE
#define KILN_DTYPE(constant, ...) DType::constant,
inline constexpr DType kAllDTypes[] = {KILN_DTYPES(KILN_DTYPE)};  // without kInvalid
#undef KILN_DTYPE

enum class DTypeKind : uint8_t { kNone, kBool, kSigned, kUnsigned, kFloat };

// The layout of a binary float: a sign, the exponent, the mantissa. The exponent's lowest value
// marks zero and subnormal numbers.
struct FloatFormat {
  int mantissa_bits;  // explicit ones
  int exponent_bits;
  // The exponent's highest value marks infinities and NaN, as in IEEE 754. Otherwise it marks
  // numbers, and NaN is where all bits of exponent and mantissa are set.
  bool has_infinity;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int exponent_min() const { return 1 - bias(); }  // of normal numbers
  constexpr double largest() const {
    // Without infinities the highest exponent has numbers, of which only the last one is NaN.
    return has_infinity ? (2 - PowerOfTwo(-mantissa_bits)) * PowerOfTwo(bias())
                        : (2 - 2 * PowerOfTwo(-mantissa_bits)) * PowerOfTwo(bias() + 1);
  }

  // The bits of the magnitude. Requires: at most 32 bits.
  constexpr uint32_t all_bits() const { return (1u << (mantissa_bits + exponent_bits)) - 1; }
  constexpr uint32_t mantissa_mask() const { return (1u << mantissa_bits) - 1; }
  constexpr uint32_t largest_bits() const { return beyond_bits() - 1; }
  // Of infinity, or NaN if there is none.
  constexpr uint32_t beyond_bits() const {
    return has_infinity ? all_bits() & ~mantissa_mask() : all_bits();
  }
  constexpr uint32_t nan_bits() const {
    return has_infinity ? beyond_bits() | 1u << (mantissa_bits - 1) : all_bits();
  }
};

struct DTypeRow {
  std::string_view constant;  // "kFloat32"
  std::string_view name;
  int size;
  DTypeKind kind;
  FloatFormat format;  // of floats
  std::string_view opencl_name;
  std::string_view safetensors_name;
  std::string_view ml_dtypes_name;
};
// A number that is no DType (for example from a corrupt message) reads as kInvalid.
const DTypeRow& RowOf(DType dtype);

// Bytes of one element in memory; bool takes one. 0 for kInvalid.
inline int SizeOf(DType dtype) { return RowOf(dtype).size; }
inline bool IsFloat(DType dtype) { return RowOf(dtype).kind == DTypeKind::kFloat; }
// Signed or unsigned; bool is not an integer.
bool IsInteger(DType dtype);
// Integers with a sign, and all floats.
bool IsSigned(DType dtype);
// float16, bfloat16 and the float8 types: arithmetic on them is done in float32 and rounded.
inline bool IsShortFloat(DType dtype) { return IsFloat(dtype) && SizeOf(dtype) < 4; }
// The float8 types. They only store numbers: no op that a client can name does arithmetic on them.
inline bool IsFloat8(DType dtype) { return IsFloat(dtype) && SizeOf(dtype) == 1; }
// Requires: a float.
inline const FloatFormat& FormatOf(DType dtype) { return RowOf(dtype).format; }

// "float32", "bool", "invalid": the Python array API standard's names.
inline std::string_view Name(DType dtype) { return RowOf(dtype).name; }
std::optional<DType> ParseDType(std::string_view name);

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_DTYPE_H_
