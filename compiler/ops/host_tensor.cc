#include "compiler/ops/host_tensor.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "compiler/ops/round.h"

namespace kiln::ops {
namespace {

using ir::DType;

// Fields of the float formats that C++20 has no type for.
struct Layout {
  int exponent_bits;
  int mantissa_bits;
};

Layout LayoutOf(DType dtype) {
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

// E4M3 spends the highest exponent on numbers; its one NaN has all bits set.
double Decode(DType dtype, uint32_t bits) {
  const auto [exponent_bits, mantissa_bits] = LayoutOf(dtype);
  const int highest = (1 << exponent_bits) - 1;
  const int bias = highest >> 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & highest;
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const double sign = (bits >> (exponent_bits + mantissa_bits)) & 1 ? -1.0 : 1.0;
  const bool is_special = dtype == DType::kFloat8E4M3
                              ? exponent == highest && mantissa == (1 << mantissa_bits) - 1
                              : exponent == highest;
  if (is_special) {
    const bool is_nan = mantissa != 0;
    return is_nan ? std::numeric_limits<double>::quiet_NaN()
                  : sign * std::numeric_limits<double>::infinity();
  }
  // Subnormal numbers lack the implicit bit and have the exponent of the least normal one.
  const int implicit = exponent == 0 ? 0 : 1 << mantissa_bits;
  return sign * std::ldexp(implicit + mantissa, std::max(exponent, 1) - bias - mantissa_bits);
}

// `value` has been rounded to the dtype.
uint32_t Encode(DType dtype, double value) {
  const auto [exponent_bits, mantissa_bits] = LayoutOf(dtype);
  const uint32_t highest = (1u << exponent_bits) - 1;
  const int bias = static_cast<int>(highest >> 1);
  const uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
  const uint32_t mantissa_mask = (1u << mantissa_bits) - 1;
  if (std::isnan(value)) {
    return highest << mantissa_bits |
           (dtype == DType::kFloat8E4M3 ? mantissa_mask : 1u << (mantissa_bits - 1));
  }
  if (std::isinf(value)) return sign | highest << mantissa_bits;
  if (value == 0) return sign;
  // Below the least normal number the exponent stays, and `scaled` lacks the implicit bit.
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const auto scaled = static_cast<uint32_t>(std::ldexp(std::abs(value), mantissa_bits - exponent));
  const bool is_normal = scaled >> mantissa_bits != 0;
  return sign | (is_normal ? static_cast<uint32_t>(exponent + bias) << mantissa_bits : 0) |
         (scaled & mantissa_mask);
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

double HostTensor::Float(int64_t i) const {
  if (dtype == DType::kFloat32) {
    float value = 0;
    std::memcpy(&value, bytes.data() + 4 * i, sizeof(value));
    return value;
  }
  if (dtype == DType::kFloat64) {
    double value = 0;
    std::memcpy(&value, bytes.data() + 8 * i, sizeof(value));
    return value;
  }
  const int size = ir::SizeOf(dtype);
  uint32_t bits = 0;
  std::memcpy(&bits, bytes.data() + size * i, size);
  return Decode(dtype, bits);
}

void HostTensor::SetFloat(int64_t i, double value) {
  const double rounded = RoundToFloat(dtype, value);
  if (dtype == DType::kFloat32) {
    const auto narrow = static_cast<float>(rounded);
    std::memcpy(bytes.data() + 4 * i, &narrow, sizeof(narrow));
  } else if (dtype == DType::kFloat64) {
    std::memcpy(bytes.data() + 8 * i, &rounded, sizeof(rounded));
  } else {
    const int size = ir::SizeOf(dtype);
    const uint32_t bits = Encode(dtype, rounded);
    std::memcpy(bytes.data() + size * i, &bits, size);
  }
}

int64_t HostTensor::Int(int64_t i) const {
  const int size = ir::SizeOf(dtype);
  int64_t value = 0;
  // Little-endian: these are the low bytes, from which WrapToInteger extends the sign.
  std::memcpy(&value, bytes.data() + size * i, size);
  return WrapToInteger(dtype, value);
}

void HostTensor::SetInt(int64_t i, int64_t value) {
  const int64_t wrapped = WrapToInteger(dtype, value);
  const int size = ir::SizeOf(dtype);
  std::memcpy(bytes.data() + size * i, &wrapped, size);
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
