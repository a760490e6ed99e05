// Movement ops as index arithmetic: where in its operand a movement op reads an element of its
// result.
#ifndef KILN_COMPILER_KERNEL_MOVEMENT_H_
#define KILN_COMPILER_KERNEL_MOVEMENT_H_

#include "compiler/ir/node.h"
#include "compiler/kernel/expression.h"
#include "compiler/kernel/index.h"

namespace kiln::kernel {

// Reshape, permute, expand, pad, shrink, flip, window, unwindow, and the identities contiguous and
// mutable.
bool IsMovement(ir::Op op);

// The point of operand 0 that the movement op `node` reads for the point `at` of its own. Pads and
// unwindows add to the validity: where that does not hold, the result is zero.
Point MoveThrough(IndexMath& math, const ir::Node* node, const Point& at);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_MOVEMENT_H_
