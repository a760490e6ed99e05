// Casts as LLVM IR, scalar or vector, with the meaning of compiler/ops/round.h: each result is
// rounded once. float16, bfloat16 and the float8 types are held as their bits in integers of their
// size, since all operations except casts use only their bits.
#ifndef KILN_COMPILER_CODEGEN_LLVM_CONVERT_H_
#define KILN_COMPILER_CODEGEN_LLVM_CONVERT_H_

#include "compiler/ir/dtype.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace kiln::codegen {

// Casts `x` from dtype `from` (see ScalarType in ops.h) to dtype `to`.
llvm::Value* EmitCast(llvm::IRBuilderBase& builder, ir::DType from, ir::DType to, llvm::Value* x);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_CONVERT_H_
