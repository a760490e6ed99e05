// Shared helpers of composites: expansions, and the form of their rows. Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_COMPOSITES_COMPOSITE_H_
#define KILN_COMPILER_OPS_COMPOSITES_COMPOSITE_H_

#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/attributes.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/op_def.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {

using Operands = absl::Span<const ir::Node* const>;
using Expansion = absl::StatusOr<const ir::Node*>;

// Returns the row of a composite of one or more operands, which have one shape and dtype unless
// said otherwise.
inline OpDef Composite(std::string_view name, std::vector<std::string_view> operands,
                       DTypeRule dtype_rule, DTypeClass operand_class, ExpandFn expand,
                       std::string_view doc) {
  return {.name = name,
          .kind = Kind::kComposite,
          .operands = std::move(operands),
          .dtype_rule = dtype_rule,
          .operand_class = operand_class,
          .expand = expand,
          .doc = doc};
}

// Returns the row of a function of one operand whose result has a float dtype.
inline OpDef FloatFunction(std::string_view name, ExpandFn expand, std::string_view doc) {
  return Composite(name, {"x"}, DTypeRule::kPromoteFloat, DTypeClass::kAny, expand, doc);
}

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline const ir::Node* Zero(Builder& b, const ir::Node* like) { return b.Const(like->dtype(), 0); }
inline const ir::Node* Half(Builder& b, const ir::Node* x) { return b.Mul(x, 0.5); }
// Returns x where it is above 0, else 0, with the gradient 1 at 0, like PyTorch's clamp.
inline const ir::Node* Positive(Builder& b, const ir::Node* x) {
  return b.Where(b.Less(x, Zero(b, x)), Zero(b, x), x);
}
// Returns the attribute "axis", normalized to [0, rank).
inline int64_t AxisOf(const ir::Node* x, const Attributes& attributes) {
  return NormalizeAxis(IntOf(attributes, "axis"), x->shape().size()).value();
}

// The sigmoid; 0, with gradient 0, where e^-x exceeds the dtype's largest number.
const ir::Node* Sigmoid(Builder& b, const ir::Node* x);
// log(1 + e^x).
const ir::Node* Softplus(Builder& b, const ir::Node* x);
// Returns whether a float or integer x <= bound; false for NaN.
const ir::Node* AtMost(Builder& b, const ir::Node* x, double bound);
const ir::Node* Abs(Builder& b, const ir::Node* x);
const ir::Node* Floor(Builder& b, const ir::Node* x);
// Rounds to the nearest whole number; ties to even.
const ir::Node* Rounded(Builder& b, const ir::Node* x);
const ir::Node* IsNan(Builder& b, const ir::Node* x);
// Returns whether x's sign bit is set, as it is for -0.
const ir::Node* SignBit(Builder& b, const ir::Node* x);
// Returns 1 with x's sign bit, without gradient.
const ir::Node* SignOf(Builder& b, const ir::Node* x);
// Returns the power of two, without gradient, that brings a float32 or float64 magnitude into [1,
// 2), or as close as possible with a normal number whose reciprocal is also normal. Scaling by it
// and back is exact.
const ir::Node* ScaleOf(Builder& b, const ir::Node* magnitude);
// Converts x to a dtype in which squares of its numbers, and sums of them, neither overflow nor
// underflow: float64 for float32. For float64 there is none, so it returns x.
const ir::Node* WithRoomForSquares(Builder& b, const ir::Node* x);
// coefficients[0] * x^n + … + coefficients[n], by Horner's rule.
const ir::Node* Polynomial(Builder& b, const ir::Node* x, absl::Span<const double> coefficients);
// log(1 + x), and e^x - 1, to a few units in the last place; x is float32 or float64.
const ir::Node* Log1p(Builder& b, const ir::Node* x);
const ir::Node* Expm1(Builder& b, const ir::Node* x);
// log(e^x + e^y) without overflow; both are float32 or float64.
const ir::Node* LogAddExp(Builder& b, const ir::Node* x, const ir::Node* y);
// erf, to a few units in the last place; x is float64.
const ir::Node* ErfOfDouble(Builder& b, const ir::Node* x);
// The arc tangent in radians; x is float32 or float64.
const ir::Node* Atan(Builder& b, const ir::Node* x);

// The expansion of a function of one operand, or of two.
template <const ir::Node* (*Function)(Builder&, const ir::Node*)>
Expansion ExpandUnary(Builder& b, Operands x, const Attributes&) {
  return Function(b, x[0]);
}
template <const ir::Node* (*Function)(Builder&, const ir::Node*, const ir::Node*)>
Expansion ExpandBinary(Builder& b, Operands x, const Attributes&) {
  return Function(b, x[0], x[1]);
}

// Returns the number of elements reduced into each result. Requires: normalized axes.
int64_t CountOver(const ir::Node* x, absl::Span<const int64_t> axes);
// Returns NaN for no elements.
const ir::Node* Mean(Builder& b, const ir::Node* x, absl::Span<const int64_t> axes, bool keepdims);
// Returns the maximum over axes. The gradient goes to the first maximum in row-major order, or to
// the first NaN. `counts`, of x's shape, selects the elements that take part; null selects all.
const ir::Node* MaxOfFirst(Builder& b, const ir::Node* x, std::vector<int64_t> axes,
                           const ir::Node* counts);
// The gradient is 0 where all elements are -inf.
const ir::Node* LogSumExp(Builder& b, const ir::Node* x, absl::Span<const int64_t> axes,
                          bool keepdims);
const ir::Node* Softmax(Builder& b, const ir::Node* x, int64_t axis);
const ir::Node* LogSoftmax(Builder& b, const ir::Node* x, int64_t axis);

// Returns x to the power 1 / degree; 0, with gradient 0, where x <= 0.
const ir::Node* Root(Builder& b, const ir::Node* x, double degree);
// The norm of an order over normalized axes: order 0 counts the elements that are not 0; inf and
// -inf give the largest and the smallest magnitude. The gradient is 0 where all of x is 0. No
// intermediate power overflows or underflows. BoundedNorm is along one axis, which is kept with
// size 1, has an order p > 0, and is at least epsilon.
const ir::Node* Norm(Builder& b, const ir::Node* x, absl::Span<const int64_t> axes, double order,
                     bool keepdims);
const ir::Node* BoundedNorm(Builder& b, const ir::Node* x, int64_t axis, double p, double epsilon);

// The attribute "reduction" of losses, which says how the single losses are combined: "mean", "sum"
// or "none".
AttributeDef Reduction();
// Returns a row with that attribute after its own attributes.
OpDef LossRow(Rule shape_rule, std::string_view name, std::vector<std::string_view> operands,
              std::vector<AttributeDef> attributes, ExpandFn expand, std::string_view doc);
const ir::Node* ReduceLoss(Builder& b, const ir::Node* losses, const Attributes& attributes);

// Returns the diagonal of two dimensions, `offset` columns to the right of the main one, as a new
// last dimension. Axes count from 0.
const ir::Node* Diagonal(Builder& b, const ir::Node* x, int64_t row_axis, int64_t column_axis,
                         int64_t offset = 0);

// Returns x rotated by `shift` along an axis; elements that leave at one end enter at the other.
const ir::Node* Rolled(Builder& b, const ir::Node* x, int64_t axis, int64_t shift);

// (…, M, K) and (…, N, K) to (…, M, N): the sum over K of a product of two views.
const ir::Node* MatmulTransposed(Builder& b, const ir::Node* a, const ir::Node* bt);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_COMPOSITE_H_
