// The reference semantics of each primitive, one function per row. Internal to compiler/ops.
//
// Floats are computed in double and rounded once; integers wrap. Requires: operands satisfy the
// primitive's spec, for example one shape and dtype.
#ifndef KILN_COMPILER_OPS_PRIMITIVES_EVALUATIONS_H_
#define KILN_COMPILER_OPS_PRIMITIVES_EVALUATIONS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

using HostOperands = absl::Span<const HostTensor* const>;

#define KILN_EVALUATE(name) \
  absl::StatusOr<HostTensor> name(const ir::Node* node, HostOperands operands)

// Sources. An input's value is passed in, so it has no evaluation.
KILN_EVALUATE(EvaluateConst);
KILN_EVALUATE(EvaluateIota);

// Unary.
KILN_EVALUATE(EvaluateNeg);
KILN_EVALUATE(EvaluateReciprocal);
KILN_EVALUATE(EvaluateSqrt);
KILN_EVALUATE(EvaluateExp2);
KILN_EVALUATE(EvaluateLog2);
KILN_EVALUATE(EvaluateSin);
KILN_EVALUATE(EvaluateTrunc);
KILN_EVALUATE(EvaluateNot);
KILN_EVALUATE(EvaluateCast);
KILN_EVALUATE(EvaluateBitcast);

// Binary.
KILN_EVALUATE(EvaluateAdd);
KILN_EVALUATE(EvaluateSub);
KILN_EVALUATE(EvaluateMul);
KILN_EVALUATE(EvaluateDiv);
KILN_EVALUATE(EvaluateIDiv);
KILN_EVALUATE(EvaluateMod);
KILN_EVALUATE(EvaluateMaximum);
KILN_EVALUATE(EvaluateMinimum);
KILN_EVALUATE(EvaluatePow);
KILN_EVALUATE(EvaluateLess);
KILN_EVALUATE(EvaluateEqual);
KILN_EVALUATE(EvaluateNotEqual);
KILN_EVALUATE(EvaluateAnd);
KILN_EVALUATE(EvaluateOr);
KILN_EVALUATE(EvaluateXor);
KILN_EVALUATE(EvaluateShl);
KILN_EVALUATE(EvaluateShr);
KILN_EVALUATE(EvaluateWhere);

// Reductions: in row-major order of the operand, accumulated in double or int64.
KILN_EVALUATE(EvaluateSum);
KILN_EVALUATE(EvaluateProd);
KILN_EVALUATE(EvaluateMax);

// Movement.
KILN_EVALUATE(EvaluateReshape);
KILN_EVALUATE(EvaluatePermute);
KILN_EVALUATE(EvaluateExpand);
KILN_EVALUATE(EvaluatePad);
KILN_EVALUATE(EvaluateShrink);
KILN_EVALUATE(EvaluateFlip);
KILN_EVALUATE(EvaluateWindow);
KILN_EVALUATE(EvaluateUnwindow);

// Indexed.
KILN_EVALUATE(EvaluateGatherElements);
KILN_EVALUATE(EvaluateScatterElements);

// Structure: contiguous, detach, shard and with_derivative.
KILN_EVALUATE(EvaluateIdentity);

#undef KILN_EVALUATE

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_PRIMITIVES_EVALUATIONS_H_
