// Instructions of NVIDIA's matrix units, which the 32 threads of a subgroup execute together (PTX
// ISA, "Matrix multiply-accumulate operation using mma instruction": m16n8k16 and m16n8k8, with
// float32 sums; sm_80 and later).
#ifndef KILN_COMPILER_CODEGEN_NVPTX_MATRIX_H_
#define KILN_COMPILER_CODEGEN_NVPTX_MATRIX_H_

#include <array>

#include "compiler/ir/dtype.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

// 32 bits of a factor in each thread: two short floats or one float32.
using MatrixA = std::array<llvm::Value*, 4>;
using MatrixB = std::array<llvm::Value*, 2>;
using MatrixC = std::array<llvm::Value*, 4>;

// sums + a * b. `dtype` of the factors' elements: float16, bfloat16, or float32 (as tf32).
MatrixC EmitMatrixProduct(llvm::IRBuilder<>& builder, ir::DType dtype, const MatrixA& a,
                          const MatrixB& b, const MatrixC& sums);

// Load matrices of 8 by 8 elements of 16 bits from shared memory. Thread i passes the address of
// row i % 8 of matrix i / 8, a multiple of 16 bytes; thread 4 * r + c gets elements 2 * c and 2 * c
// + 1 of row r of each matrix, or of column r if `transposed`.
MatrixA EmitLoadMatrices4(llvm::IRBuilder<>& builder, llvm::Value* pointer, bool transposed);
// Only the first 16 threads pass rows.
MatrixB EmitLoadMatrices2(llvm::IRBuilder<>& builder, llvm::Value* pointer, bool transposed);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_NVPTX_MATRIX_H_
