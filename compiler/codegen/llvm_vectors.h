// Vectors of lanes as LLVM values, and how elements stand in memory.
#ifndef KILN_COMPILER_CODEGEN_LLVM_VECTORS_H_
#define KILN_COMPILER_CODEGEN_LLVM_VECTORS_H_

#include <vector>

#include "compiler/ir/dtype.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

// The type itself for one lane.
llvm::Type* Wide(llvm::Type* element, int lanes);
// Of one element: vectors may begin at any.
llvm::Align ElementAlign(ir::DType dtype);

// Between a bool's byte in memory and a value's bit; others are the same in both. Of any number of
// lanes.
llvm::Value* FromMemory(llvm::IRBuilder<>& builder, ir::DType dtype, llvm::Value* value);
llvm::Value* ToMemory(llvm::IRBuilder<>& builder, ir::DType dtype, llvm::Value* value);

// The last lane first.
llvm::Value* Reverse(llvm::IRBuilder<>& builder, llvm::Value* vector);
// Rows, as many as there are lanes, a power of two: columns.
std::vector<llvm::Value*> Transpose(llvm::IRBuilder<>& builder, std::vector<llvm::Value*> rows);
// The one lane that a mask known here lets through; -1 if there are more, none or the mask is not
// known (or null).
int OnlyLane(const llvm::Value* mask);

// The lanes that the mask lets through, zero for the others. LLVM 22 splits vectors that are wider
// than registers, and may then load a part without any mask whose lanes it knows to be masked all:
// it reads beyond the buffer. So such parts are left out here.
llvm::Value* MaskedLoad(llvm::IRBuilder<>& builder, llvm::Type* element, llvm::Align align,
                        llvm::Value* pointer, llvm::Value* mask);
// The same for a store, where a part without its mask would overwrite what stands behind.
void MaskedStore(llvm::IRBuilder<>& builder, llvm::Type* element, llvm::Align align,
                 llvm::Value* pointer, llvm::Value* mask, llvm::Value* value);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_VECTORS_H_
