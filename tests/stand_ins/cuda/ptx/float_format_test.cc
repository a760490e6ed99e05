#include "tests/stand_ins/cuda/ptx/float_format.h"

#include <bit>
#include <cmath>

#include "gtest/gtest.h"

namespace kiln::stand_ins::ptx {
namespace {

uint64_t BitsOf(double value) { return std::bit_cast<uint64_t>(value); }
uint64_t Round(Type type, double value, Rounding rounding) {
  return Pack(type, Unpack(Type::kF64, BitsOf(value)), rounding);
}

TEST(FloatFormat, KeepsEveryShortNumber) {
  for (Type type : {Type::kF16, Type::kBf16}) {
    for (uint64_t bits = 0; bits < 0x10000; ++bits) {
      const uint64_t expected = IsNan(type, bits) ? 0x7fff : bits;
      ASSERT_EQ(FromDouble(type, ToDouble(type, bits)), expected) << bits;
      ASSERT_EQ(Pack(type, Unpack(type, bits), Rounding::kZero), expected) << bits;
    }
  }
}

TEST(FloatFormat, RoundsAsTheProcessorDoes) {
  uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    // Any sign and significand; exponents in about the range of float.
    const uint64_t exponent = 1023 - 160 + (state >> 32) % 300;
    const double value = std::bit_cast<double>((state & 0x800fffffffffffff) | exponent << 52);
    const float nearest = static_cast<float>(value);
    ASSERT_EQ(Round(Type::kF32, value, Rounding::kNearestEven), std::bit_cast<uint32_t>(nearest));
    const double down = ToDouble(Type::kF32, Round(Type::kF32, value, Rounding::kDown));
    const double up = ToDouble(Type::kF32, Round(Type::kF32, value, Rounding::kUp));
    ASSERT_LE(down, value);
    ASSERT_GE(up, value);
    ASSERT_TRUE(down == nearest || up == nearest);
    const double zero = ToDouble(Type::kF32, Round(Type::kF32, value, Rounding::kZero));
    ASSERT_EQ(zero, value > 0 ? down : up);
  }
}

TEST(FloatFormat, RoundsHalvesAndOverflowsByTheDirection) {
  const double half = 1 + std::ldexp(1.0, -11);  // halfway between two numbers of f16
  EXPECT_EQ(Round(Type::kF16, half, Rounding::kNearestEven), 0x3c00u);
  EXPECT_EQ(Round(Type::kF16, half, Rounding::kNearestAway), 0x3c01u);
  EXPECT_EQ(Round(Type::kF16, -half, Rounding::kDown), 0xbc01u);
  EXPECT_EQ(Round(Type::kF16, 65520, Rounding::kNearestEven), 0x7c00u);
  EXPECT_EQ(Round(Type::kF16, 65519, Rounding::kNearestEven), 0x7bffu);
  EXPECT_EQ(Round(Type::kF16, 1e9, Rounding::kZero), 0x7bffu);
  EXPECT_EQ(Round(Type::kF16, -1e9, Rounding::kUp), 0xfbffu);
  EXPECT_EQ(Round(Type::kF16, -1e9, Rounding::kDown), 0xfc00u);
  EXPECT_EQ(Round(Type::kF16, 1e-300, Rounding::kUp), 1u);
  EXPECT_EQ(Round(Type::kTf32, 1 + std::ldexp(1.0, -11), Rounding::kNearestAway), 0x3f802000u);
}

TEST(FloatFormat, SumsToOddRoundOnce) {
  // 1 + 2^-11 + 2^-60 is above the middle between two numbers of f16; double cannot represent it.
  const double sum = AddToOdd(1 + std::ldexp(1.0, -11), std::ldexp(1.0, -60));
  EXPECT_EQ(FromDouble(Type::kF16, sum), 0x3c01u);
  const double less = AddToOdd(1 + std::ldexp(1.0, -11), -std::ldexp(1.0, -60));
  EXPECT_EQ(FromDouble(Type::kF16, less), 0x3c00u);
}

}  // namespace
}  // namespace kiln::stand_ins::ptx
