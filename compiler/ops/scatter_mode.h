// The attribute "mode" of the ops that scatter. Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_SCATTER_MODE_H_
#define KILN_COMPILER_OPS_SCATTER_MODE_H_

#include "compiler/ops/op_def.h"

namespace kiln::ops {

AttributeDef ScatterModeAttribute();
// Requires: completed attributes.
ir::ScatterMode ScatterModeOf(const Attributes& attributes);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_SCATTER_MODE_H_
