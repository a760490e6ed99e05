// The fields of a double.
#ifndef KILN_COMPILER_OPS_DOUBLE_BITS_H_
#define KILN_COMPILER_OPS_DOUBLE_BITS_H_

#include <bit>
#include <cstdint>

namespace kiln::ops {

inline constexpr int kDoubleMantissaBits = 52;
inline constexpr int kDoubleBias = 1023;

// Returns 2^exponent. Requires: it is a normal double.
inline double PowerOfTwo(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + kDoubleBias)
                               << kDoubleMantissaBits);
}

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_DOUBLE_BITS_H_
