// Gradient rules of primitives, one for each row that is differentiable. Internal to compiler/ops.
//
// Each gives the adjoints of a node's operands from `upstream`, the adjoint of the node. What
// autodiff does not need is never reached from a result and costs nothing.
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
KILN_GRADIENT(ModGradient);      // at the jumps that of either side
KILN_GRADIENT(MaximumGradient);  // equal operands share equally
KILN_GRADIENT(MinimumGradient);
KILN_GRADIENT(
    PowGradient);  // at base 0: d/dbase is 0 for exponent 0; d/dexponent is 0 for exponents >= 0
KILN_GRADIENT(WhereGradient);

// Reductions.
KILN_GRADIENT(SumGradient);
KILN_GRADIENT(ProdGradient);  // exact with zeros among the elements, see factors.h
KILN_GRADIENT(MaxGradient);   // equal largest elements share equally

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
// For max and min, equal largest (or smallest) ones share equally. For mul see factors.h.
KILN_GRADIENT(ScatterElementsGradient);
KILN_GRADIENT(ContiguousGradient);
KILN_GRADIENT(SendGradient);   // goes back
KILN_GRADIENT(ShardGradient);  // lies as the value does
KILN_GRADIENT(WithDerivativeGradient);

#undef KILN_GRADIENT

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_PRIMITIVES_GRADIENTS_H_
