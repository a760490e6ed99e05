// The text of kernels and scalar expressions. kernel.h has the contracts of Print and ParseKernel.
//
//   buffer b0 float32[102400] read
//   buffer b1 float32[128] write
//   stage r0:128 reduce r1:800
//     b1[r0] = sum(b0[r0*800 + r1])
//
// A scatter's stage has "order" instead of "reduce", its buffer "update" instead of "write". Ranges
// are numbered in the order of the loops. A subexpression that occurs more than once in a stage
// gets a name in a line before its first use ("v0 = …"). Operators are + - * / // (flooring) % with
// their usual precedence; everything else is written as a function, and casts as float32(x).
// Constants other than int64 have their dtype: 0.5:float32.
#ifndef KILN_COMPILER_KERNEL_TEXT_H_
#define KILN_COMPILER_KERNEL_TEXT_H_

#include <string>

#include "compiler/kernel/kernel.h"

namespace kiln::kernel {

// Prints one expression on one line, for messages; ranges have their own ids.
std::string PrintExpression(const ir::Node* node);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_TEXT_H_
