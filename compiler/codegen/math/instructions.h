// The optional target instructions that a function may use. They are stored as attributes of the
// function, so that all code that emits into it finds them through the builder.
#ifndef KILN_COMPILER_CODEGEN_MATH_INSTRUCTIONS_H_
#define KILN_COMPILER_CODEGEN_MATH_INSTRUCTIONS_H_

#include "drivers/interface/target.h"

namespace llvm {
class Function;
class IRBuilderBase;
}  // namespace llvm

namespace kiln::codegen {

enum class Instruction {
  kFusedMultiplyAdd,
  kConvertHalf,  // float16 from and to float32
  kRoundBFloat,  // float32 to bfloat16, to nearest even; denormal numbers are kept
  kScale,        // AVX-512's VSCALEF of 256 and 512 bits: value * 2^n
  kWideVectors,  // registers of 64 bytes
};

// Allows the target's instructions. Without this call, `function` uses none of them.
void AllowInstructions(const drivers::Target& target, llvm::Function& function);
// Allows the instructions of `from`, for a helper function of it.
void AllowInstructionsOf(const llvm::Function& from, llvm::Function& function);

// Returns whether the builder's function may use it.
bool MayUse(const llvm::IRBuilderBase& builder, Instruction instruction);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_INSTRUCTIONS_H_
