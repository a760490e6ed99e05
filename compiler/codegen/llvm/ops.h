// Scalar operations as LLVM IR, on scalars or on whole vectors: the result of one kernel-level node
// from its operands. Semantics are those of compiler/ops (floored integer division, 0 for a zero
// divisor, …).
#ifndef KILN_COMPILER_CODEGEN_LLVM_OPS_H_
#define KILN_COMPILER_CODEGEN_LLVM_OPS_H_

#include "absl/types/span.h"
#include "compiler/codegen/math/composite.h"
#include "compiler/ir/node.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

// Returns whether EmitOp supports the op for operands of these dtypes. For short floats these are
// only ops without arithmetic.
bool IsSupported(const ir::Node* node);

// Returns a register's type; bool is i1, a short float an integer with its bits.
llvm::Type* ScalarType(llvm::LLVMContext& context, ir::DType dtype);
// Returns the type of an element in memory; bool is i8.
llvm::Type* MemoryType(llvm::LLVMContext& context, ir::DType dtype);

// Returns `element` with as many lanes as `like` has, and the zero of the type of `like`.
inline llvm::Type* WithLanesOf(llvm::Value* like, llvm::Type* element) {
  return like->getType()->getWithNewType(element);
}
inline llvm::Constant* Zero(llvm::Value* like) {
  return llvm::Constant::getNullValue(like->getType());
}

// Requires: `operands` are all scalars or all vectors of one width, and the node is not a source, a
// load or a reduction. `known_nonnegative`: an integer division's operands are never negative and
// its divisor is not 0.
llvm::Value* EmitOp(llvm::IRBuilderBase& builder, const ir::Node* node,
                    absl::Span<llvm::Value* const> operands, bool known_nonnegative);

// `argument`: the value of a composite's argument, scalar or vector.
llvm::Value* EmitComposite(llvm::IRBuilderBase& builder, MathComposite::Kind kind,
                           llvm::Value* argument);

// Returns a constant of the node's dtype.
llvm::Constant* EmitConstant(llvm::LLVMContext& context, const ir::Node* node);

// Returns the op that combines two values of a kReduce, and the combined value.
ir::Op CombineOpOf(const ir::Node* reduce);
llvm::Value* EmitCombine(llvm::IRBuilderBase& builder, const ir::Node* reduce, llvm::Value* a,
                         llvm::Value* b);

// Folds the lanes of a vector into one value with kAdd, kMul, kMax, kAnd or kOr.
llvm::Value* EmitHorizontal(llvm::IRBuilderBase& builder, ir::Op op, ir::DType dtype,
                            llvm::Value* vector);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_OPS_H_
