// Which registers statements set: what a loop around them carries.
#ifndef KILN_COMPILER_CODEGEN_LLVM_WRITTEN_H_
#define KILN_COMPILER_CODEGEN_LLVM_WRITTEN_H_

#include <vector>

#include "compiler/schedule/loop_program.h"

namespace kiln::codegen {

// The buffers, in ascending order.
std::vector<int> WrittenRegisters(const schedule::LoopProgram& program,
                                  const std::vector<schedule::Statement>& body);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_WRITTEN_H_
