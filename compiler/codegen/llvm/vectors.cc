#include "compiler/codegen/llvm/vectors.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/codegen/math/instructions.h"

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

// Each round interleaves pairs of vectors that are half of all apart, like a riffle shuffle; after
// log2(lanes) rounds the rows have become columns.
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

namespace {

// Returns which lanes a mask may enable, as far as its constants tell. Masks of ragged ends are
// constants, conditions are combined with them by `and`, and Reverse shuffles them.
std::vector<bool> PossibleLanes(const Value* mask) {
  const auto* type = llvm::cast<llvm::FixedVectorType>(mask->getType());
  std::vector<bool> possible(type->getNumElements(), true);
  if (const auto* known = llvm::dyn_cast<llvm::Constant>(mask)) {
    for (unsigned lane = 0; lane < possible.size(); ++lane) {
      const llvm::Constant* bit = known->getAggregateElement(lane);
      possible[lane] = bit == nullptr || !bit->isNullValue();
    }
  } else if (const auto* both = llvm::dyn_cast<llvm::BinaryOperator>(mask);
             both != nullptr && both->getOpcode() == llvm::Instruction::And) {
    const std::vector<bool> a = PossibleLanes(both->getOperand(0));
    const std::vector<bool> b = PossibleLanes(both->getOperand(1));
    for (size_t lane = 0; lane < possible.size(); ++lane) possible[lane] = a[lane] && b[lane];
  } else if (const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(mask);
             shuffle != nullptr && shuffle->getOperand(0)->getType() == mask->getType()) {
    const std::vector<bool> from = PossibleLanes(shuffle->getOperand(0));
    for (size_t lane = 0; lane < possible.size(); ++lane) {
      const int source = shuffle->getMaskValue(static_cast<unsigned>(lane));
      possible[lane] = source < 0 || source >= static_cast<int>(from.size()) || from[source];
    }
  }
  return possible;
}

// A masked access, split where the vector is wider than a register and a part of it is not needed.
class MaskedAccess {
 public:
  MaskedAccess(llvm::IRBuilder<>& builder, llvm::Type* element, llvm::Align align, Value* pointer,
               Value* mask)
      : builder_(builder),
        element_(element),
        align_(align),
        pointer_(pointer),
        mask_(mask),
        possible_(PossibleLanes(mask)) {}

  Value* Load() { return LoadPart(0, lanes()); }
  void Store(Value* value) { StorePart(value, 0, lanes()); }

 private:
  int lanes() const { return static_cast<int>(possible_.size()); }

  Value* LoadPart(int first, int count) {
    Value* zero = llvm::Constant::getNullValue(Wide(element_, count));
    if (NumPossible(first, count) == 0) return zero;
    if (IsWhole(first, count)) {
      return builder_.CreateMaskedLoad(zero->getType(), PointerTo(first), align_,
                                       Slice(mask_, first, count), zero);
    }
    Value* low = LoadPart(first, count / 2);
    Value* high = LoadPart(first + count / 2, count / 2);
    return builder_.CreateShuffleVector(low, high, Counting(0, count));
  }

  void StorePart(Value* value, int first, int count) {
    if (NumPossible(first, count) == 0) return;
    if (IsWhole(first, count)) {
      builder_.CreateMaskedStore(Slice(value, first, count), PointerTo(first), align_,
                                 Slice(mask_, first, count));
      return;
    }
    StorePart(value, first, count / 2);
    StorePart(value, first + count / 2, count / 2);
  }

  int NumPossible(int first, int count) const {
    const auto begin = possible_.begin() + first;
    return static_cast<int>(std::count(begin, begin + count, true));
  }
  bool IsWhole(int first, int count) const {
    const int register_bytes = MayUse(builder_, Instruction::kWideVectors) ? 64 : 32;
    const int bytes = count * static_cast<int>(element_->getPrimitiveSizeInBits()) / 8;
    // If every lane may be enabled, LLVM cannot know that any part is masked off.
    return bytes <= register_bytes || NumPossible(first, count) == count;
  }
  Value* PointerTo(int lane) {
    return builder_.CreateGEP(element_, pointer_, builder_.getInt64(lane));
  }
  Value* Slice(Value* vector, int first, int count) {
    if (count == lanes()) return vector;
    return builder_.CreateShuffleVector(vector, Counting(first, count));
  }
  static llvm::SmallVector<int, 64> Counting(int first, int count) {
    llvm::SmallVector<int, 64> order(count);
    std::iota(order.begin(), order.end(), first);
    return order;
  }

  llvm::IRBuilder<>& builder_;
  llvm::Type* element_;
  const llvm::Align align_;
  Value* pointer_;
  Value* mask_;
  const std::vector<bool> possible_;
};

}  // namespace

Value* MaskedLoad(llvm::IRBuilder<>& builder, llvm::Type* element, llvm::Align align,
                  Value* pointer, Value* mask) {
  return MaskedAccess(builder, element, align, pointer, mask).Load();
}

void MaskedStore(llvm::IRBuilder<>& builder, llvm::Type* element, llvm::Align align, Value* pointer,
                 Value* mask, Value* value) {
  MaskedAccess(builder, element, align, pointer, mask).Store(value);
}

}  // namespace kiln::codegen
