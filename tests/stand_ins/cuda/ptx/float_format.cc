#include "tests/stand_ins/cuda/ptx/float_format.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln::stand_ins::ptx {
namespace {

struct FormatRow {
  int bits;
  int precision;     // including the hidden bit
  int exponent_min;  // of the lowest normal number, 1.0 * 2^exponent_min
  int unused;        // low bits that are zero
  uint64_t nan;
};

constexpr FormatRow kF16Row{16, 11, -14, 0, 0x7fff};
constexpr FormatRow kBf16Row{16, 8, -126, 0, 0x7fff};
constexpr FormatRow kTf32Row{32, 11, -126, 13, 0x7fffffff};
constexpr FormatRow kF32Row{32, 24, -126, 0, 0x7fffffff};
constexpr FormatRow kF64Row{64, 53, -1022, 0, 0xfff8000000000000};

const FormatRow& FormatOf(Type type) {
  switch (type) {
    case Type::kF16:
      return kF16Row;
    case Type::kBf16:
      return kBf16Row;
    case Type::kTf32:
      return kTf32Row;
    case Type::kF64:
      return kF64Row;
    default:
      return kF32Row;
  }
}

// The bits of infinity, without the unused bits.
uint64_t Infinity(const FormatRow& row) {
  const int exponent_bits = row.bits - row.unused - row.precision;
  return ((uint64_t{1} << exponent_bits) - 1) << (row.precision - 1);
}

bool RoundsUp(Rounding rounding, bool negative, bool odd, bool half, bool rest) {
  switch (rounding) {
    case Rounding::kNearestEven:
      return half && (rest || odd);
    case Rounding::kNearestAway:
      return half;
    case Rounding::kZero:
      return false;
    case Rounding::kDown:
      return negative && (half || rest);
    case Rounding::kUp:
      return !negative && (half || rest);
  }
  return false;
}

uint64_t Magnitude(const FormatRow& row, const Unpacked& number, Rounding rounding) {
  const int shift_left = std::countl_zero(number.significand);
  const uint64_t significand = number.significand << shift_left;
  const int exponent = number.exponent - shift_left;
  const int lowest = row.exponent_min - (row.precision - 1);
  const int unit = std::max(exponent + 63 - (row.precision - 1), lowest);
  const int dropped = unit - exponent;  // at least 64 - precision
  const uint64_t kept = dropped < 64 ? significand >> dropped : 0;
  const bool half = dropped <= 64 && (significand >> (dropped - 1) & 1) != 0;
  const bool rest = dropped > 64 || (significand & ((uint64_t{1} << (dropped - 1)) - 1)) != 0;
  const bool up = RoundsUp(rounding, number.negative, (kept & 1) != 0, half, rest);
  const uint64_t infinity = Infinity(row);
  if (unit - lowest >= static_cast<int>(infinity >> (row.precision - 1)))
    return infinity;  // above any finite number; handled by the caller
  // The hidden bit increments the exponent by one.
  return (static_cast<uint64_t>(unit - lowest) << (row.precision - 1)) + kept + (up ? 1 : 0);
}

}  // namespace

Unpacked Unpack(Type type, uint64_t bits) {
  const FormatRow& row = FormatOf(type);
  Unpacked number;
  number.negative = (bits >> (row.bits - 1) & 1) != 0;
  const uint64_t magnitude = (bits & ((uint64_t{1} << (row.bits - 1)) - 1)) >> row.unused;
  const uint64_t infinity = Infinity(row);
  if (magnitude >= infinity) {
    number.kind = magnitude == infinity ? Unpacked::Kind::kInfinity : Unpacked::Kind::kNan;
    return number;
  }
  const uint64_t hidden = uint64_t{1} << (row.precision - 1);
  const int exponent_field = static_cast<int>(magnitude >> (row.precision - 1));
  number.significand = (magnitude & (hidden - 1)) | (exponent_field > 0 ? hidden : 0);
  number.exponent = row.exponent_min - (row.precision - 1) + std::max(exponent_field - 1, 0);
  return number;
}

uint64_t Pack(Type type, const Unpacked& number, Rounding rounding) {
  const FormatRow& row = FormatOf(type);
  if (number.kind == Unpacked::Kind::kNan) return row.nan;
  const uint64_t infinity = Infinity(row);
  uint64_t magnitude = 0;
  if (number.kind == Unpacked::Kind::kInfinity) {
    magnitude = infinity;
  } else if (number.significand != 0) {
    magnitude = Magnitude(row, number, rounding);
    const bool stays_finite = rounding == Rounding::kZero ||
                              rounding == (number.negative ? Rounding::kUp : Rounding::kDown);
    if (magnitude >= infinity) magnitude = stays_finite ? infinity - 1 : infinity;
  }
  return magnitude << row.unused | (number.negative ? SignBit(type) : 0);
}

Unpacked UnpackInteger(bool negative, uint64_t magnitude) {
  return {.negative = negative, .significand = magnitude};
}

double ToDouble(Type type, uint64_t bits) {
  if (type == Type::kF64) return std::bit_cast<double>(bits);
  if (type == Type::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (type == Type::kBf16) return std::bit_cast<float>(static_cast<uint32_t>(bits << 16));
  return std::bit_cast<double>(Pack(Type::kF64, Unpack(type, bits), Rounding::kNearestEven));
}

uint64_t FromDouble(Type type, double value) {
  return Pack(type, Unpack(Type::kF64, std::bit_cast<uint64_t>(value)), Rounding::kNearestEven);
}

uint64_t Flush(Type type, uint64_t bits) {
  const FormatRow& row = FormatOf(type);
  const uint64_t exponent = Infinity(row) << row.unused;
  return (bits & exponent) == 0 ? bits & SignBit(type) : bits;
}

bool IsNan(Type type, uint64_t bits) {
  const FormatRow& row = FormatOf(type);
  return (bits & (SignBit(type) - 1)) >> row.unused > Infinity(row);
}

uint64_t CanonicalNan(Type type) { return FormatOf(type).nan; }
uint64_t SignBit(Type type) { return uint64_t{1} << (FormatOf(type).bits - 1); }

double AddToOdd(double x, double y) {
  const double sum = x + y;
  if (!std::isfinite(sum)) return sum;
  const double of_y = sum - x;
  const double error = (x - (sum - of_y)) + (y - of_y);
  auto bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || (bits & 1) != 0) return sum;
  // The neighbour on the side of the exact sum.
  bits += (error > 0) == (sum > 0) ? 1 : -1;
  return std::bit_cast<double>(bits);
}

}  // namespace kiln::stand_ins::ptx
