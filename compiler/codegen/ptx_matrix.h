// Instructions of NVIDIA's matrix units, which the 32 threads of a subgroup run together (PTX ISA,
// "Matrix multiply-accumulate operation using mma instruction": m16n8k16 and m16n8k8, with float32
// sums; sm_80 and later).
#ifndef KILN_COMPILER_CODEGEN_PTX_MATRIX_H_
#define KILN_COMPILER_CODEGEN_PTX_MATRIX_H_

#include <array>

#include "compiler/ir/dtype.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

// 32 bits of a factor in each thread: two short floats or one float32.
using MatrixA = std::array<llvm::Value*, 4>;
using MatrixB = std::array<llvm::Value*, 2>;
using MatrixC = std::array<llvm::Value*, 4>;

// sums + a * b, the factors' elements of `dtype`: float16, bfloat16 or, as tf32, float32.
MatrixC EmitMatrixProduct(llvm::IRBuilder<>& builder, ir::DType dtype, const MatrixA& a,
                          const MatrixB& b, const MatrixC& sums);

// Matrices of 8 by 8 elements of 16 bits in shared memory. Thread i names where row i % 8 of matrix
// i / 8 begins, a multiple of 16 bytes; thread 4 * r + c gets elements 2 * c and 2 * c + 1 of row r
// of each, or of column r if `transposed`.
MatrixA EmitLoadMatrices4(llvm::IRBuilder<>& builder, llvm::Value* pointer, bool transposed);
// The first 16 threads name rows.
MatrixB EmitLoadMatrices2(llvm::IRBuilder<>& builder, llvm::Value* pointer, bool transposed);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_PTX_MATRIX_H_
