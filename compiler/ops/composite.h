// What composites are written with: shared expansions, and the form of their rows. Internal to
// compiler/ops.
#ifndef KILN_COMPILER_OPS_COMPOSITE_H_
#define KILN_COMPILER_OPS_COMPOSITE_H_

#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/attributes.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

using Operands = absl::Span<const ir::Node* const>;
using Expansion = absl::StatusOr<const ir::Node*>;

// A row of a composite of one or more operands, of one shape and dtype unless said otherwise.
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

// e^-x in the denominator, kept finite so that the gradient is 0 and not NaN far to the left.
const ir::Node* Sigmoid(Builder& b, const ir::Node* x);
// log(1 + e^x).
const ir::Node* Softplus(Builder& b, const ir::Node* x);
// Whether a float or integer x <= bound; false for NaN.
const ir::Node* AtMost(Builder& b, const ir::Node* x, double bound);
const ir::Node* Abs(Builder& b, const ir::Node* x);
const ir::Node* Floor(Builder& b, const ir::Node* x);
const ir::Node* IsNan(Builder& b, const ir::Node* x);

// Over normal axes; `count` elements go into each.
int64_t CountOver(const ir::Node* x, absl::Span<const int64_t> axes);
const ir::Node* Mean(Builder& b, const ir::Node* x, absl::Span<const int64_t> axes, bool keepdims);
const ir::Node* Softmax(Builder& b, const ir::Node* x, int64_t axis);
const ir::Node* LogSoftmax(Builder& b, const ir::Node* x, int64_t axis);

// The p-norm along an axis, which stays with size 1; p > 0, inf is the largest. Its gradient is 0
// where x is. BoundedNorm is at least epsilon.
const ir::Node* Norm(Builder& b, const ir::Node* x, int64_t axis, double p);
const ir::Node* BoundedNorm(Builder& b, const ir::Node* x, int64_t axis, double p, double epsilon);

// The attribute of losses, and what it makes of the single ones: "mean", "sum" or "none".
AttributeDef Reduction();
const ir::Node* ReduceLoss(Builder& b, const ir::Node* losses, const Attributes& attributes);

// (…, M, K) and (…, N, K) to (…, M, N): the sum over K of a product of two views.
const ir::Node* MatmulTransposed(Builder& b, const ir::Node* a, const ir::Node* bt);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITE_H_
