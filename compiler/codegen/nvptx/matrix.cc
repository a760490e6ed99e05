#include "compiler/codegen/nvptx/matrix.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

namespace kiln::codegen {
namespace {

using llvm::Value;

template <size_t N>
std::array<Value*, N> Unpack(llvm::IRBuilder<>& builder, Value* values) {
  std::array<Value*, N> result;
  for (unsigned i = 0; i < N; ++i) result[i] = builder.CreateExtractValue(values, i);
  return result;
}

template <size_t N>
std::array<Value*, N> LoadMatrices(llvm::IRBuilder<>& builder, llvm::Intrinsic::ID id,
                                   Value* pointer) {
  return Unpack<N>(builder, builder.CreateIntrinsic(id, {pointer->getType()}, {pointer}));
}

llvm::Intrinsic::ID ProductOf(ir::DType dtype) {
  if (dtype == ir::DType::kFloat16) return llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32;
  if (dtype == ir::DType::kBFloat16) return llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16;
  return llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32;
}

}  // namespace

MatrixC EmitMatrixProduct(llvm::IRBuilder<>& builder, ir::DType dtype, const MatrixA& a,
                          const MatrixB& b, const MatrixC& sums) {
  // Only the instruction for float16 has the dtype in its operand types.
  llvm::Type* pair = dtype == ir::DType::kFloat16
                         ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(
                               llvm::Type::getHalfTy(builder.getContext()), 2))
                         : builder.getInt32Ty();
  llvm::SmallVector<Value*, 10> operands;
  for (Value* value : a) operands.push_back(builder.CreateBitCast(value, pair));
  for (Value* value : b) operands.push_back(builder.CreateBitCast(value, pair));
  operands.append(sums.begin(), sums.end());
  return Unpack<4>(builder, builder.CreateIntrinsic(ProductOf(dtype), {}, operands));
}

MatrixA EmitLoadMatrices4(llvm::IRBuilder<>& builder, Value* pointer, bool transposed) {
  return LoadMatrices<4>(builder,
                         transposed ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                                    : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16,
                         pointer);
}

MatrixB EmitLoadMatrices2(llvm::IRBuilder<>& builder, Value* pointer, bool transposed) {
  return LoadMatrices<2>(builder,
                         transposed ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16
                                    : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16,
                         pointer);
}

}  // namespace kiln::codegen
