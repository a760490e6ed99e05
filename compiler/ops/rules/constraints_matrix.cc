// Constraints of arrays and matrices.
#include <algorithm>

#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::Shape;

// A factorization is some ten nodes for each column, and as many again for each order of gradients.
constexpr int64_t kMostColumns = 512;

absl::Status CheckFewColumns(const ConstraintQuery& query) {
  const Shape& shape = query.operands[0];
  if (std::min(shape[shape.size() - 2], shape.back()) <= kMostColumns) return absl::OkStatus();
  return ShapeError("\"", query.op.name, "\" of matrices of shape ", ToString(shape),
                    "; the most is ", kMostColumns, " columns, on larger ones work in blocks");
}

absl::Status CheckThree(const ConstraintQuery& query) {
  const auto axis = NormalizeAxis(IntOf(query.attributes, "axis"), query.shape.size());
  if (!axis.ok()) return axis.status();
  if (query.shape[*axis] == 3) return absl::OkStatus();
  return ShapeError("\"", query.op.name, "\" of ", ToString(query.operands[0]), " and ",
                    ToString(query.operands[1]), " along axis ", *axis, ", which has size ",
                    query.shape[*axis], "; it must be 3");
}

absl::Status CheckKey(const ConstraintQuery& query) {
  const auto& names = query.op.operands;
  const auto place = std::find(names.begin(), names.end(), "key") - names.begin();
  if (query.operands[place] == Shape{2}) return absl::OkStatus();
  return ShapeError("a key of shape ", ToString(query.operands[place]),
                    "; it must be uint32 of shape (2,)");
}

}  // namespace

absl::Status CheckMatrices(Constraint constraint, const ConstraintQuery& query) {
  switch (constraint) {
    case Constraint::kSquare:
      return CheckSquare(query.op, query.operands[0]);
    case Constraint::kFewColumns:
      return CheckFewColumns(query);
    case Constraint::kThreeAlongAxis:
      return CheckThree(query);
    case Constraint::kKey:
      return CheckKey(query);
    case Constraint::kSequence:
      if (query.operands[1].size() == 1) return absl::OkStatus();
      return ShapeError("\"", query.op.name, "\" in a sequence of shape ",
                        ToString(query.operands[1]), "; it must have one dimension");
    default:
      break;
  }
  if (query.operands[0].size() >= 2) return absl::OkStatus();
  return ShapeError("\"", query.op.name, "\" of shape ", ToString(query.operands[0]),
                    "; it must be (…, rows, columns)");
}

}  // namespace kiln::ops
