// The attribute "mode" of the ops that scatter. Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_SCATTER_MODE_H_
#define KILN_COMPILER_OPS_SCATTER_MODE_H_

#include "absl/status/statusor.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// INVALID_ARGUMENT: no such mode, x and values differ in dtype, or they are bools and the mode is
// not set.
absl::StatusOr<ir::ScatterMode> ScatterModeOf(const Attributes& attributes, const ir::Node* x,
                                              const ir::Node* values);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_SCATTER_MODE_H_
