// Makes operands for a case of the table from values of the graph.
#include <algorithm>
#include <cmath>

#include "tests/numerics/random/generator.h"

namespace kiln::numerics {

using ir::DType;
using ir::Node;
using ir::Op;

// Returns a value of the graph, or sometimes a new input, in the operand's dtype, shape and range.
// `exact`: only exact values, by exact conversions.
Value Generator::Fitted(const OperandSpec& spec, DType dtype, bool exact, int position) {
  const bool is_float = ir::IsFloat(dtype);
  const Value x = Pick([&](const Value& value) {
    const bool becomes_whole = !is_float && ir::IsFloat(value.node->dtype());
    return ir::NumElements(value.node->shape()) > 0 && (value.exact || !(exact || becomes_whole));
  });
  if (x.node == nullptr || Draw(8) == 0) return NewInput(OperandValue(spec, dtype, position));
  Value fitted = InDType(x, dtype);
  if (fitted.node == nullptr) return {};
  fitted.node = InShape(fitted.node, spec.shape);
  if (dtype == DType::kBool) return fitted;
  if (spec.low >= spec.high) return AroundCase(fitted, spec, position);
  return is_float && !exact && Draw(4) == 0 ? AroundCase(fitted, spec, position)
                                            : InRange(fitted, spec, exact);
}

// Returns the case's own operand, changed slightly by a value of the graph.
Value Generator::Near(const OperandSpec& spec, DType dtype, int position) {
  const Value x = Pick([](const Value& value) {
    return ir::IsFloat(value.node->dtype()) && ir::NumElements(value.node->shape()) > 0;
  });
  if (x.node == nullptr) return {};
  const Value moved = InDType(x, dtype);
  return AroundCase({InShape(moved.node, spec.shape)}, spec, position);
}

Value Generator::InDType(const Value& x, DType dtype) {
  const DType from = x.node->dtype();
  if (from == dtype) return x;
  const bool to_float = ir::IsFloat(dtype);
  if (ir::IsFloat(from) && !to_float) {
    return x.exact ? Value{builder_.Cast(x.node, dtype), true} : Value{};
  }
  // Large integers as small floats, otherwise fewer would be kept.
  if (ir::IsInteger(from) && to_float) {
    const Node* small = builder_.Binary(Op::kMod, x.node, builder_.ConstInt(from, 7));
    return {builder_.Cast(small, dtype), true};
  }
  // A narrower float may be on either side of a boundary unless it represents the number exactly.
  const bool narrows = to_float && ir::SizeOf(dtype) < ir::SizeOf(from);
  return {builder_.Cast(x.node, dtype), x.exact && !narrows};
}

// Returns the elements in order, with some of them omitted or repeated.
const Node* Generator::InShape(const Node* x, const ir::Shape& shape) {
  if (x->shape() == shape) return x;
  const int64_t wanted = ir::NumElements(shape);
  const int64_t have = ir::NumElements(x->shape());
  const Node* flat = builder_.Reshape(x, {have});
  if (have < wanted) {
    const int64_t times = (wanted + have - 1) / have;
    if (Coin()) {
      flat = builder_.Reshape(builder_.BroadcastTo(flat, {times, have}), {times * have});
    } else {
      flat = builder_.Reshape(
          builder_.BroadcastTo(builder_.Reshape(flat, {have, 1}), {have, times}), {times * have});
    }
  }
  const int64_t length = flat->shape()[0];
  const int64_t begin = Between(0, length - wanted);
  if (length > wanted) flat = builder_.Slice(flat, 0, begin, begin + wanted);
  return builder_.Reshape(flat, shape);
}

// Integers by a remainder; floats unchanged if possible, otherwise clipped, or by a sine.
Value Generator::InRange(const Value& x, const OperandSpec& spec, bool exact) {
  const DType dtype = x.node->dtype();
  if (!sensitivity_.Evaluate(x.node).ok()) return {};
  const ops::HostTensor& now = sensitivity_.Value(x.node);
  bool fits = true;
  for (int64_t i = 0; i < now.size(); ++i) {
    fits = fits && now.Number(i) >= spec.low && now.Number(i) < spec.high;
  }
  if (!ir::IsFloat(dtype)) {
    const auto range = static_cast<int64_t>(spec.high - spec.low);
    if (fits || range > INT32_MAX) return {x.node, true};
    const Node* rest = builder_.Binary(Op::kMod, x.node, builder_.ConstInt(dtype, range));
    const Node* low = builder_.ConstInt(dtype, static_cast<int64_t>(spec.low));
    return {builder_.Add(rest, low), true};
  }
  if (fits && (exact || Coin())) return x;
  if (exact || Coin()) {
    // Quarters within the range are short numbers.
    const double low = std::ceil(spec.low * 4) / 4;
    const double high = std::ceil(spec.high * 4) / 4 - 0.25;
    if (low > high) return exact ? Value{} : AroundCase(x, spec, 0);
    const Node* above = builder_.Binary(Op::kMax, x.node, builder_.Const(dtype, low));
    return {builder_.Binary(Op::kMin, above, builder_.Const(dtype, high)), x.exact};
  }
  const double half = (spec.high - spec.low) / 2;
  const Node* wave = builder_.Mul(builder_.Sin(x.node), half * 0.999);
  return {builder_.Add(wave, spec.low + half)};
}

// Returns the case's own operand, changed slightly; it keeps properties such as positive definite
// matrices.
Value Generator::AroundCase(const Value& x, const OperandSpec& spec, int position) {
  const DType dtype = x.node->dtype();
  const Value around = NewInput(OperandValue(spec, dtype, position));
  if (!ir::IsFloat(dtype)) return around;
  const double range = std::abs(spec.high - spec.low);
  return {builder_.Add(around.node, builder_.Mul(builder_.Sin(x.node), range / 32))};
}

}  // namespace kiln::numerics
