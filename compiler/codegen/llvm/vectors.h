// Vectors of lanes as LLVM values, and the representation of elements in memory.
#ifndef KILN_COMPILER_CODEGEN_LLVM_VECTORS_H_
#define KILN_COMPILER_CODEGEN_LLVM_VECTORS_H_

#include <vector>

#include "compiler/ir/dtype.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

// Returns the type itself for one lane.
llvm::Type* Wide(llvm::Type* element, int lanes);
// Returns the alignment of one element, since vectors may begin at any element.
llvm::Align ElementAlign(ir::DType dtype);

// Convert between a bool's byte in memory and a value's bit; other dtypes are the same in both. For
// any number of lanes.
llvm::Value* FromMemory(llvm::IRBuilder<>& builder, ir::DType dtype, llvm::Value* value);
llvm::Value* ToMemory(llvm::IRBuilder<>& builder, ir::DType dtype, llvm::Value* value);

// Returns the vector with the last lane first.
llvm::Value* Reverse(llvm::IRBuilder<>& builder, llvm::Value* vector);
// Returns the columns of `rows`. Requires: as many rows as lanes, a power of two.
std::vector<llvm::Value*> Transpose(llvm::IRBuilder<>& builder, std::vector<llvm::Value*> rows);
// Returns the only lane that a mask enables, or -1 if it enables more or none, or is not a constant
// (or null).
int OnlyLane(const llvm::Value* mask);

// Loads the lanes that the mask enables; the others are zero. LLVM 22 splits vectors that are wider
// than registers. It may then load a part without a mask if it knows that all of its lanes are
// masked off, and so read past the buffer. So such parts are left out here.
llvm::Value* MaskedLoad(llvm::IRBuilder<>& builder, llvm::Type* element, llvm::Align align,
                        llvm::Value* pointer, llvm::Value* mask);
// The same for a store, where a part without its mask would overwrite memory past the buffer.
void MaskedStore(llvm::IRBuilder<>& builder, llvm::Type* element, llvm::Align align,
                 llvm::Value* pointer, llvm::Value* mask, llvm::Value* value);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_VECTORS_H_
