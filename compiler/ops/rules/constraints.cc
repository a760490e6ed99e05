#include "compiler/ops/rules/constraints.h"

#include <algorithm>

#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::Shape;

absl::Status Check(Constraint constraint, const ConstraintQuery& query) {
  switch (constraint) {
    case Constraint::kAxis:
    case Constraint::kOrderAxis:
    case Constraint::kAxisOfResult:
    case Constraint::kSharedAxes:
    case Constraint::kOneAxis:
    case Constraint::kShifts:
      return CheckAxes(constraint, query);
    case Constraint::kMatrices:
    case Constraint::kSquare:
    case Constraint::kFewColumns:
    case Constraint::kThreeAlongAxis:
    case Constraint::kSequence:
    case Constraint::kKey:
      return CheckMatrices(constraint, query);
    case Constraint::kReflectPadding:
    case Constraint::kCircularPadding:
    case Constraint::kReplicatePadding:
      return CheckBorder(constraint, query);
    case Constraint::kLastAxes:
    case Constraint::kChannels:
    case Constraint::kSpatial:
    case Constraint::kGroups:
    case Constraint::kSlopes:
    case Constraint::kOrderedBounds:
    case Constraint::kRotary:
      return CheckNeural(constraint, query);
    case Constraint::kIndexLabels:
    case Constraint::kLabels:
    case Constraint::kLabelForEachRow:
    case Constraint::kEqualShapes:
      return CheckLabels(constraint, query);
    case Constraint::kEqualDTypes:
    case Constraint::kNumbersToCombine:
    case Constraint::kUpstreamDType:
    case Constraint::kEqualBits:
    case Constraint::kNumericResult:
    case Constraint::kFloatResult:
      return CheckDTypes(constraint, query);
  }
  return absl::InternalError("unknown constraint");
}

// The first of `axes` that is none of `rank` dimensions.
absl::Status CheckAll(absl::Span<const int64_t> axes, size_t rank) {
  for (const int64_t axis : axes) {
    const auto normal = NormalizeAxis(axis, rank);
    if (!normal.ok()) return normal.status();
  }
  return absl::OkStatus();
}

absl::Status CheckShifts(const ConstraintQuery& query) {
  const std::vector<int64_t>& axes = IntsOf(query.attributes, "axes");
  const size_t shifts = IntsOf(query.attributes, "shifts").size();
  if (shifts == axes.size()) return CheckAll(axes, query.operands[0].size());
  return ShapeError("\"", query.op.name, "\" with ", shifts, " shifts and ", axes.size(),
                    " axes; each axis needs one");
}

}  // namespace

absl::Status CheckConstraints(const ConstraintQuery& query) {
  for (const Constraint constraint : query.op.constraints) {
    absl::Status holds = Check(constraint, query);
    if (!holds.ok()) return holds;
  }
  return absl::OkStatus();
}

absl::Status CheckAxes(Constraint constraint, const ConstraintQuery& query) {
  const size_t rank = query.operands.empty() ? 0 : query.operands[0].size();
  switch (constraint) {
    case Constraint::kAxis:
      return CheckAll({IntOf(query.attributes, "axis")}, rank);
    case Constraint::kOrderAxis:
      return CheckAll({IntOf(query.attributes, "axis")}, std::max<size_t>(rank, 1));
    case Constraint::kAxisOfResult:
      return CheckAll({IntOf(query.attributes, "axis")}, query.shape.size());
    case Constraint::kSharedAxes:
      return CheckAll(IntsOf(query.attributes, "shared_axes"), rank);
    case Constraint::kShifts:
      return CheckShifts(query);
    default:
      break;
  }
  if (IntsOf(query.attributes, "axes").size() <= 1) return absl::OkStatus();
  return ShapeError("\"", query.op.name,
                    "\" over several axes; it takes one, or none for the flattened tensor");
}

absl::Status CheckBorder(Constraint constraint, const ConstraintQuery& query) {
  const Shape& shape = query.operands[0];
  const std::vector<int64_t>& padding = IntsOf(query.attributes, "padding");
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t wanted = std::max(padding[2 * i], padding[2 * i + 1]);
    const int64_t most = constraint == Constraint::kReflectPadding    ? shape[i] - 1
                         : constraint == Constraint::kCircularPadding ? shape[i]
                         : shape[i] > 0                               ? INT64_MAX
                                                                      : 0;
    if (wanted <= std::max<int64_t>(most, 0)) continue;
    return ShapeError("a padding of ", padding[2 * i], " and ", padding[2 * i + 1],
                      " around dimension ", i, " of size ", shape[i], "; at most ",
                      std::max<int64_t>(most, 0), " is there to repeat");
  }
  return absl::OkStatus();
}

}  // namespace kiln::ops
