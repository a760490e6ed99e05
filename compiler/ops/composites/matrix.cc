// Diagonals, cross products and rolling: views of matrices and arrays.
#include <algorithm>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

Expansion ExpandDiagonal(Builder& b, Operands x, const Attributes& attributes) {
  const size_t rank = x[0]->shape().size();
  return Diagonal(b, x[0], NormalizeAxis(IntOf(attributes, "axis1"), rank).value(),
                  NormalizeAxis(IntOf(attributes, "axis2"), rank).value(),
                  IntOf(attributes, "offset"));
}

// Every row holds x's element of that row's number; only the diagonal's columns are kept.
Expansion ExpandDiagEmbed(Builder& b, Operands x, const Attributes& attributes) {
  const int64_t offset = IntOf(attributes, "offset");
  const int64_t before = offset < 0 ? -offset : 0;
  const int64_t after = offset > 0 ? offset : 0;
  std::vector<int64_t> padding(2 * x[0]->shape().size(), 0);
  padding[padding.size() - 2] = before;
  padding[padding.size() - 1] = after;
  const Node* rows = b.Unsqueeze(b.Pad(x[0], padding), -1);
  const int64_t size = rows->shape()[rows->shape().size() - 2];
  const Node* row = b.Iota(DType::kInt64, {size, 1}, 0);
  const Node* column = b.Iota(DType::kInt64, {1, size}, 1);
  const Node* on_diagonal = b.Equal(b.Sub(column, row), b.ConstInt(DType::kInt64, offset));
  return b.Where(on_diagonal, rows, b.Const(x[0]->dtype(), 0));
}

// Element i of the product is a[i+1] b[i+2] - a[i+2] b[i+1], with cyclic indices.
Expansion ExpandCross(Builder& b, Operands x, const Attributes& attributes) {
  const Shape shape = BroadcastShapes({x[0]->shape(), x[1]->shape()}).value();
  const int64_t axis = NormalizeAxis(IntOf(attributes, "axis"), shape.size()).value();
  const Node* left = b.BroadcastTo(x[0], shape);
  const Node* right = b.BroadcastTo(x[1], shape);
  const auto turned = [&](const Node* v, int64_t by) { return Rolled(b, v, axis, -by); };
  return b.Sub(b.Mul(turned(left, 1), turned(right, 2)), b.Mul(turned(left, 2), turned(right, 1)));
}

Expansion ExpandRoll(Builder& b, Operands x, const Attributes& attributes) {
  const std::vector<int64_t>& shifts = IntsOf(attributes, "shifts");
  const std::vector<int64_t>& axes = IntsOf(attributes, "axes");
  const Node* result = x[0];
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = NormalizeAxis(axes[i], x[0]->shape().size()).value();
    result = Rolled(b, result, axis, shifts[i]);
  }
  return result;
}

OpDef WithAttributes(OpDef row, std::vector<AttributeDef> attributes, Rule rule) {
  row.attributes = std::move(attributes);
  row.shape_rule = rule;
  return row;
}

constexpr Rule kDiagonalShape = {"diagonal", "x", R"rule(
  rows = normalize_axis(attributes["axis1"], len(x))
  columns = normalize_axis(attributes["axis2"], len(x))
  check rows != columns: "the diagonal of axis {rows} and itself; it needs two axes"
  offset = attributes["offset"]
  height = max(x[rows] + min(offset, 0), 0)
  width = max(x[columns] - max(offset, 0), 0)
  -> tuple(x[i] for i in range(len(x)) if i != rows and i != columns) + (min(height, width),)
)rule"};

constexpr Rule kDiagEmbedShape = {"diag_embed", "x", R"rule(
  check len(x) > 0: "diag_embed of a scalar; it needs a dimension"
  offset = attributes["offset"]
  check abs(offset) <= 72057594037927936: "diag_embed with an offset of {offset}; it is too far"
  size = x[-1] + abs(offset)
  -> x[:-1] + (size, size)
)rule"};

constexpr Rule kShiftsRule = {"shifts", "x", R"rule(
  axes = attributes["axes"]
  shifts = attributes["shifts"]
  check len(shifts) == len(axes):
    '"{op.name}" with {len(shifts)} shifts and {len(axes)} axes; each axis needs one'
  check_axes(axes, len(x))
)rule"};

constexpr Rule kThreeAlongAxisRule = {"three_along_axis", "a, b", R"rule(
  axis = normalize_axis(attributes["axis"], len(shape))
  check shape[axis] == 3:
    '"{op.name}" of {a} and {b} along axis {axis}, which has size {shape[axis]}; it must be 3'
)rule"};

}  // namespace

const Node* Diagonal(Builder& b, const Node* x, int64_t row_axis, int64_t column_axis,
                     int64_t offset) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < static_cast<int64_t>(x->shape().size()); ++i) {
    if (i != row_axis && i != column_axis) order.push_back(i);
  }
  order.insert(order.end(), {row_axis, column_axis});
  const Node* matrix = b.Permute(x, order);
  const int64_t height = matrix->shape()[order.size() - 2];
  const int64_t width = matrix->shape().back();
  // Clamped before it is negated: the smallest int64 has no opposite.
  const int64_t top = std::clamp<int64_t>(-std::max(offset, -height), 0, height);
  const int64_t left = std::clamp<int64_t>(offset, 0, width);
  const int64_t size = std::min(height - top, width - left);
  Shape flat(matrix->shape().begin(), matrix->shape().end() - 2);
  Shape result = flat;
  result.push_back(size);
  if (size == 0) return b.Reshape(b.Slice(matrix, -2, 0, 0), result);
  // The diagonal's rows one after the other, from the diagonal's first element on. In rows that are
  // longer by 1 the diagonal is the first column. All sizes are linear in the diagonal's length, so
  // one program can serve several offsets.
  Shape skewed = result;
  skewed.push_back(width + 1);
  flat.push_back(size * width);
  const Node* rows = b.Reshape(b.Slice(matrix, -2, top, top + size), flat);
  rows = b.Slice(rows, -1, left, size * width);
  std::vector<int64_t> padding(2 * flat.size(), 0);
  padding.back() = size + left;
  return b.Reshape(b.Slice(b.Reshape(b.Pad(rows, padding), skewed), -1, 0, 1), result);
}

// Moves the end to the front.
const Node* Rolled(Builder& b, const Node* x, int64_t axis, int64_t shift) {
  const int64_t length = x->shape()[axis];
  if (length == 0) return x;
  // In C++ a remainder has the sign of the dividend.
  const int64_t front = (shift % length + length) % length;
  if (front == 0) return x;
  return b.Concat({b.Slice(x, axis, length - front, length), b.Slice(x, axis, 0, length - front)},
                  axis);
}

std::vector<OpDef> MatrixComposites() {
  constexpr auto kSame = DTypeRule::kSame;
  constexpr auto kAny = DTypeClass::kAny;
  return {
      WithAttributes(Composite("diagonal", {"x"}, kSame, kAny, ExpandDiagonal,
                               "The diagonal of axis1 and axis2 as a last dimension, offset "
                               "columns to the right of the main one"),
                     {OptionalInt("offset", 0), OptionalInt("axis1", 0), OptionalInt("axis2", 1)},
                     kDiagonalShape),
      WithAttributes(Composite("diag_embed", {"x"}, kSame, kAny, ExpandDiagEmbed,
                               "Matrices with x's last dimension as their diagonal, offset "
                               "columns to the right of the main one, zero elsewhere"),
                     {OptionalInt("offset", 0)}, kDiagEmbedShape),
      Requiring(
          {kAxisOfResultRule, kThreeAlongAxisRule},
          WithAttributes(Composite("cross", {"a", "b"}, DTypeRule::kPromote, DTypeClass::kNumeric,
                                   ExpandCross, "The cross product of vectors of 3 along axis"),
                         {OptionalInt("axis", -1)}, kBroadcastShape)),
      Requiring({kShiftsRule},
                WithAttributes(Composite("roll", {"x"}, kSame, kAny, ExpandRoll,
                                         "x moved by shifts along axes; what leaves at one end "
                                         "comes in at the other"),
                               {RequiredInts("shifts"), RequiredInts("axes")}, kSameShape)),
  };
}

}  // namespace kiln::ops
