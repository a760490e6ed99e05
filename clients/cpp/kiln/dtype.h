// Element types.
// Generated from compiler/ir/dtype_table.h by `opgen cpp_dtypes_header`; do not edit.
#ifndef KILN_CLIENTS_CPP_KILN_DTYPE_H_
#define KILN_CLIENTS_CPP_KILN_DTYPE_H_

// clang-format off
#include <cstdint>

namespace kiln {

// Element types; values equal kiln.v1.DType.
enum class DType : uint8_t {
  kUnspecified = 0,
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
// Returns the bytes of one element; 0 for kUnspecified.
int SizeOf(DType dtype);

// The DType of a C++ type: kDTypeOf<float> is kFloat32. kUnspecified for types that have none.
template <typename T>
inline constexpr DType kDTypeOf = DType::kUnspecified;
template <> inline constexpr DType kDTypeOf<bool> = DType::kBool;
template <> inline constexpr DType kDTypeOf<int8_t> = DType::kInt8;
template <> inline constexpr DType kDTypeOf<int16_t> = DType::kInt16;
template <> inline constexpr DType kDTypeOf<int32_t> = DType::kInt32;
template <> inline constexpr DType kDTypeOf<int64_t> = DType::kInt64;
template <> inline constexpr DType kDTypeOf<uint8_t> = DType::kUInt8;
template <> inline constexpr DType kDTypeOf<uint16_t> = DType::kUInt16;
template <> inline constexpr DType kDTypeOf<uint32_t> = DType::kUInt32;
template <> inline constexpr DType kDTypeOf<uint64_t> = DType::kUInt64;
template <> inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <> inline constexpr DType kDTypeOf<double> = DType::kFloat64;

}  // namespace kiln
// clang-format on

#endif  // KILN_CLIENTS_CPP_KILN_DTYPE_H_
