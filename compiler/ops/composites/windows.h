// Windows that slide over the last dimensions of a tensor, as nodes; sliding.h has their geometry.
#ifndef KILN_COMPILER_OPS_COMPOSITES_WINDOWS_H_
#define KILN_COMPILER_OPS_COMPOSITES_WINDOWS_H_

#include "compiler/ops/builder.h"
#include "compiler/ops/rules/sliding.h"

namespace kiln::ops {

// PadSpatial pads the last dimensions with zeros. Windows returns every window's elements as new
// last dimensions: (…, positions, size).
const ir::Node* PadSpatial(Builder& b, const ir::Node* x, const Sliding& sliding);
const ir::Node* Windows(Builder& b, const ir::Node* x, const Sliding& sliding);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_WINDOWS_H_
