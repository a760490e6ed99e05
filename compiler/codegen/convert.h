// Casts as LLVM IR, scalar or vector: the meaning is that of compiler/ops/round.h, each result
// rounded once. float16, bfloat16 and the float8 types are held as their bits in integers of their
// size, since no arithmetic is done in them: everything but casts works on the bits alone.
#ifndef KILN_COMPILER_CODEGEN_CONVERT_H_
#define KILN_COMPILER_CODEGEN_CONVERT_H_

#include "compiler/ir/dtype.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace kiln::codegen {

// `x` of dtype `from` (see ScalarType in llvm_ops.h) in dtype `to`.
llvm::Value* EmitCast(llvm::IRBuilderBase& builder, ir::DType from, ir::DType to, llvm::Value* x);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_CONVERT_H_
