// Constraints of neural networks' layers and losses.
#include <algorithm>

#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::Shape;

// Operand i as an error message shows it.
std::string Described(const ConstraintQuery& query, size_t i) {
  std::string_view name = query.op.operands[i];
  if (name.back() == '?') name.remove_suffix(1);
  return StrCat(name, " ", ToString(query.operands[i]));
}

// All operands after the first have one shape.
absl::Status CheckOthers(const ConstraintQuery& query, const Shape& wanted) {
  for (size_t i = 1; i < query.operands.size(); ++i) {
    if (query.operands[i] == wanted) continue;
    return ShapeError("\"", query.op.name, "\" of ", Described(query, 0), " with ",
                      Described(query, i), "; it must have shape ", ToString(wanted));
  }
  return absl::OkStatus();
}

absl::Status CheckLastAxes(const ConstraintQuery& query) {
  const Shape& x = query.operands[0];
  const int64_t axes = IntOf(query.attributes, "axes");
  const auto rank = static_cast<int64_t>(x.size());
  if (axes < 1 || axes > rank) {
    return ShapeError("\"axes\" is ", axes, " for a tensor of shape ", ToString(x),
                      "; it must be 1 to ", rank);
  }
  return CheckOthers(query, Shape(x.end() - axes, x.end()));
}

absl::Status CheckRank(const ConstraintQuery& query, size_t least) {
  const Shape& x = query.operands[0];
  if (x.size() >= least) return absl::OkStatus();
  return ShapeError("\"", query.op.name, "\" of shape ", ToString(x), "; it must be (N, C, ",
                    least > 2 ? "spatial" : "…", ")");
}

absl::Status CheckChannels(const ConstraintQuery& query) {
  absl::Status rank = CheckRank(query, 2);
  return rank.ok() ? CheckOthers(query, {query.operands[0][1]}) : rank;
}

absl::Status CheckGroups(const ConstraintQuery& query) {
  const int64_t groups = IntOf(query.attributes, "groups");
  const int64_t channels = query.operands[0][1];
  if (groups >= 1 && channels % groups == 0) return absl::OkStatus();
  return ShapeError("\"", query.op.name, "\" of ", channels, " channels in ", groups,
                    " groups; groups must divide the channels");
}

absl::Status CheckSlopes(const ConstraintQuery& query) {
  const Shape& x = query.operands[0];
  const Shape& weight = query.operands[1];
  const int64_t channels = x.size() > 1 ? x[1] : 1;
  if (weight.empty() || weight == Shape{1} || weight == Shape{channels}) return absl::OkStatus();
  return ShapeError("\"", query.op.name, "\" of ", channels, " channels with ", Described(query, 1),
                    "; it takes one slope, or one for each channel");
}

absl::Status CheckRotary(const ConstraintQuery& query) {
  const Shape& x = query.operands[0];
  const Shape& cos = query.operands[1];
  bool fits = !x.empty() && !cos.empty() && cos == query.operands[2] && cos.back() <= x.back() / 2;
  if (fits) {
    Shape angles = x;
    angles.back() = cos.back();
    const auto broadcast = BroadcastShapes({angles, cos});
    fits = broadcast.ok() && *broadcast == angles;
  }
  if (fits) return absl::OkStatus();
  return ShapeError("\"", query.op.name, "\" of ", Described(query, 0), " with ",
                    Described(query, 1), " and ", Described(query, 2),
                    "; both must broadcast to x with at most half its features");
}

absl::Status CheckBounds(const ConstraintQuery& query) {
  const double low = FloatOf(query.attributes, "min");
  const double high = FloatOf(query.attributes, "max");
  if (low < high) return absl::OkStatus();
  return ShapeError("\"", query.op.name, "\" between ", low, " and ", high,
                    "; \"min\" must be less than \"max\"");
}

}  // namespace

absl::Status CheckNeural(Constraint constraint, const ConstraintQuery& query) {
  switch (constraint) {
    case Constraint::kLastAxes:
      return CheckLastAxes(query);
    case Constraint::kChannels:
      return CheckChannels(query);
    case Constraint::kSpatial:
      return CheckRank(query, 3);
    case Constraint::kGroups:
      return CheckGroups(query);
    case Constraint::kSlopes:
      return CheckSlopes(query);
    case Constraint::kRotary:
      return CheckRotary(query);
    default:
      return CheckBounds(query);
  }
}

absl::Status CheckLabels(Constraint constraint, const ConstraintQuery& query) {
  if (constraint == Constraint::kEqualShapes) return CheckOthers(query, query.operands[0]);
  const Shape& scores = query.operands[0];
  if (constraint == Constraint::kLabelForEachRow) {
    if (query.operands[2].size() + 1 == scores.size()) return absl::OkStatus();
    return ShapeError("\"", query.op.name, "\" of ", Described(query, 0), " with ",
                      Described(query, 2), "; it must have one element for each row");
  }
  const ir::DType dtype = query.dtypes[1];
  const Shape& labels = query.operands[1];
  if (ir::IsInteger(dtype) && labels.size() + 1 == scores.size()) return absl::OkStatus();
  const bool may_be_floats = constraint == Constraint::kLabels;
  if (may_be_floats && ir::IsFloat(dtype) && labels == scores) return absl::OkStatus();
  return ShapeError("labels of ", ir::Name(dtype), ToString(labels), " for scores of shape ",
                    ToString(scores), "; labels are integers without the class dimension",
                    may_be_floats ? ", probabilities floats with it" : "");
}

}  // namespace kiln::ops
