// Floating-point formats, and rounding to them in each of IEEE 754's rounding modes.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_FLOAT_FORMAT_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_FLOAT_FORMAT_H_

#include <cstdint>

#include "tests/stand_ins/cuda/ptx/type.h"

namespace kiln::stand_ins::ptx {

enum class Rounding : uint8_t { kNearestEven, kNearestAway, kZero, kDown, kUp };

// An exact number: (-1)^negative * significand * 2^exponent.
struct Unpacked {
  enum class Kind { kFinite, kInfinity, kNan };
  Kind kind = Kind::kFinite;
  bool negative = false;
  uint64_t significand = 0;
  int exponent = 0;
};

// `type` is kF16, kBf16, kTf32, kF32 or kF64. A NaN packs to PTX's canonical NaN.
Unpacked Unpack(Type type, uint64_t bits);
uint64_t Pack(Type type, const Unpacked& number, Rounding rounding);
Unpacked UnpackInteger(bool negative, uint64_t magnitude);

double ToDouble(Type type, uint64_t bits);  // exact
// Rounds to nearest, ties to even.
uint64_t FromDouble(Type type, double value);

// Subnormal numbers become zeros with the same sign.
uint64_t Flush(Type type, uint64_t bits);
bool IsNan(Type type, uint64_t bits);
uint64_t CanonicalNan(Type type);
uint64_t SignBit(Type type);

// x + y for a format much narrower than double. If double has to round, the last bit is 1, so that
// rounding again gives the same as rounding the exact sum once (Boldo and Melquiond, 2008).
double AddToOdd(double x, double y);

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_FLOAT_FORMAT_H_
