#include <bit>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/around_axis.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/composites/select_first.h"
#include "compiler/ops/promote.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

struct Order {
  const Node* x;          // (outer, length, inner)
  const Node* positions;  // (outer, count, inner)
  Shape shape;            // the result's
};

// Orders the first `count` elements, or all; a scalar is treated as one element.
Order OrderOf(Builder& b, const Node* x, const Attributes& attributes, std::optional<int64_t> count,
              bool descending) {
  Shape shape = x->shape();
  if (shape.empty()) shape.push_back(1);
  const int64_t axis = NormalizeAxis(IntOf(attributes, "axis"), shape.size()).value();
  const AroundAxis extents = ExtentsAround(shape, axis);
  const SizeRange length = b.RangeOf(extents.length);
  const SizeRange columns = b.RangeOf(extents.outer * extents.inner);
  shape[axis] = count.value_or(extents.length);
  const Node* flat = b.Reshape(x, {extents.outer, extents.length, extents.inner});
  if (x->shape().empty()) shape.clear();
  if (ir::NumElements(shape) == 0) return Order{flat, b.Full(DType::kInt64, shape, 0), shape};
  const int64_t first = count.value_or(length.most);
  const auto levels = ChooseBlockLevels(columns.most, length.most, first);
  // Materialised, since otherwise every round would compute it again.
  const Node* positions = FirstPositions(b, b.Contiguous(flat), length, first, descending, levels);
  return Order{flat, b.Slice(positions, 1, 0, count.value_or(extents.length)), shape};
}

Expansion Positions(Builder& b, const Order& order) {
  return b.Reshape(order.positions, order.shape);
}
Expansion Values(Builder& b, const Order& order) {
  if (ir::NumElements(order.shape) == 0) return b.Full(order.x->dtype(), order.shape, 0);
  return b.Reshape(b.GatherElements(order.x, order.positions, 1), order.shape);
}

Order WholeOrder(Builder& b, Operands x, const Attributes& attributes) {
  return OrderOf(b, x[0], attributes, std::nullopt, BoolOf(attributes, "descending"));
}
Expansion ExpandSort(Builder& b, Operands x, const Attributes& attributes) {
  return Values(b, WholeOrder(b, x, attributes));
}
Expansion ExpandArgsort(Builder& b, Operands x, const Attributes& attributes) {
  return Positions(b, WholeOrder(b, x, attributes));
}

Order TopOrder(Builder& b, Operands x, const Attributes& attributes) {
  return OrderOf(b, x[0], attributes, IntOf(attributes, "k"), BoolOf(attributes, "largest"));
}
Expansion ExpandTopK(Builder& b, Operands x, const Attributes& attributes) {
  return Values(b, TopOrder(b, x, attributes));
}
Expansion ExpandTopKPositions(Builder& b, Operands x, const Attributes& attributes) {
  return Positions(b, TopOrder(b, x, attributes));
}

// Counts the elements of the sorted sequence that come before each value, by binary search: after
// the step of 2^i all but the last i bits are known. NaN comes after all numbers, as in sort.
Expansion ExpandSearchSorted(Builder& b, Operands operands, const Attributes& attributes) {
  const DType dtype = Promote(operands[0]->dtype(), operands[1]->dtype()).value();
  const Node* sorted = b.Cast(operands[1], dtype);
  const Node* value = b.Cast(operands[0], dtype);
  const int64_t length = sorted->shape()[0];
  const auto length_max = static_cast<uint64_t>(b.RangeOf(length).most);
  const auto whole = [&](int64_t number) { return b.ConstInt(DType::kInt64, number); };
  const Node* found = b.Expand(b.BroadcastTo(whole(0), value->shape()), value->shape());
  if (length == 0) return found;
  for (auto step = static_cast<int64_t>(std::bit_floor(length_max)); step > 0; step /= 2) {
    const Node* next = b.Add(found, whole(step));
    const Node* element = b.Gather(sorted, b.Add(next, whole(-1)), 0);
    const Node* before = b.Less(element, value);
    if (ir::IsFloat(dtype)) {
      before =
          b.Binary(Op::kOr, before, b.Binary(Op::kAnd, IsNan(b, value), b.Not(IsNan(b, element))));
    }
    if (BoolOf(attributes, "right")) {
      before = b.Binary(Op::kOr, before, b.Equal(element, value));
      if (ir::IsFloat(dtype)) before = b.Binary(Op::kOr, before, IsNan(b, value));
    }
    const Node* inside = b.Not(b.Less(whole(length), next));
    found = b.Contiguous(b.Where(b.Binary(Op::kAnd, inside, before), next, found));
  }
  return found;
}

constexpr Rule kTopKShape = {"topk", "x", R"rule(
  check len(x) > 0: "topk of a scalar; it needs a dimension to choose from"
  axis = normalize_axis(attributes["axis"], len(x))
  count = attributes["k"]
  check 0 <= count <= x[axis]:
    "topk of {count} elements along a dimension of size {x[axis]}; k must be in [0, {x[axis]}]"
  -> x[:axis] + (count,) + x[axis + 1:]
)rule"};

constexpr Rule kOrderAxisRule = {"order_axis", "x",
                                 R"rule(normalize_axis(attributes["axis"], max(len(x), 1)))rule"};

constexpr Rule kSequenceRule = {"sequence", "x, sequence", R"rule(
  check len(sequence) == 1:
    '"{op.name}" in a sequence of shape {sequence}; it must have one dimension'
)rule"};

OpDef Sorting(std::string_view name, DTypeRule dtype_rule, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"x"}, dtype_rule, DTypeClass::kAny, expand, doc);
  row.attributes = {OptionalInt("axis", -1), OptionalBool("descending", false)};
  row.constraints = {kOrderAxisRule};
  return row;
}

OpDef Top(std::string_view name, DTypeRule dtype_rule, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"x"}, dtype_rule, DTypeClass::kAny, expand, doc);
  row.attributes = {RequiredInt("k"), OptionalInt("axis", -1), OptionalBool("largest", true)};
  row.shape_rule = kTopKShape;
  return row;
}

}  // namespace

std::vector<OpDef> SortComposites() {
  OpDef search = Composite(
      "searchsorted", {"values", "sorted"}, DTypeRule::kInt64, DTypeClass::kAny, ExpandSearchSorted,
      "How many elements of a sorted sequence come before each value; with right, those equal to "
      "it are counted too");
  search.attributes = {OptionalBool("right", false)};
  search.constraints = {kSequenceRule};
  return {
      Sorting("sort", DTypeRule::kSame, ExpandSort,
              "x sorted along axis; NaN comes last, or with descending first"),
      Sorting("argsort", DTypeRule::kInt64, ExpandArgsort,
              "The positions of sort's elements; equal ones keep their order"),
      Top("topk", DTypeRule::kSame, ExpandTopK,
          "The k largest (or smallest) elements along axis, in order; NaN is larger than all"),
      Top("topk_indices", DTypeRule::kInt64, ExpandTopKPositions,
          "The positions of topk's elements; of equal ones the first come first"),
      std::move(search),
  };
}

}  // namespace kiln::ops
