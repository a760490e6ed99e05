// Element types.
#ifndef KILN_CLIENTS_CPP_KILN_DTYPE_H_
#define KILN_CLIENTS_CPP_KILN_DTYPE_H_

#include <cstdint>
#include <type_traits>

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
inline constexpr DType kDTypeOf = std::is_same_v<T, bool>       ? DType::kBool
                                  : std::is_same_v<T, int8_t>   ? DType::kInt8
                                  : std::is_same_v<T, int16_t>  ? DType::kInt16
                                  : std::is_same_v<T, int32_t>  ? DType::kInt32
                                  : std::is_same_v<T, int64_t>  ? DType::kInt64
                                  : std::is_same_v<T, uint8_t>  ? DType::kUInt8
                                  : std::is_same_v<T, uint16_t> ? DType::kUInt16
                                  : std::is_same_v<T, uint32_t> ? DType::kUInt32
                                  : std::is_same_v<T, uint64_t> ? DType::kUInt64
                                  : std::is_same_v<T, float>    ? DType::kFloat32
                                  : std::is_same_v<T, double>   ? DType::kFloat64
                                                                : DType::kUnspecified;

}  // namespace kiln

#endif  // KILN_CLIENTS_CPP_KILN_DTYPE_H_
