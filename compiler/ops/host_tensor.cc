#include "compiler/ops/host_tensor.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/ir/double_bits.h"
#include "compiler/ops/round.h"
#include "proto/check/check.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::FloatFormat;
using ir::kDoubleBias;
using ir::kDoubleMantissaBits;
using ir::PowerOfTwo;

double Decode(const FloatFormat& format, uint32_t bits) {
  const int mantissa_bits = format.mantissa_bits;
  const uint32_t magnitude = bits & format.all_bits();
  const bool is_negative = magnitude != bits;
  if (magnitude >= format.beyond_bits()) {
    const bool is_infinity = format.has_infinity && magnitude == format.beyond_bits();
    if (!is_infinity) return std::numeric_limits<double>::quiet_NaN();
    return (is_negative ? -1 : 1) * std::numeric_limits<double>::infinity();
  }
  const auto exponent = static_cast<int>(magnitude >> mantissa_bits);
  const auto mantissa = static_cast<int>(magnitude & format.mantissa_mask());
  // Subnormal numbers lack the implicit bit and have the exponent of the smallest normal number.
  const int implicit = exponent == 0 ? 0 : 1 << mantissa_bits;
  return (is_negative ? -1.0 : 1.0) * (implicit + mantissa) *
         PowerOfTwo(std::max(exponent, 1) - format.bias() - mantissa_bits);
}

// Requires: `value` has been rounded to the format.
uint32_t Encode(const FloatFormat& format, double value) {
  const int mantissa_bits = format.mantissa_bits;
  if (std::isnan(value)) return format.nan_bits();
  const uint32_t sign = std::signbit(value) ? format.all_bits() + 1 : 0;
  if (std::isinf(value)) return sign | format.beyond_bits();
  if (value == 0) return sign;
  const double magnitude = std::abs(value);
  // Below the smallest normal number the exponent stays the same, and there is no implicit bit.
  const int lowest = format.exponent_min();
  if (magnitude < PowerOfTwo(lowest))
    return sign | static_cast<uint32_t>(magnitude * PowerOfTwo(mantissa_bits - lowest));
  const auto bits = std::bit_cast<uint64_t>(magnitude);
  const auto exponent = static_cast<uint32_t>(static_cast<int>(bits >> kDoubleMantissaBits) -
                                              kDoubleBias + format.bias());
  return sign | exponent << mantissa_bits |
         (static_cast<uint32_t>(bits >> (kDoubleMantissaBits - mantissa_bits)) &
          format.mantissa_mask());
}

}  // namespace

HostTensor HostTensor::Zeros(DType dtype, ir::Shape shape) {
  HostTensor tensor{dtype, std::move(shape), {}};
  tensor.bytes.resize(tensor.size() * ir::SizeOf(dtype));
  return tensor;
}

HostTensor HostTensor::Of(DType dtype, ir::Shape shape, absl::Span<const double> values) {
  HostTensor tensor = Zeros(dtype, std::move(shape));
  KILN_CHECK_EQ(tensor.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (ir::IsFloat(dtype)) {
      tensor.SetFloat(i, values[i]);
    } else {
      tensor.SetInt(i, FloatToInteger(dtype, values[i]));
    }
  }
  return tensor;
}

double HostTensor::ShortFloat(int64_t i) const {
  const uint32_t bits = ir::SizeOf(dtype) == 1 ? Load<uint8_t>(i) : Load<uint16_t>(i);
  return Decode(ir::FormatOf(dtype), bits);
}

void HostTensor::SetShortFloat(int64_t i, double value) {
  const uint32_t bits = Encode(ir::FormatOf(dtype), RoundToFloat(dtype, value));
  if (ir::SizeOf(dtype) == 1) return Store<uint8_t>(i, bits);
  Store<uint16_t>(i, bits);
}

double HostTensor::Number(int64_t i) const {
  if (ir::IsFloat(dtype)) return Float(i);
  const int64_t value = Int(i);
  return dtype == DType::kUInt64 ? static_cast<double>(static_cast<uint64_t>(value))
                                 : static_cast<double>(value);
}

std::vector<int64_t> StridesOf(absl::Span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i > 1; --i) strides[i - 2] = strides[i - 1] * shape[i - 1];
  return strides;
}

}  // namespace kiln::ops
