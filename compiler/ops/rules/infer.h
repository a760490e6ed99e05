// Infers shapes and dtypes of results and checks constraints, by the rules of the rows. Used by the
// wire's decoder. Clients have the same rules, and tests/golden/shape_cases.json keeps them equal.
//
// All errors are INVALID_ARGUMENT, show the shapes or dtypes involved and say what would be right.
// Nothing here overflows, whatever the operands' sizes are. Pure functions; thread-safe.
#ifndef KILN_COMPILER_OPS_RULES_INFER_H_
#define KILN_COMPILER_OPS_RULES_INFER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Limits of a shape, so that sizes in bytes and offsets fit well within 64 bits.
inline constexpr int kRankMax = 32;
inline constexpr int64_t kElementsMax = int64_t{1} << 56;

// Checks that sizes are >= 0 and that the rank and the number of elements are within the limits.
absl::Status CheckShape(absl::Span<const int64_t> shape);

// Checks that `op` takes this many operands.
absl::Status CheckOperandCount(const OpDef& op, size_t count);

// The values that a rule may read. Attributes are complete. The rest is for constraints only: the
// operands' dtypes, and the result's shape and dtype as returned by the functions below.
struct RuleQuery {
  const OpDef& op;
  absl::Span<const ir::Shape> shapes;
  const Attributes& attributes;
  absl::Span<const ir::DType> dtypes = {};
  absl::Span<const int64_t> shape = {};
  ir::DType dtype = ir::DType::kInvalid;
};

// Returns the error of the first constraint of the row that does not hold.
absl::Status CheckConstraints(const RuleQuery& query);

// Returns the result's shape, which passes CheckShape. Requires: `attributes` come from
// CompleteAttributes, operand shapes have passed CheckShape.
absl::StatusOr<ir::Shape> InferShape(const OpDef& op, absl::Span<const ir::Shape> operands,
                                     const Attributes& attributes);

// Returns the result's dtype, after checking the operands' classes. `declared` is the wire's dtype
// field: required (not kInvalid) if the rule is kAttribute; otherwise it must be kInvalid or equal
// to the inferred dtype.
absl::StatusOr<ir::DType> InferDType(const OpDef& op, absl::Span<const ir::DType> operands,
                                     ir::DType declared);

// Returns the dtype to which operands are cast before the op is applied; kInvalid if they are not
// cast. Requires: `operands` have passed InferDType.
ir::DType OperandDType(const OpDef& op, absl::Span<const ir::DType> operands);

// NumPy broadcasting.
absl::StatusOr<ir::Shape> BroadcastShapes(absl::Span<const ir::Shape> shapes);

// Normalizes an axis in [-rank, rank) to [0, rank).
absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, size_t rank);
// Returns sorted, distinct axes; an empty list means all.
absl::StatusOr<std::vector<int64_t>> NormalizeAxes(absl::Span<const int64_t> axes, size_t rank);

// "(2, 3)", "(3,)", "()".
std::string ToString(absl::Span<const int64_t> shape);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_INFER_H_
