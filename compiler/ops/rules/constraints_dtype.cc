// Constraints on dtypes.
#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::DType;

absl::Status CheckEqual(const ConstraintQuery& query, std::string_view what) {
  if (query.dtypes.size() < 3 || query.dtypes[2] == query.dtypes[0]) return absl::OkStatus();
  return ShapeError(what, " of ", ir::Name(query.dtypes[2]), " for ", query.op.operands[0], " of ",
                    ir::Name(query.dtypes[0]), "; both must have one dtype, cast one of them");
}

absl::Status CheckCombining(const ConstraintQuery& query) {
  const std::string& mode = StringOf(query.attributes, "mode");
  if (mode == "set" || query.dtypes[0] != DType::kBool) return absl::OkStatus();
  return ShapeError("mode \"", mode, "\" of bools; it must be set, or x and values numbers");
}

absl::Status CheckBits(const ConstraintQuery& query) {
  const DType from = query.dtypes[0];
  const bool has_bool = (from == DType::kBool) != (query.dtype == DType::kBool);
  if (ir::SizeOf(from) == ir::SizeOf(query.dtype) && !has_bool) return absl::OkStatus();
  return ShapeError("cannot ", query.op.name, " ", ir::Name(from), " to ", ir::Name(query.dtype),
                    "; both must have one size, and not be bool");
}

}  // namespace

absl::Status CheckDTypes(Constraint constraint, const ConstraintQuery& query) {
  switch (constraint) {
    case Constraint::kEqualDTypes:
      return CheckEqual(query, "values");
    case Constraint::kUpstreamDType:
      return CheckEqual(query, "an upstream");
    case Constraint::kNumbersToCombine:
      return CheckCombining(query);
    case Constraint::kEqualBits:
      return CheckBits(query);
    case Constraint::kNumericResult:
      if (query.dtype != DType::kBool) return absl::OkStatus();
      return ShapeError("\"", query.op.name, "\" of bool; it needs a numeric dtype");
    default:
      break;
  }
  if (ir::IsFloat(query.dtype)) return absl::OkStatus();
  return ShapeError("\"", query.op.name, "\" of ", ir::Name(query.dtype), "; it must be float");
}

}  // namespace kiln::ops
