#include <cmath>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "compiler/ops/primitives/evaluations.h"
#include "compiler/ops/round.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using Result = absl::StatusOr<HostTensor>;

// Returns the elements of a tensor as values of the C++ type of its dtype.
template <typename T>
const T* ElementsOf(const HostTensor& tensor) {
  return reinterpret_cast<const T*>(tensor.bytes.data());
}
template <typename T>
T* ElementsOf(HostTensor& tensor) {
  return reinterpret_cast<T*>(tensor.bytes.data());
}

// Functions of floats are computed in double and rounded by SetFloat. For +, -, *, / and square
// roots the result is float32's correctly rounded one, since double has more than twice its digits
// (Figueroa, "When is double rounding innocuous?", 1995).
template <typename FloatFn, typename IntFn>
Result MapUnary(const Node* node, HostOperands operands, FloatFn on_floats, IntFn on_integers) {
  const HostTensor& x = *operands[0];
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  const int64_t size = result.size();
  if (ir::IsFloat(x.dtype)) {
    for (int64_t i = 0; i < size; ++i) result.SetFloat(i, on_floats(x.Float(i)));
  } else {
    for (int64_t i = 0; i < size; ++i) result.SetInt(i, on_integers(x.Int(i)));
  }
  return result;
}

template <typename FloatFn>
Result MapFloat(const Node* node, HostOperands operands, FloatFn on_floats) {
  return MapUnary(node, operands, on_floats, [](int64_t v) { return v; });
}

// A fast path for the most frequent dtypes: reads and writes elements directly.
template <typename T, typename Fn>
void MapElements(const HostTensor& a, const HostTensor& b, int64_t size, Fn function,
                 HostTensor& result) {
  const T* const left = ElementsOf<T>(a);
  const T* const right = ElementsOf<T>(b);
  T* const to = ElementsOf<T>(result);
  for (int64_t i = 0; i < size; ++i) to[i] = static_cast<T>(function(left[i], right[i]));
}

template <typename FloatFn, typename IntFn>
Result MapBinary(const Node* node, HostOperands operands, FloatFn on_floats, IntFn on_integers) {
  const HostTensor& a = *operands[0];
  const HostTensor& b = *operands[1];
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  const int64_t size = result.size();
  const bool same = a.dtype == result.dtype && b.dtype == result.dtype;
  if (same && a.dtype == DType::kFloat32) {
    MapElements<float>(a, b, size, on_floats, result);
  } else if (same && a.dtype == DType::kInt64) {
    MapElements<int64_t>(a, b, size, on_integers, result);
  } else if (ir::IsFloat(a.dtype)) {
    for (int64_t i = 0; i < size; ++i) result.SetFloat(i, on_floats(a.Float(i), b.Float(i)));
  } else {
    for (int64_t i = 0; i < size; ++i) result.SetInt(i, on_integers(a.Int(i), b.Int(i)));
  }
  return result;
}

template <typename IntFn>
Result MapIntegers(const Node* node, HostOperands operands, IntFn on_integers) {
  return MapBinary(
      node, operands, [](double, double) { return std::nan(""); }, on_integers);
}

template <typename FloatFn, typename IntFn>
Result Compare(const Node* node, HostOperands operands, FloatFn on_floats, IntFn on_integers) {
  const HostTensor& a = *operands[0];
  const HostTensor& b = *operands[1];
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  const int64_t size = result.size();
  if (ir::IsFloat(a.dtype)) {
    for (int64_t i = 0; i < size; ++i) result.SetInt(i, on_floats(a.Float(i), b.Float(i)));
  } else {
    for (int64_t i = 0; i < size; ++i) result.SetInt(i, on_integers(a.Int(i), b.Int(i)));
  }
  return result;
}

// Compares integers whose bits are stored in int64.
bool LessBits(DType dtype, int64_t a, int64_t b) {
  if (dtype == DType::kUInt64) return static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
  return a < b;
}

// Wrapping arithmetic: two's complement in 64 bits, truncated by SetInt.
uint64_t Bits(int64_t value) { return static_cast<uint64_t>(value); }
int64_t Number(uint64_t bits) { return static_cast<int64_t>(bits); }

int64_t FloorDivide(DType dtype, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (dtype == DType::kUInt64) return Number(Bits(a) / Bits(b));
  if (b == -1) return Number(-Bits(a));  // the lowest number wraps to itself
  // C++ rounds towards 0.
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t FloorModulo(DType dtype, int64_t a, int64_t b) {
  if (b == 0) return 0;
  return Number(Bits(a) - Bits(FloorDivide(dtype, a, b)) * Bits(b));
}

double FloorModuloOfFloats(double a, double b) {
  // fmod is exact; a - floor(a / b) * b would round at every step.
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

// Wraps. Only 1 and -1 have negative powers that are whole numbers; others give 0.
int64_t PowerOfIntegers(DType dtype, int64_t a, int64_t b) {
  if (ir::IsSigned(dtype) && b < 0) {
    if (a != 1 && a != -1) return 0;
    // For 1 and -1 only the parity of the exponent matters.
    b &= 1;
  }
  uint64_t product = 1;
  uint64_t square = Bits(a);
  for (uint64_t exponent = Bits(b); exponent != 0; exponent >>= 1) {
    if (exponent & 1) product *= square;
    square *= square;
  }
  return Number(product);
}

// Compares the amount as an unsigned number of the dtype: negative ones are too large.
bool ShiftsOut(DType dtype, int64_t amount) {
  return amount < 0 || amount >= 8 * ir::SizeOf(dtype);
}

// Int() has sign- or zero-extended, so the arithmetic shift is right for all dtypes except uint64.
int64_t ShiftRight(DType dtype, int64_t value, int64_t amount) {
  if (dtype == DType::kUInt64) return ShiftsOut(dtype, amount) ? 0 : Number(Bits(value) >> amount);
  return value >> (ShiftsOut(dtype, amount) ? 63 : amount);
}

// fmax and fmin return the number if one operand is NaN; these ops return NaN.
double NanOr(double a, double b, double otherwise) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : otherwise;
}

}  // namespace

Result EvaluateNeg(const Node* node, HostOperands operands) {
  return MapUnary(
      node, operands, [](double v) { return -v; }, [](int64_t v) { return Number(-Bits(v)); });
}
Result EvaluateReciprocal(const Node* node, HostOperands operands) {
  return MapFloat(node, operands, [](double v) { return 1.0 / v; });
}
Result EvaluateSqrt(const Node* node, HostOperands operands) {
  return MapFloat(node, operands, [](double v) { return std::sqrt(v); });
}
Result EvaluateExp2(const Node* node, HostOperands operands) {
  return MapFloat(node, operands, [](double v) { return std::exp2(v); });
}
Result EvaluateLog2(const Node* node, HostOperands operands) {
  return MapFloat(node, operands, [](double v) { return std::log2(v); });
}
Result EvaluateSin(const Node* node, HostOperands operands) {
  return MapFloat(node, operands, [](double v) { return std::sin(v); });
}
Result EvaluateTrunc(const Node* node, HostOperands operands) {
  return MapFloat(node, operands, [](double v) { return std::trunc(v); });
}
Result EvaluateNot(const Node* node, HostOperands operands) {
  const bool is_bool = node->dtype() == DType::kBool;
  return MapUnary(
      node, operands, [](double v) { return v; },
      [is_bool](int64_t v) { return is_bool ? int64_t{v == 0} : ~v; });
}

Result EvaluateCast(const Node* node, HostOperands operands) {
  const HostTensor& x = *operands[0];
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  const int64_t size = result.size();
  const bool from_float = ir::IsFloat(x.dtype), is_uint64 = x.dtype == DType::kUInt64;
  if (ir::IsFloat(result.dtype)) {
    for (int64_t i = 0; i < size; ++i) {
      result.SetFloat(i,
                      from_float ? x.Float(i) : IntegerToFloat(result.dtype, x.Int(i), is_uint64));
    }
  } else {
    for (int64_t i = 0; i < size; ++i) {
      result.SetInt(i, from_float ? FloatToInteger(result.dtype, x.Float(i)) : x.Int(i));
    }
  }
  return result;
}

Result EvaluateBitcast(const Node* node, HostOperands operands) {
  return HostTensor{node->dtype(), node->shape(), operands[0]->bytes};
}

Result EvaluateAdd(const Node* node, HostOperands operands) {
  return MapBinary(
      node, operands, [](double a, double b) { return a + b; },
      [](int64_t a, int64_t b) { return Number(Bits(a) + Bits(b)); });
}
Result EvaluateSub(const Node* node, HostOperands operands) {
  return MapBinary(
      node, operands, [](double a, double b) { return a - b; },
      [](int64_t a, int64_t b) { return Number(Bits(a) - Bits(b)); });
}
Result EvaluateMul(const Node* node, HostOperands operands) {
  return MapBinary(
      node, operands, [](double a, double b) { return a * b; },
      [](int64_t a, int64_t b) { return Number(Bits(a) * Bits(b)); });
}
Result EvaluateDiv(const Node* node, HostOperands operands) {
  return MapBinary(
      node, operands, [](double a, double b) { return a / b; },
      // Never called: div converts integers to floats first.
      [](int64_t a, int64_t) { return a; });
}
Result EvaluateIDiv(const Node* node, HostOperands operands) {
  const DType dtype = node->dtype();
  return MapIntegers(node, operands,
                     [dtype](int64_t a, int64_t b) { return FloorDivide(dtype, a, b); });
}
Result EvaluateMod(const Node* node, HostOperands operands) {
  const DType dtype = node->dtype();
  return MapBinary(node, operands, FloorModuloOfFloats,
                   [dtype](int64_t a, int64_t b) { return FloorModulo(dtype, a, b); });
}
Result EvaluateMaximum(const Node* node, HostOperands operands) {
  const DType dtype = node->dtype();
  return MapBinary(
      node, operands, [](double a, double b) { return NanOr(a, b, std::fmax(a, b)); },
      [dtype](int64_t a, int64_t b) { return LessBits(dtype, a, b) ? b : a; });
}
Result EvaluateMinimum(const Node* node, HostOperands operands) {
  const DType dtype = node->dtype();
  return MapBinary(
      node, operands, [](double a, double b) { return NanOr(a, b, std::fmin(a, b)); },
      [dtype](int64_t a, int64_t b) { return LessBits(dtype, b, a) ? b : a; });
}
Result EvaluatePow(const Node* node, HostOperands operands) {
  const DType dtype = node->dtype();
  return MapBinary(
      node, operands, [](double a, double b) { return std::pow(a, b); },
      [dtype](int64_t a, int64_t b) { return PowerOfIntegers(dtype, a, b); });
}

Result EvaluateLess(const Node* node, HostOperands operands) {
  const DType dtype = operands[0]->dtype;
  return Compare(
      node, operands, [](double a, double b) { return a < b; },
      [dtype](int64_t a, int64_t b) { return LessBits(dtype, a, b); });
}
Result EvaluateEqual(const Node* node, HostOperands operands) {
  return Compare(
      node, operands, [](double a, double b) { return a == b; },
      [](int64_t a, int64_t b) { return a == b; });
}
Result EvaluateNotEqual(const Node* node, HostOperands operands) {
  return Compare(
      node, operands, [](double a, double b) { return a != b; },
      [](int64_t a, int64_t b) { return a != b; });
}

Result EvaluateAnd(const Node* node, HostOperands operands) {
  return MapIntegers(node, operands, [](int64_t a, int64_t b) { return a & b; });
}
Result EvaluateOr(const Node* node, HostOperands operands) {
  return MapIntegers(node, operands, [](int64_t a, int64_t b) { return a | b; });
}
Result EvaluateXor(const Node* node, HostOperands operands) {
  return MapIntegers(node, operands, [](int64_t a, int64_t b) { return a ^ b; });
}
Result EvaluateShl(const Node* node, HostOperands operands) {
  const DType dtype = node->dtype();
  return MapIntegers(node, operands, [dtype](int64_t a, int64_t b) {
    return ShiftsOut(dtype, b) ? 0 : Number(Bits(a) << b);
  });
}
Result EvaluateShr(const Node* node, HostOperands operands) {
  const DType dtype = node->dtype();
  return MapIntegers(node, operands,
                     [dtype](int64_t a, int64_t b) { return ShiftRight(dtype, a, b); });
}

Result EvaluateWhere(const Node* node, HostOperands operands) {
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  const int bytes = ir::SizeOf(node->dtype());
  const int64_t size = result.size();
  for (int64_t i = 0; i < size; ++i) {
    const HostTensor& chosen = *operands[operands[0]->Int(i) != 0 ? 1 : 2];
    // Copies bytes, so that even a NaN's payload is kept.
    std::memcpy(&result.bytes[i * bytes], &chosen.bytes[i * bytes], bytes);
  }
  return result;
}

}  // namespace kiln::ops
