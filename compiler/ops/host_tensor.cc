#include "compiler/ops/host_tensor.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/ops/double_bits.h"
#include "compiler/ops/round.h"

namespace kiln::ops {
namespace {

using ir::DType;

// Bit fields of the float formats that C++20 has no type for.
struct Layout {
  int exponent_bits;
  int mantissa_bits;
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

constexpr Layout LayoutOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {5, 10};
    case DType::kBFloat16:
      return {8, 7};
    case DType::kFloat8E4M3:
      return {4, 3};
    default:
      return {5, 2};
  }
}

// E4M3 uses the highest exponent for numbers; its one NaN has all bits set.
double Decode(DType dtype, uint32_t bits) {
  const Layout layout = LayoutOf(dtype);
  const int mantissa_bits = layout.mantissa_bits;
  const int highest = (1 << layout.exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & highest;
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const double sign = (bits >> (layout.exponent_bits + mantissa_bits)) & 1 ? -1.0 : 1.0;
  const bool is_special = dtype == DType::kFloat8E4M3
                              ? exponent == highest && mantissa == (1 << mantissa_bits) - 1
                              : exponent == highest;
  if (is_special) {
    const bool is_nan = mantissa != 0;
    return is_nan ? std::numeric_limits<double>::quiet_NaN()
                  : sign * std::numeric_limits<double>::infinity();
  }
  // Subnormal numbers lack the implicit bit and have the exponent of the smallest normal number.
  const int implicit = exponent == 0 ? 0 : 1 << mantissa_bits;
  return sign * (implicit + mantissa) *
         PowerOfTwo(std::max(exponent, 1) - layout.bias() - mantissa_bits);
}

// Requires: `value` has been rounded to the dtype.
uint32_t Encode(DType dtype, double value) {
  const Layout layout = LayoutOf(dtype);
  const int mantissa_bits = layout.mantissa_bits;
  const uint32_t highest = (1u << layout.exponent_bits) - 1;
  const uint32_t sign = std::signbit(value) ? 1u << (layout.exponent_bits + mantissa_bits) : 0;
  const uint32_t mantissa_mask = (1u << mantissa_bits) - 1;
  if (std::isnan(value)) {
    return highest << mantissa_bits |
           (dtype == DType::kFloat8E4M3 ? mantissa_mask : 1u << (mantissa_bits - 1));
  }
  if (std::isinf(value)) return sign | highest << mantissa_bits;
  if (value == 0) return sign;
  const double magnitude = std::abs(value);
  // Below the smallest normal number the exponent stays the same, and there is no implicit bit.
  const int lowest = 1 - layout.bias();
  if (magnitude < PowerOfTwo(lowest))
    return sign | static_cast<uint32_t>(magnitude * PowerOfTwo(mantissa_bits - lowest));
  const auto bits = std::bit_cast<uint64_t>(magnitude);
  const auto exponent = static_cast<uint32_t>(static_cast<int>(bits >> kDoubleMantissaBits) -
                                              kDoubleBias + layout.bias());
  return sign | exponent << mantissa_bits |
         (static_cast<uint32_t>(bits >> (kDoubleMantissaBits - mantissa_bits)) & mantissa_mask);
}

}  // namespace

HostTensor HostTensor::Zeros(DType dtype, ir::Shape shape) {
  HostTensor tensor{dtype, std::move(shape), {}};
  tensor.bytes.resize(tensor.size() * ir::SizeOf(dtype));
  return tensor;
}

HostTensor HostTensor::Of(DType dtype, ir::Shape shape, absl::Span<const double> values) {
  HostTensor tensor = Zeros(dtype, std::move(shape));
  assert(tensor.size() == static_cast<int64_t>(values.size()));
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
  return Decode(dtype, bits);
}

void HostTensor::SetShortFloat(int64_t i, double value) {
  const uint32_t bits = Encode(dtype, RoundToFloat(dtype, value));
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
