// Finds the registers that statements set, which an enclosing loop must carry, and the arguments
// that they use.
#ifndef KILN_COMPILER_CODEGEN_LLVM_WRITTEN_H_
#define KILN_COMPILER_CODEGEN_LLVM_WRITTEN_H_

#include <vector>

#include "compiler/schedule/loop_program.h"

namespace kiln::codegen {

// Returns the buffers, in ascending order.
std::vector<int> WrittenRegisters(const schedule::LoopProgram& program,
                                  const std::vector<schedule::Statement>& body);
// Returns the arguments that the statements read or write.
std::vector<int> UsedArguments(const schedule::LoopProgram& program,
                               const std::vector<schedule::Statement>& body);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_WRITTEN_H_
