// A scheduled kernel as C-like source, for people to read: what `explain` shows. It is not
// compiled.
#ifndef KILN_COMPILER_CODEGEN_C_SOURCE_H_
#define KILN_COMPILER_CODEGEN_C_SOURCE_H_

#include <string>

#include "compiler/schedule/loop_program.h"

namespace kiln::codegen {

// One function. Ranges are named by what their loop is: p0, p1, … for parallel tasks, i0, … for
// serial loops, u0, … for unrolled ones, v0, … for vector lanes. Values that a statement needs more
// than once stand in constants t0, t1, …. `/` and `%` of integers round down; a load with a
// condition is zero where that is false.
std::string PrintSource(const schedule::LoopProgram& program);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_C_SOURCE_H_
