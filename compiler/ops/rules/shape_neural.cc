// Shapes of losses and of what else neural networks reduce or halve.
#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::Shape;

// `elementwise`, the shape of single losses, or a scalar, as the attribute "reduction" says.
ShapeResult Reduced(const ShapeQuery& query, Shape elementwise) {
  return StringOf(query.attributes, "reduction") == "none" ? elementwise : Shape{};
}

// Operand i as an error message shows it.
std::string Described(const ShapeQuery& query, size_t i) {
  return StrCat(query.op.operands[i], " ", ToString(query.operands[i]));
}

// The required operands have one shape; optional ones, weights, broadcast to it.
absl::Status CheckLossOperands(const ShapeQuery& query) {
  const Shape& first = query.operands[0];
  for (size_t i = 1; i < query.operands.size(); ++i) {
    const bool optional = query.op.operands[i].back() == '?';
    const Shape& other = query.operands[i];
    if (!optional && other != first) {
      return ShapeError("\"", query.op.name, "\" of ", Described(query, 0), " and ",
                        Described(query, i), "; they must agree");
    }
    const auto broadcast = BroadcastShapes({first, other});
    if (!broadcast.ok() || *broadcast != first) {
      return ShapeError("\"", query.op.name, "\" of ", Described(query, 0), " with ",
                        Described(query, i), ", which must broadcast to it");
    }
  }
  return absl::OkStatus();
}

}  // namespace

ShapeResult LossShape(const ShapeQuery& query) {
  const absl::Status fits = CheckLossOperands(query);
  if (!fits.ok()) return fits;
  return Reduced(query, query.operands[0]);
}

ShapeResult LabelLossShape(const ShapeQuery& query) {
  const Shape& scores = query.operands[0];
  const Shape& labels = query.operands[1];
  if (scores.empty()) {
    return ShapeError("\"", query.op.name, "\" of scores without a class dimension");
  }
  const int64_t axis = scores.size() > 1 ? 1 : 0;
  Shape wanted = scores;
  wanted.erase(wanted.begin() + axis);
  // Labels that are probabilities have the scores' shape; their dtype is the expansion's matter.
  if (labels != wanted && labels != scores) {
    return ShapeError("labels of shape ", ToString(labels), " for scores of shape ",
                      ToString(scores), "; they must have shape ", ToString(wanted));
  }
  if (query.operands.size() == 3 && query.operands[2] != Shape{scores[axis]}) {
    return ShapeError("class weights of shape ", ToString(query.operands[2]), " for scores of ",
                      "shape ", ToString(scores), "; they must have shape ",
                      ToString({scores[axis]}));
  }
  return Reduced(query, wanted);
}

ShapeResult RowLossShape(const ShapeQuery& query) {
  const Shape& first = query.operands[0];
  if (first.empty()) {
    return ShapeError("\"", query.op.name, "\" of scalars; its operands must be (…, features)");
  }
  const Shape rows(first.begin(), first.end() - 1);
  for (size_t i = 1; i < query.operands.size(); ++i) {
    const Shape& other = query.operands[i];
    if (other == first || (i > 1 && other == rows)) continue;
    return ShapeError("\"", query.op.name, "\" of ", Described(query, 0), " and ",
                      Described(query, i), "; they must agree");
  }
  return Reduced(query, rows);
}

ShapeResult PairwiseShape(const ShapeQuery& query) {
  auto shape = BroadcastShapes(query.operands);
  if (!shape.ok()) return shape;
  const auto axis = NormalizeAxis(IntOf(query.attributes, "axis"), shape->size());
  if (!axis.ok()) return axis.status();
  if (BoolOf(query.attributes, "keepdims")) {
    (*shape)[*axis] = 1;
  } else {
    shape->erase(shape->begin() + *axis);
  }
  return shape;
}

ShapeResult HalfShape(const ShapeQuery& query) {
  Shape result = query.operands[0];
  const auto axis = NormalizeAxis(IntOf(query.attributes, "axis"), result.size());
  if (!axis.ok()) return axis.status();
  if (result[*axis] % 2 != 0) {
    return ShapeError("\"", query.op.name, "\" halves dimension ", *axis, " of shape ",
                      ToString(result), "; its size must be even");
  }
  result[*axis] /= 2;
  return result;
}

}  // namespace kiln::ops
