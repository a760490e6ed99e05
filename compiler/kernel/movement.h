// Movement ops as index arithmetic: which element of its operand a movement op reads for an element
// of its result.
#ifndef KILN_COMPILER_KERNEL_MOVEMENT_H_
#define KILN_COMPILER_KERNEL_MOVEMENT_H_

#include "compiler/ir/node.h"
#include "compiler/kernel/expression.h"
#include "compiler/kernel/index.h"

namespace kiln::kernel {

// Returns true for reshape, permute, expand, pad, shrink, flip, window, unwindow, and the
// identities contiguous and mutable.
bool IsMovement(ir::Op op);

// Returns the point of operand 0 that the movement op `node` reads for its own point `at`. Pads and
// unwindows add to the validity: where it does not hold, the result is zero.
Point MoveThrough(IndexMath& math, const ir::Node* node, const Point& at);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_MOVEMENT_H_
