#include "compiler/ops/round.h"

#include <bit>
#include <cmath>
#include <limits>

#include "compiler/ir/double_bits.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::FloatFormat;
using ir::kDoubleMantissaBits;
using ir::PowerOfTwo;

double RoundNarrow(const FloatFormat& format, double value) {
  if (value == 0 || !std::isfinite(value)) {
    if (std::isinf(value) && !format.has_infinity) return std::numeric_limits<double>::quiet_NaN();
    return value;
  }
  double rounded;
  if (std::abs(value) < PowerOfTwo(format.exponent_min())) {
    // All subnormal numbers have the last bit of the smallest normal number. nearbyint rounds ties
    // to even.
    const double scale = PowerOfTwo(format.mantissa_bits - format.exponent_min());
    rounded = std::copysign(std::nearbyint(value * scale) / scale, value);
  } else {
    // Adds half of the last kept bit, or slightly less where a tie rounds down; a carry goes into
    // the exponent.
    const int dropped = kDoubleMantissaBits - format.mantissa_bits;
    auto bits = std::bit_cast<uint64_t>(value);
    bits += (uint64_t{1} << (dropped - 1)) - 1 + (bits >> dropped & 1);
    rounded = std::bit_cast<double>(bits >> dropped << dropped);
  }
  if (std::abs(rounded) <= format.largest()) return rounded;
  const double beyond = format.has_infinity ? std::numeric_limits<double>::infinity()
                                            : std::numeric_limits<double>::quiet_NaN();
  return std::copysign(beyond, value);
}

}  // namespace

double RoundToFloat(DType dtype, double value) {
  if (dtype == DType::kFloat64) return value;
  if (dtype == DType::kFloat32) return static_cast<double>(static_cast<float>(value));
  return RoundNarrow(ir::FormatOf(dtype), value);
}

double IntegerToFloat(DType dtype, int64_t value, bool is_uint64) {
  const auto bits = static_cast<uint64_t>(value);
  if (dtype == DType::kFloat32) {
    return is_uint64 ? static_cast<float>(bits) : static_cast<float>(value);
  }
  // Rounding to double first would break the final rounding, so the low bits are folded into one
  // sticky bit. The other dtypes have far fewer digits than double; float64 itself needs no second
  // rounding.
  constexpr uint64_t kLow = 0xffff;
  const uint64_t size = is_uint64 || value >= 0 ? bits : ~bits;
  const bool folds = dtype != DType::kFloat64 && size >> 48 != 0 && (bits & kLow) != 0;
  const uint64_t kept = folds ? (bits & ~kLow) | (kLow + 1) : bits;
  return RoundToFloat(dtype, is_uint64 ? static_cast<double>(kept)
                                       : static_cast<double>(static_cast<int64_t>(kept)));
}

int64_t WrapToInteger(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return value != 0;
  const int bits = 8 * ir::SizeOf(dtype);
  if (bits == 64) return value;
  const uint64_t low = static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
  if (!ir::IsSigned(dtype)) return static_cast<int64_t>(low);
  const uint64_t sign = uint64_t{1} << (bits - 1);
  // Sign-extends without a branch.
  return static_cast<int64_t>((low ^ sign) - sign);
}

int64_t FloatToInteger(DType dtype, double value) {
  if (dtype == DType::kBool) return value != 0;
  if (std::isnan(value)) return 0;
  const int bits = 8 * ir::SizeOf(dtype) - (ir::IsSigned(dtype) ? 1 : 0);
  const double limit = std::ldexp(1.0, bits);  // the first integer out of range
  if (!ir::IsSigned(dtype)) {
    if (value <= 0) return 0;
    if (value >= limit) return WrapToInteger(dtype, -1);
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  if (value >= limit) return static_cast<int64_t>((uint64_t{1} << bits) - 1);
  if (value < -limit) return -static_cast<int64_t>((uint64_t{1} << bits) - 1) - 1;
  return static_cast<int64_t>(value);
}

}  // namespace kiln::ops
