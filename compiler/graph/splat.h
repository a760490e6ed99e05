// Tensors whose elements are all the same constant, and the movement nodes that rules build.
#ifndef KILN_COMPILER_GRAPH_SPLAT_H_
#define KILN_COMPILER_GRAPH_SPLAT_H_

#include "compiler/ir/node.h"

namespace kiln::graph {

// Returns the kConst below reshapes, expands, permutes, shrinks and flips; null if there is none.
const ir::Node* SplatConst(const ir::Node* node);

// Returns whether every element is this number. For floats the sign of zero matters.
bool IsSplat(const ir::Node* node, double value);

// Returns a tensor filled with `value`. Requires: the dtype holds `value` exactly.
const ir::Node* MakeSplat(ir::Context& context, ir::DType dtype, const ir::Shape& shape,
                          double value);
// Returns a kConst expanded to that shape, in the canonical form of all splats: reshape to ones,
// then expand.
const ir::Node* SplatTo(ir::Context& context, const ir::Node* constant, const ir::Shape& shape);

// Return movement nodes, or the operand itself if nothing changes.
const ir::Node* ReshapeTo(ir::Context& context, const ir::Node* node, const ir::Shape& shape);
const ir::Node* ExpandTo(ir::Context& context, const ir::Node* node, const ir::Shape& shape);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_SPLAT_H_
