// Reads and writes at data-dependent indices, by gather_elements and scatter_elements. gather,
// scatter and scatter_add use indices unchanged; the others count negative ones from the end.
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/scatter_mode.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::ScatterMode;
using ir::Shape;

// Casts to int64, in which no sum of an index and a size overflows. Unsigned indices beyond int64
// become negative and stay out of range.
const Node* Wrapped(Builder& b, const Node* index, int64_t size) {
  const Node* wide = b.Cast(index, DType::kInt64);
  if (!ir::IsSigned(index->dtype())) return wide;
  const Node* from_end = b.Add(wide, b.ConstInt(DType::kInt64, size));
  return b.Where(b.Less(wide, b.ConstInt(DType::kInt64, 0)), from_end, wide);
}

Expansion ExpandGather(Builder& b, Operands x, const Attributes& attributes) {
  return b.Gather(x[0], x[1], IntOf(attributes, "axis"));
}

Expansion ExpandScatter(Builder& b, Operands x, const Attributes& attributes) {
  return b.Scatter(x[0], x[1], x[2], IntOf(attributes, "axis"), ScatterModeOf(attributes));
}

Expansion ExpandScatterAdd(Builder& b, Operands x, const Attributes& attributes) {
  Attributes with_mode = attributes;
  with_mode["mode"] = std::string("add");
  return ExpandScatter(b, x, with_mode);
}

Expansion ExpandTake(Builder& b, Operands x, const Attributes& attributes) {
  const int64_t axis = AxisOf(x[0], attributes);
  return b.Gather(x[0], Wrapped(b, x[1], x[0]->shape()[axis]), axis);
}

Expansion ExpandTakeAlongAxis(Builder& b, Operands x, const Attributes& attributes) {
  const int64_t axis = AxisOf(x[0], attributes);
  Shape shape = x[0]->shape();
  for (size_t i = 0; i < shape.size(); ++i) {
    // Broadcasts x to the index; gather_elements only broadcasts the index.
    if (shape[i] == 1 && static_cast<int64_t>(i) != axis) shape[i] = x[1]->shape()[i];
  }
  const Node* index = Wrapped(b, x[1], shape[axis]);
  return b.GatherElements(b.BroadcastTo(x[0], shape), index, axis);
}

Expansion ExpandPutAlongAxis(Builder& b, Operands x, const Attributes& attributes) {
  const int64_t axis = AxisOf(x[0], attributes);
  Shape places = x[0]->shape();
  places[axis] = x[1]->shape()[axis];
  const Node* values = b.BroadcastTo(b.Cast(x[2], x[0]->dtype()), places);
  return b.ScatterElements(x[0], Wrapped(b, x[1], x[0]->shape()[axis]), values, axis,
                           ScatterModeOf(attributes));
}

const Node* And(Builder& b, const Node* a, const Node* c) { return b.Binary(ir::Op::kAnd, a, c); }

// The indices of several adjacent dimensions as one index of the flattened dimensions.
struct JoinedIndex {
  const Node* x;      // with the dimensions joined
  const Node* index;  // -1 where one of the indices is out of range
};

JoinedIndex Join(Builder& b, const Node* x, Operands indices, int64_t axis) {
  if (indices.size() == 1) return {x, Wrapped(b, indices[0], x->shape()[axis])};
  const Node* joined = nullptr;
  const Node* inside = nullptr;
  int64_t count = 1;
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t size = x->shape()[axis + static_cast<int64_t>(i)];
    const Node* index = Wrapped(b, indices[i], size);
    // An index out of range in one dimension could give a joined index inside the tensor.
    const Node* within = And(b, b.Less(b.ConstInt(DType::kInt64, -1), index),
                             b.Less(index, b.ConstInt(DType::kInt64, size)));
    joined =
        joined == nullptr ? index : b.Add(b.Mul(joined, b.ConstInt(DType::kInt64, size)), index);
    inside = inside == nullptr ? within : And(b, inside, within);
    count *= size;
  }
  const auto begin = x->shape().begin();
  Shape shape(begin, begin + axis);
  shape.push_back(count);
  shape.insert(shape.end(), begin + axis + static_cast<int64_t>(indices.size()), x->shape().end());
  return {b.Reshape(x, shape), b.Where(inside, joined, b.ConstInt(DType::kInt64, -1))};
}

Expansion ExpandIndex(Builder& b, Operands x, const Attributes& attributes) {
  const int64_t axis = AxisOf(x[0], attributes);
  const JoinedIndex joined = Join(b, x[0], x.subspan(1), axis);
  return b.Gather(joined.x, joined.index, axis);
}

Expansion ExpandIndexPut(Builder& b, Operands x, const Attributes& attributes) {
  const int64_t axis = AxisOf(x[0], attributes);
  const JoinedIndex joined = Join(b, x[0], x.subspan(2), axis);
  Shape places(joined.x->shape().begin(), joined.x->shape().begin() + axis);
  places.insert(places.end(), joined.index->shape().begin(), joined.index->shape().end());
  places.insert(places.end(), joined.x->shape().begin() + axis + 1, joined.x->shape().end());
  const Node* values = b.BroadcastTo(b.Cast(x[1], x[0]->dtype()), places);
  const Node* result = b.Scatter(joined.x, joined.index, values, axis, ScatterModeOf(attributes));
  return b.Reshape(result, x[0]->shape());
}

OpDef Indexed(std::string_view name, std::vector<std::string_view> operands, Rule shape_rule,
              ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, std::move(operands), DTypeRule::kSame, DTypeClass::kAny, expand, doc);
  row.shape_rule = shape_rule;
  row.attributes = {OptionalInt("axis", 0)};
  row.special_operand = 1;
  return row;
}

OpDef WithMode(std::vector<Rule> constraints, OpDef row) {
  row.constraints = std::move(constraints);
  row.attributes.push_back(ScatterModeAttribute());
  return row;
}

constexpr Rule kGatherShape = {"gather", "x, index", R"rule(
  axis = normalize_axis(attributes["axis"], len(x))
  -> x[:axis] + index + x[axis + 1:]
)rule"};

constexpr Rule kScatterShape = {"scatter", "x, index, values", R"rule(
  axis = normalize_axis(attributes["axis"], len(x))
  places = x[:axis] + index + x[axis + 1:]
  check values == places:
    "values of shape {values} to scatter into {x} at an index of shape {index}; they must have "
    "shape {places}"
  -> x
)rule"};

constexpr Rule kTakeAlongAxisShape = {"take_along_axis", "x, index", R"rule(
  check len(index) == len(x):
    "an index of shape {index} for a tensor of shape {x}; both must have the same number of "
    "dimensions"
  axis = normalize_axis(attributes["axis"], len(x))
  -> broadcast([x[:axis] + index[axis:axis + 1] + x[axis + 1:], index])
)rule"};

constexpr Rule kPutAlongAxisShape = {"put_along_axis", "x, index, values", R"rule(
  check len(index) == len(x):
    "an index of shape {index} for a tensor of shape {x}; both must have the same number of "
    "dimensions"
  axis = normalize_axis(attributes["axis"], len(x))
  places = x[:axis] + index[axis:axis + 1] + x[axis + 1:]
  check broadcasts_to(index, places): "an index of shape {index} does not broadcast to {places}"
  check broadcasts_to(values, places): "values of shape {values} do not broadcast to {places}"
  -> x
)rule"};

constexpr Rule kIndexShape = {"index", "x", R"rule(
  axis = normalize_axis(attributes["axis"], len(x))
  indices = shapes[1:]
  check axis + len(indices) <= len(x):
    "{len(indices)} indices from axis {axis} on, of a tensor with {len(x)} dimensions"
  -> x[:axis] + broadcast(indices) + x[axis + len(indices):]
)rule"};

constexpr Rule kIndexPutShape = {"index_put", "x, values", R"rule(
  axis = normalize_axis(attributes["axis"], len(x))
  indices = shapes[2:]
  check axis + len(indices) <= len(x):
    "{len(indices)} indices from axis {axis} on, of a tensor with {len(x)} dimensions"
  places = x[:axis] + broadcast(indices) + x[axis + len(indices):]
  check broadcasts_to(values, places): "values of shape {values} do not broadcast to {places}"
  -> x
)rule"};

}  // namespace

std::vector<OpDef> IndexedComposites() {
  OpDef scatter_add =
      Indexed("scatter_add", {"x", "index", "values"}, kScatterShape, ExpandScatterAdd,
              "x plus values added at index along axis; values have the shape gather gives; an "
              "index out of range adds nothing");
  scatter_add.operand_class = DTypeClass::kNumeric;
  scatter_add.constraints = {kEqualDTypesRule};
  OpDef index_put = WithMode(
      {kNumbersToCombineRule},
      Indexed("index_put", {"x", "values", "index*"}, kIndexPutShape, ExpandIndexPut,
              "x with values, cast and broadcast, combined into the elements that index reads; "
              "mode is set "
              "(the last one wins), add, mul, max or min. An index out of range changes nothing"));
  index_put.special_operand = 2;
  return {
      Indexed("gather", {"x", "index"}, kGatherShape, ExpandGather,
              "x's entries at index along axis; an index out of range (a negative one too) reads "
              "zero. With axis 0 it is an embedding"),
      WithMode(
          {kEqualDTypesRule, kNumbersToCombineRule},
          Indexed("scatter", {"x", "index", "values"}, kScatterShape, ExpandScatter,
                  "x with values, of the shape gather gives, combined into the entries at index "
                  "along axis; mode is set (the last one wins), add, mul, max or min. An index "
                  "out of range changes nothing")),
      std::move(scatter_add),
      Indexed("take", {"x", "index"}, kGatherShape, ExpandTake,
              "x's entries at index along axis, as NumPy's take: negative ones count from the end. "
              "An index out of range reads zero"),
      Indexed(
          "take_along_axis", {"x", "index"}, kTakeAlongAxisShape, ExpandTakeAlongAxis,
          "x[…, index[…, i, …], …], as NumPy's: negative indices count from the end, dimensions "
          "other than the axis broadcast. An index out of range reads zero"),
      WithMode({kNumbersToCombineRule},
               Indexed("put_along_axis", {"x", "index", "values"}, kPutAlongAxisShape,
                       ExpandPutAlongAxis,
                       "x with values, cast and broadcast, combined into the elements that "
                       "take_along_axis reads; mode is set (the last one wins), add, mul, max or "
                       "min. An index out of range changes nothing")),
      Indexed("index", {"x", "index*"}, kIndexShape, ExpandIndex,
              "x[…, i, j, …]: integer indices of as many dimensions from axis on, broadcast "
              "together; negative ones count from the end. An index out of range reads zero"),
      std::move(index_put),
  };
}

}  // namespace kiln::ops
