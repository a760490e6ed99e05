// Shapes and dtypes of results, and what else must hold, by the rules of the rows. Used by the
// wire's decoder; clients have the same rules, and tests/golden/shape_cases.json keeps them equal.
//
// All errors are INVALID_ARGUMENT, show the shapes or dtypes that met and say what would be right.
// Nothing here overflows, whatever the operands' sizes are. Pure functions; safe from any thread.
#ifndef KILN_COMPILER_OPS_RULES_INFER_H_
#define KILN_COMPILER_OPS_RULES_INFER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Limits of a shape, so that sizes in bytes and offsets fit 64 bits with room to spare.
inline constexpr int kMaxRank = 32;
inline constexpr int64_t kMaxElements = int64_t{1} << 56;

// Sizes >= 0, rank and number of elements within the limits.
absl::Status CheckShape(absl::Span<const int64_t> shape);

// Whether `op` takes this many operands.
absl::Status CheckOperandCount(const OpDef& op, size_t count);

// Everything a rule may look at. Attributes are complete; the rest is there for constraints alone:
// the operands' dtypes, and the result's shape and dtype, as the functions below have given them.
struct RuleQuery {
  const OpDef& op;
  absl::Span<const ir::Shape> shapes;
  const Attributes& attributes;
  absl::Span<const ir::DType> dtypes = {};
  absl::Span<const int64_t> shape = {};
  ir::DType dtype = ir::DType::kInvalid;
};

// The first of the row's constraints that does not hold.
absl::Status CheckConstraints(const RuleQuery& query);

// The result's shape. `attributes` are as CompleteAttributes returns them, operand shapes have
// passed CheckShape; the result has too.
absl::StatusOr<ir::Shape> InferShape(const OpDef& op, absl::Span<const ir::Shape> operands,
                                     const Attributes& attributes);

// The result's dtype, after a check of the operands' classes. `declared` is the wire's dtype field:
// required (not kInvalid) where the rule is kAttribute; elsewhere it may be kInvalid, or must equal
// what the rule gives.
absl::StatusOr<ir::DType> InferDType(const OpDef& op, absl::Span<const ir::DType> operands,
                                     ir::DType declared);

// The dtype operands are cast to before the op is applied; kInvalid where they stay as they are.
// `operands` have passed InferDType.
ir::DType OperandDType(const OpDef& op, absl::Span<const ir::DType> operands);

// NumPy broadcasting.
absl::StatusOr<ir::Shape> BroadcastShapes(absl::Span<const ir::Shape> shapes);

// Axis in [0, rank) from one in [-rank, rank).
absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, size_t rank);
// Sorted, distinct axes; an empty list stands for all.
absl::StatusOr<std::vector<int64_t>> NormalizeAxes(absl::Span<const int64_t> axes, size_t rank);

// "(2, 3)", "(3,)", "()".
std::string ToString(absl::Span<const int64_t> shape);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_INFER_H_
