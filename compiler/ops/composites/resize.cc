// Resizes the last dimensions: interpolation and adaptive pooling, one dimension after the other,
// since each is separable.
#include <algorithm>
#include <array>
#include <limits>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/sliding.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

// Resizing of one dimension from `length` to `size`.
struct Resize {
  int64_t axis, length, size;
  double ratio;  // elements of x per element of the result
  bool align_corners;
  SizeRange lengths, sizes;  // for which the form is right
};

// Returns int32 if products of both sizes fit.
DType IndexType(const Resize& r) {
  const auto length = static_cast<double>(r.lengths.most);
  const auto size = static_cast<double>(r.sizes.most);
  return 2 * length * (size + 1) < 2e9 ? DType::kInt32 : DType::kInt64;
}

bool IsExact(const Resize& r) {
  return r.ratio == static_cast<double>(r.length) / static_cast<double>(r.size);
}

// Returns whether `x` is a multiple of `y` and, as far as the ends of the ranges say, is so with
// one factor for all sizes.
bool IsMultiple(int64_t x, const SizeRange& xs, int64_t y, const SizeRange& ys) {
  if (x % y != 0) return false;
  if ((xs.is_fixed() && ys.is_fixed()) || (ys.is_fixed() && y == 1)) return true;
  return xs.least == x / y * ys.least && xs.most == x / y * ys.most;
}
bool Repeats(const Resize& r) { return IsMultiple(r.size, r.sizes, r.length, r.lengths); }
bool Picks(const Resize& r) { return IsMultiple(r.length, r.lengths, r.size, r.sizes); }

// Returns the quotient of two sizes, computed from constants. Many sizes above 256 have no bfloat16.
const Node* Quotient(Builder& b, int64_t dividend, int64_t divisor, DType dtype) {
  const DType wide = ir::SizeOf(dtype) < 4 ? DType::kFloat32 : dtype;
  const Node* quotient = b.Div(b.Const(wide, static_cast<double>(dividend)),
                               b.Const(wide, static_cast<double>(divisor)));
  return wide == dtype ? quotient : b.Cast(quotient, dtype);
}

// Returns the ratio as a scalar. If it changes with the sizes, it is computed from them: no formula
// describes the quotient of two variables.
const Node* Ratio(Builder& b, const Resize& r, DType dtype) {
  const bool fixed = (r.lengths.is_fixed() && r.sizes.is_fixed()) || Repeats(r) || Picks(r);
  if (fixed || !IsExact(r)) return b.Const(dtype, r.ratio);
  return Quotient(b, r.length, r.size, dtype);
}

// Reshapes a vector along the axis so that it broadcasts against x.
const Node* AlongAxis(Builder& b, const Node* vector, const Node* x, const Resize& r) {
  Shape shape(x->shape().size() - static_cast<size_t>(r.axis), 1);
  shape[0] = r.size;
  return b.Reshape(vector, shape);
}

// Returns (… length …) as (… outer, inner …).
const Node* SplitAxis(Builder& b, const Node* x, int64_t axis, int64_t outer, int64_t inner) {
  Shape shape = x->shape();
  shape[axis] = outer;
  shape.insert(shape.begin() + axis + 1, inner);
  return b.Reshape(x, shape);
}

// Repeats each element size / length times.
const Node* Repeat(Builder& b, const Node* x, const Resize& r) {
  const Node* split = SplitAxis(b, x, r.axis, r.length, 1);
  Shape wide = split->shape();
  wide[r.axis + 1] = r.size / r.length;
  Shape shape = x->shape();
  shape[r.axis] = r.size;
  return b.Reshape(b.Expand(split, wide), shape);
}

// Takes element `offset` of every group of length / size.
const Node* Pick(Builder& b, const Node* x, const Resize& r, int64_t offset) {
  const Node* split = SplitAxis(b, x, r.axis, r.size, r.length / r.size);
  Shape shape = x->shape();
  shape[r.axis] = r.size;
  return b.Reshape(b.Slice(split, r.axis + 1, offset, offset + 1), shape);
}

// Takes the element floor(o * length / size), or with `centered` floor((o + 1/2) * length / size).
const Node* Nearest(Builder& b, const Node* x, const Resize& r, bool centered) {
  // Uses the ratio of the sizes in integers, so that no rounding selects a neighbour.
  if (IsExact(r)) {
    if (Repeats(r)) return Repeat(b, x, r);
    const int64_t step = r.length / r.size;
    if (Picks(r)) return Pick(b, x, r, centered ? step / 2 : 0);
    const DType dtype = IndexType(r);
    const Node* o = b.Iota(dtype, {r.size}, 0);
    const auto constant = [&](int64_t value) { return b.ConstInt(dtype, value); };
    const Node* scaled = centered
                             ? b.Mul(b.Add(b.Mul(o, constant(2)), constant(1)), constant(r.length))
                             : b.Mul(o, constant(r.length));
    const Node* index = b.Binary(Op::kIDiv, scaled, constant(centered ? 2 * r.size : r.size));
    return b.Gather(x, index, r.axis);
  }
  const Node* o = b.Iota(DType::kFloat64, {r.size}, 0);
  const Node* place = b.Mul(b.Add(o, centered ? 0.5 : 0.0), r.ratio);
  const Node* index =
      b.Binary(Op::kMin, b.Cast(place, DType::kInt64), b.ConstInt(DType::kInt64, r.length - 1));
  return b.Gather(x, index, r.axis);
}

// Returns the positions of the result's elements in x's coordinates.
const Node* Places(Builder& b, const Resize& r, DType dtype) {
  const Node* o = b.Iota(dtype, {r.size}, 0);
  if (!r.align_corners) return b.Add(b.Mul(b.Add(o, 0.5), Ratio(b, r, dtype)), -0.5);
  if (r.size == 1) return b.Mul(o, 0.0);
  if (r.lengths.is_fixed() && r.sizes.is_fixed()) {
    return b.Mul(o, static_cast<double>(r.length - 1) / static_cast<double>(r.size - 1));
  }
  return b.Mul(o, Quotient(b, r.length - 1, r.size - 1, dtype));
}

const Node* GatherClamped(Builder& b, const Node* x, const Node* index, const Resize& r) {
  const Node* last = b.ConstInt(index->dtype(), r.length - 1);
  const Node* held =
      b.Binary(Op::kMin, b.Binary(Op::kMax, index, b.ConstInt(index->dtype(), 0)), last);
  return b.Gather(x, held, r.axis);
}

const Node* Linear(Builder& b, const Node* x, const Resize& r) {
  const DType dtype = x->dtype();
  // As in PyTorch: before x's first element linear interpolation repeats it, while cubic clamps
  // each of its four indices to x.
  const Node* place = b.Binary(Op::kMax, Places(b, r, dtype), b.Const(dtype, 0));
  const Node* below = b.Trunc(place);
  const Node* index = b.Cast(below, IndexType(r));
  const Node* weight = AlongAxis(b, b.Sub(place, below), x, r);
  const Node* first = GatherClamped(b, x, index, r);
  const Node* second = GatherClamped(b, x, b.Add(index, b.ConstInt(index->dtype(), 1)), r);
  return b.Add(b.Mul(first, b.Add(b.Neg(weight), 1.0)), b.Mul(second, weight));
}

// Keys' cubic convolution with a = -3/4 (1981), like PyTorch and OpenCV; t in [0, 2).
constexpr double kCubic = -0.75;
const Node* CubicNear(Builder& b, const Node* t) {  // t <= 1
  const Node* inner = b.Add(b.Mul(t, kCubic + 2), -(kCubic + 3));
  return b.Add(b.Mul(b.Mul(inner, t), t), 1.0);
}
const Node* CubicFar(Builder& b, const Node* t) {  // 1 < t < 2
  const Node* inner = b.Add(b.Mul(b.Add(b.Mul(t, kCubic), -5 * kCubic), t), 8 * kCubic);
  return b.Add(b.Mul(inner, t), -4 * kCubic);
}

const Node* Cubic(Builder& b, const Node* x, const Resize& r) {
  const DType dtype = x->dtype();
  const Node* place = Places(b, r, dtype);
  const Node* below = Floor(b, place);
  const Node* index = b.Cast(below, IndexType(r));
  const Node* t = b.Sub(place, below);
  const Node* rest = b.Add(b.Neg(t), 1.0);
  const std::array<const Node*, 4> weights = {CubicFar(b, b.Add(t, 1.0)), CubicNear(b, t),
                                              CubicNear(b, rest), CubicFar(b, b.Add(rest, 1.0))};
  const Node* sum = nullptr;
  for (int64_t k = 0; k < 4; ++k) {
    const Node* at = b.Add(index, b.ConstInt(index->dtype(), k - 1));
    const Node* term = b.Mul(GatherClamped(b, x, at, r), AlongAxis(b, weights[k], x, r));
    sum = sum == nullptr ? term : b.Add(sum, term);
  }
  return sum;
}

const Node* ResizeAxis(Builder& b, const Node* x, const Resize& r, const std::string& mode) {
  const bool same = r.length == r.size && (r.align_corners || IsExact(r));
  if (same) return x;
  if (mode == "linear") return Linear(b, x, r);
  if (mode == "cubic") return Cubic(b, x, r);
  return Nearest(b, x, r, mode == "nearest-exact");
}

// Returns the dtype in which linear and cubic interpolation accumulate: floats unchanged, integers
// in a float that holds them exactly (of 64-bit integers the upper 53 bits).
DType BlendingType(DType dtype) {
  if (ir::IsFloat(dtype)) return dtype;
  return ir::SizeOf(dtype) <= 2 ? DType::kFloat32 : DType::kFloat64;
}

Expansion ExpandInterpolate(Builder& b, Operands operands, const Attributes& attributes) {
  const bool blends =
      StringOf(attributes, "mode") == "linear" || StringOf(attributes, "mode") == "cubic";
  const DType dtype = operands[0]->dtype();
  const Node* x = blends ? b.Cast(operands[0], BlendingType(dtype)) : operands[0];
  const std::vector<int64_t>& size = IntsOf(attributes, "size");
  const double scale = FloatOf(attributes, "scale");
  const size_t first = x->shape().size() - size.size();
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t length = x->shape()[first + i];
    const double ratio =
        scale > 0 ? 1 / scale : static_cast<double>(length) / static_cast<double>(size[i]);
    x = ResizeAxis(b, x,
                   {static_cast<int64_t>(first + i), length, size[i], ratio,
                    BoolOf(attributes, "align_corners"), b.RangeOf(length), b.RangeOf(size[i])},
                   StringOf(attributes, "mode"));
  }
  return x->dtype() == dtype ? x : b.Cast(Rounded(b, x), dtype);
}

// The elements from floor(o * length / size) to ceil((o + 1) * length / size), as a new dimension
// after the axis, and a mask of the valid ones.
struct Taps {
  const Node* values;
  const Node* inside;  // (size, taps, 1, …)
  const Node* count;   // (size, 1, …)
};
Taps AdaptiveTaps(Builder& b, const Node* x, const Resize& r) {
  const DType dtype = IndexType(r);
  // The maximum number of elements in such an interval.
  const int64_t length_max = r.sizes.is_fixed() ? r.lengths.most : r.length;
  const int64_t taps = std::min(length_max, (length_max + r.size - 1) / r.size + 1);
  const auto constant = [&](int64_t value) { return b.ConstInt(dtype, value); };
  const Node* o = b.Iota(dtype, {r.size, 1}, 0);
  const Node* begin = b.Binary(Op::kIDiv, b.Mul(o, constant(r.length)), constant(r.size));
  const Node* above = b.Add(b.Mul(b.Add(o, constant(1)), constant(r.length)), constant(r.size - 1));
  const Node* end = b.Binary(Op::kIDiv, above, constant(r.size));
  const Node* index = b.Add(begin, b.Iota(dtype, {1, taps}, 1));
  const size_t after = x->shape().size() - static_cast<size_t>(r.axis) - 1;
  Shape shape = {r.size, taps};
  shape.insert(shape.end(), after, 1);
  Shape rows(after + 1, 1);
  rows[0] = r.size;
  return {b.Gather(x, index, r.axis), b.Reshape(b.Less(index, end), shape),
          b.Reshape(b.Sub(end, begin), rows)};
}

const Node* AdaptiveMean(Builder& b, const Node* x, const Resize& r) {
  if (Picks(r)) {
    const int64_t step = r.length / r.size;
    const Node* sum = b.Sum(SplitAxis(b, x, r.axis, r.size, step), {r.axis + 1});
    return b.Mul(sum, 1.0 / static_cast<double>(step));
  }
  const Taps taps = AdaptiveTaps(b, x, r);
  const Node* inside = b.Where(taps.inside, taps.values, b.Const(x->dtype(), 0));
  return b.Div(b.Sum(inside, {r.axis + 1}), b.Cast(taps.count, x->dtype()));
}

const Node* AdaptiveMax(Builder& b, const Node* x, const Resize& r) {
  if (Picks(r)) {
    return MaxOfFirst(b, SplitAxis(b, x, r.axis, r.size, r.length / r.size), {r.axis + 1}, nullptr);
  }
  const Taps taps = AdaptiveTaps(b, x, r);
  const Node* lowest = b.Const(x->dtype(), -std::numeric_limits<double>::infinity());
  return MaxOfFirst(b, b.Where(taps.inside, taps.values, lowest), {r.axis + 1}, taps.inside);
}

// Starts with the last dimension, so that the first of equal elements is the first in row-major
// order.
template <typename PoolFn>
Expansion ExpandAdaptive(Builder& b, const Node* x, const Attributes& attributes, PoolFn pool) {
  const std::vector<int64_t>& size = IntsOf(attributes, "size");
  const size_t first = x->shape().size() - size.size();
  for (size_t i = size.size(); i-- > 0;) {
    const auto axis = static_cast<int64_t>(first + i);
    const int64_t length = x->shape()[axis];
    x = pool(b, x, Resize{axis, length, size[i], 0, false, b.RangeOf(length), b.RangeOf(size[i])});
  }
  return x;
}
Expansion ExpandAdaptiveMean(Builder& b, Operands x, const Attributes& attributes) {
  return ExpandAdaptive(b, x[0], attributes, AdaptiveMean);
}
Expansion ExpandAdaptiveMax(Builder& b, Operands x, const Attributes& attributes) {
  return ExpandAdaptive(b, x[0], attributes, AdaptiveMax);
}

constexpr Rule kResizeShape = {"resize", "x", R"rule(
  size = attributes["size"]
  check 0 < len(size) <= len(x):
    '"size" has {len(size)} entries for shape {x}; it needs one for each spatial dimension, the '
    "last ones"
  spatial = x[-len(size):]
  check all(length >= 1 for length in size + spatial):
    "cannot resize {spatial} to {size}; every size must be at least 1"
  -> x[:-len(size)] + size
)rule"};

OpDef Resizing(OpDef row) {
  row.attributes.insert(row.attributes.begin(), RequiredInts("size"));
  row.shape_rule = kResizeShape;
  return row;
}

}  // namespace

std::vector<OpDef> ResizeComposites() {
  OpDef interpolate = Resizing(Composite(
      "interpolate", {"x"}, DTypeRule::kSame, DTypeClass::kNumeric, ExpandInterpolate,
      "The last dimensions resampled to size, as PyTorch's: mode nearest, nearest-exact, linear or "
      "cubic (Keys, 1981). A scale above 0 places samples 1 / scale apart, else x's size over the "
      "result's. Integers stay integers: rounded to the nearest, the ends of their range where a "
      "cubic goes beyond"));
  interpolate.attributes.insert(
      interpolate.attributes.end(),
      {OneOf(OptionalString("mode", "nearest"), {"nearest", "nearest-exact", "linear", "cubic"}),
       OptionalBool("align_corners", false), NotNegative(OptionalFloat("scale", 0))});
  return {
      std::move(interpolate),
      Resizing(Composite("adaptive_avg_pool", {"x"}, DTypeRule::kPromoteFloat, DTypeClass::kAny,
                         ExpandAdaptiveMean,
                         "The mean of x's elements from floor(i * length / size) to ceil((i + 1) * "
                         "length / size), over the last dimensions")),
      Resizing(Composite("adaptive_max_pool", {"x"}, DTypeRule::kSame, DTypeClass::kNumeric,
                         ExpandAdaptiveMax,
                         "The largest of the elements that adaptive_avg_pool takes the mean of; of "
                         "equal ones the first has the gradient")),
  };
}

}  // namespace kiln::ops
