// What the rows demand beyond the rules of shapes and dtypes (OpDef::constraints), so that it is
// said when a node is built: by the wire's decoder here, and by each client language with the same
// constraints; tests/golden/shape_cases.json keeps them equal.
#ifndef KILN_COMPILER_OPS_RULES_CONSTRAINTS_H_
#define KILN_COMPILER_OPS_RULES_CONSTRAINTS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Everything a constraint may look at. Attributes are complete; InferShape and InferDType have
// accepted the rest and given `shape` and `dtype`, the result's.
struct ConstraintQuery {
  const OpDef& op;
  absl::Span<const ir::Shape> operands;
  absl::Span<const ir::DType> dtypes;
  const Attributes& attributes;
  const ir::Shape& shape;
  ir::DType dtype;
};

// INVALID_ARGUMENT: the first of the row's constraints that does not hold, with what met and what
// would be right. Pure; safe from any thread.
absl::Status CheckConstraints(const ConstraintQuery& query);

// The families, which constraints.cc chooses among.
absl::Status CheckAxes(Constraint constraint, const ConstraintQuery& query);
absl::Status CheckMatrices(Constraint constraint, const ConstraintQuery& query);
absl::Status CheckBorder(Constraint constraint, const ConstraintQuery& query);
absl::Status CheckNeural(Constraint constraint, const ConstraintQuery& query);
absl::Status CheckLabels(Constraint constraint, const ConstraintQuery& query);
absl::Status CheckDTypes(Constraint constraint, const ConstraintQuery& query);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_CONSTRAINTS_H_
