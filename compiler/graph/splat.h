// Tensors whose elements are all one constant, and the few movement nodes that rules build.
// Internal to compiler/graph.
#ifndef KILN_COMPILER_GRAPH_SPLAT_H_
#define KILN_COMPILER_GRAPH_SPLAT_H_

#include "compiler/ir/node.h"

namespace kiln::graph {

// The kConst below reshapes, expands, permutes, shrinks and flips; null if there is none.
const ir::Node* SplatConst(const ir::Node* node);

// Whether every element is this number. For floats the sign of zero counts.
bool IsSplat(const ir::Node* node, double value);

// The constant `value` (a number that its dtype holds exactly) as a tensor.
const ir::Node* MakeSplat(ir::Context& context, ir::DType dtype, const ir::Shape& shape,
                          double value);
// A kConst made that shape, in the one form that all splats have: reshape to ones, then expand.
const ir::Node* SplatTo(ir::Context& context, const ir::Node* constant, const ir::Shape& shape);

// Movement nodes; the operand itself where nothing changes.
const ir::Node* ReshapeTo(ir::Context& context, const ir::Node* node, const ir::Shape& shape);
const ir::Node* ExpandTo(ir::Context& context, const ir::Node* node, const ir::Shape& shape);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_SPLAT_H_
