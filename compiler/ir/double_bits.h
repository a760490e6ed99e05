// The fields of a double.
#ifndef KILN_COMPILER_IR_DOUBLE_BITS_H_
#define KILN_COMPILER_IR_DOUBLE_BITS_H_

#include <bit>
#include <cstdint>

namespace kiln::ir {

inline constexpr int kDoubleMantissaBits = 52;
inline constexpr int kDoubleBias = 1023;

// Returns 2^exponent. Requires: it is a normal double.
constexpr double PowerOfTwo(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + kDoubleBias)
                               << kDoubleMantissaBits);
}

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_DOUBLE_BITS_H_
