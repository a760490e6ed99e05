// Gradient rules of primitives, one per differentiable row. Internal to compiler/ops.
//
// Each returns the adjoints of a node's operands from `upstream`, the adjoint of the node. Adjoints
// that autodiff does not need are unreachable from the results and cost nothing.
#ifndef KILN_COMPILER_OPS_PRIMITIVES_GRADIENTS_H_
#define KILN_COMPILER_OPS_PRIMITIVES_GRADIENTS_H_

#include <vector>

#include "compiler/ops/op_def.h"

namespace kiln::ops {

using Adjoints = std::vector<const ir::Node*>;

#define KILN_GRADIENT(name) \
  Adjoints name(Builder& b, const ir::Node* node, const ir::Node* upstream)

// Elementwise.
KILN_GRADIENT(NegGradient);
KILN_GRADIENT(ReciprocalGradient);
KILN_GRADIENT(SqrtGradient);
KILN_GRADIENT(Exp2Gradient);
KILN_GRADIENT(Log2Gradient);
KILN_GRADIENT(SinGradient);
KILN_GRADIENT(CastGradient);
KILN_GRADIENT(AddGradient);
KILN_GRADIENT(SubGradient);
KILN_GRADIENT(MulGradient);
KILN_GRADIENT(DivGradient);
KILN_GRADIENT(ModGradient);      // at a jump, the gradient of either side
KILN_GRADIENT(MaximumGradient);  // equal operands share the gradient equally
KILN_GRADIENT(MinimumGradient);
KILN_GRADIENT(
    PowGradient);  // at base 0: d/dbase is 0 for exponent 0; d/dexponent is 0 for exponents >= 0
KILN_GRADIENT(WhereGradient);

// Reductions.
KILN_GRADIENT(SumGradient);
KILN_GRADIENT(ProdGradient);  // exact with zeros among the elements, see factors.h
KILN_GRADIENT(MaxGradient);   // equal maxima share the gradient equally

// Movement: the adjoint views.
KILN_GRADIENT(ReshapeGradient);
KILN_GRADIENT(PermuteGradient);
KILN_GRADIENT(ExpandGradient);
KILN_GRADIENT(PadGradient);
KILN_GRADIENT(ShrinkGradient);
KILN_GRADIENT(FlipGradient);
KILN_GRADIENT(WindowGradient);
KILN_GRADIENT(UnwindowGradient);

// Indexed and structure.
KILN_GRADIENT(GatherElementsGradient);
// For max and min, equal extremes share the gradient equally. For mul see factors.h.
KILN_GRADIENT(ScatterElementsGradient);
KILN_GRADIENT(ContiguousGradient);
KILN_GRADIENT(SendGradient);   // sends the gradient back
KILN_GRADIENT(ShardGradient);  // has the value's layout
KILN_GRADIENT(WithDerivativeGradient);

#undef KILN_GRADIENT

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_PRIMITIVES_GRADIENTS_H_
