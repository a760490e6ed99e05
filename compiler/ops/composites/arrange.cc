// Concatenates tensors and extracts parts by position.
#include "compiler/ops/composites/classes.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

Expansion ExpandConcat(Builder& b, Operands operands, const Attributes& attributes) {
  const size_t rank = operands[0]->shape().size();
  return b.Concat(operands, NormalizeAxis(IntOf(attributes, "axis"), rank).value());
}

Expansion ExpandOneHot(Builder& b, Operands x, const Attributes& attributes) {
  const auto last = static_cast<int64_t>(x[0]->shape().size());
  return b.Cast(IsClass(b, x[0], IntOf(attributes, "classes"), last), DType::kInt64);
}

// Returns column index minus row index, broadcast over the last two dimensions.
const Node* DiagonalNumber(Builder& b, const Node* x) {
  const Shape& shape = x->shape();
  const Node* row = b.Iota(DType::kInt64, {shape[shape.size() - 2], 1}, 0);
  const Node* column = b.Iota(DType::kInt64, {1, shape.back()}, 1);
  return b.Sub(column, row);
}

Expansion ExpandTril(Builder& b, Operands x, const Attributes& attributes) {
  const Node* number = DiagonalNumber(b, x[0]);
  const Node* above = b.Less(b.ConstInt(DType::kInt64, IntOf(attributes, "diagonal")), number);
  return b.Where(above, b.Const(x[0]->dtype(), 0), x[0]);
}

Expansion ExpandTriu(Builder& b, Operands x, const Attributes& attributes) {
  const Node* number = DiagonalNumber(b, x[0]);
  const Node* below = b.Less(number, b.ConstInt(DType::kInt64, IntOf(attributes, "diagonal")));
  return b.Where(below, b.Const(x[0]->dtype(), 0), x[0]);
}

constexpr Rule kConcatShape = {"concat", "x", R"rule(
  axis = normalize_axis(attributes["axis"], len(x))
  rest = x[:axis] + x[axis + 1:]
  check len(y) == len(x) and y[:axis] + y[axis + 1:] == rest for y in shapes:
    "cannot concat {x} and {y} along axis {axis}: all other sizes must agree"
  -> x[:axis] + (sum(y[axis] for y in shapes),) + x[axis + 1:]
)rule"};

constexpr Rule kOneHotShape = {"one_hot", "x", R"rule(
  classes = attributes["classes"]
  check classes >= 1: "one_hot of {classes} classes; at least 1 is needed"
  -> x + (classes,)
)rule"};

constexpr Rule kMatricesRule = {
    "matrices", "x",
    R"rule(check len(x) >= 2: '"{op.name}" of shape {x}; it must be (…, rows, columns)')rule"};

OpDef Triangle(std::string_view name, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"x"}, DTypeRule::kSame, DTypeClass::kAny, expand, doc);
  row.attributes = {OptionalInt("diagonal", 0)};
  row.constraints = {kMatricesRule};
  return row;
}

}  // namespace

std::vector<OpDef> ArrangeComposites() {
  OpDef concat = Composite("concat", {"tensors*"}, DTypeRule::kPromote, DTypeClass::kAny,
                           ExpandConcat, "The tensors one after another along axis");
  concat.attributes = {OptionalInt("axis", 0)};
  concat.shape_rule = kConcatShape;
  OpDef one_hot = Composite("one_hot", {"x"}, DTypeRule::kInt64, DTypeClass::kInteger, ExpandOneHot,
                            "1 at each x along a new last dimension of classes, 0 elsewhere");
  one_hot.attributes = {RequiredInt("classes")};
  one_hot.shape_rule = kOneHotShape;
  return {
      std::move(concat),
      std::move(one_hot),
      Triangle("tril", ExpandTril,
               "x on and below a diagonal of the last two dimensions, zero above it"),
      Triangle("triu", ExpandTriu,
               "x on and above a diagonal of the last two dimensions, zero below it"),
  };
}

}  // namespace kiln::ops
