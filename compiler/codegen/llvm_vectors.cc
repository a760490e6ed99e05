#include "compiler/codegen/llvm_vectors.h"

#include <utility>

namespace kiln::codegen {

using ir::DType;
using llvm::Value;

llvm::Type* Wide(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

llvm::Align ElementAlign(DType dtype) {
  return llvm::Align(static_cast<uint64_t>(ir::SizeOf(dtype)));
}

Value* FromMemory(llvm::IRBuilder<>& builder, DType dtype, Value* value) {
  if (dtype != DType::kBool) return value;
  return builder.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

Value* ToMemory(llvm::IRBuilder<>& builder, DType dtype, Value* value) {
  if (dtype != DType::kBool) return value;
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  const int lanes = vector == nullptr ? 1 : static_cast<int>(vector->getNumElements());
  return builder.CreateZExt(value, Wide(builder.getInt8Ty(), lanes));
}

Value* Reverse(llvm::IRBuilder<>& builder, Value* vector) {
  const auto lanes = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  llvm::SmallVector<int, 64> order;
  for (unsigned i = 0; i < lanes; ++i) order.push_back(static_cast<int>(lanes - 1 - i));
  return builder.CreateShuffleVector(vector, order);
}

// Each round deals out pairs of vectors that are half of all apart, as one riffles cards; after
// log2(lanes) rounds rows have become columns.
std::vector<Value*> Transpose(llvm::IRBuilder<>& builder, std::vector<Value*> rows) {
  const int count = static_cast<int>(rows.size());
  llvm::SmallVector<int, 64> low, high;
  for (int i = 0; i < count / 2; ++i) {
    low.append({i, count + i});
    high.append({count / 2 + i, count + count / 2 + i});
  }
  for (int round = count; round > 1; round /= 2) {
    std::vector<Value*> next(rows.size());
    for (int i = 0; i < count / 2; ++i) {
      next[2 * i] = builder.CreateShuffleVector(rows[i], rows[i + count / 2], low);
      next[2 * i + 1] = builder.CreateShuffleVector(rows[i], rows[i + count / 2], high);
    }
    rows = std::move(next);
  }
  return rows;
}

int OnlyLane(const Value* mask) {
  const auto* known = mask == nullptr ? nullptr : llvm::dyn_cast<llvm::Constant>(mask);
  if (known == nullptr || !known->getType()->isVectorTy()) return -1;
  const auto lanes = llvm::cast<llvm::FixedVectorType>(known->getType())->getNumElements();
  int only = -1;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const llvm::Constant* bit = known->getAggregateElement(lane);
    if (bit == nullptr) return -1;
    if (bit->isNullValue()) continue;
    if (only >= 0) return -1;
    only = static_cast<int>(lane);
  }
  return only;
}

}  // namespace kiln::codegen
