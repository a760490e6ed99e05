// Translates a loop program into one LLVM function, statement by statement: a loop becomes a loop,
// a register slot an SSA value, a lane-bound range a vector. It makes only two decisions, which
// otherwise every later stage would have to repair:
//  * an expression is computed once, before the innermost loop that it depends on;
//  * a slot that a loop changes is carried in a PHI of that loop.
#ifndef KILN_COMPILER_CODEGEN_LLVM_EMIT_H_
#define KILN_COMPILER_CODEGEN_LLVM_EMIT_H_

#include <memory>
#include <string>

#include "compiler/codegen/llvm/frame.h"
#include "compiler/schedule/loop_program.h"
#include "drivers/interface/target.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace kiln::codegen {

// Returns a module with the function `symbol`, in the frame of its kind of machine. Requires:
// IsSupported holds for every node.
std::unique_ptr<llvm::Module> EmitModule(llvm::LLVMContext& context,
                                         const schedule::LoopProgram& program,
                                         const drivers::Target& target, const Frame& frame,
                                         const std::string& symbol);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_EMIT_H_
