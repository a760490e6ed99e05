// The part of ExpressionEmitter that writes buffers.
#include "compiler/codegen/llvm/expression.h"
#include "compiler/codegen/llvm/ops.h"
#include "compiler/codegen/llvm/vectors.h"
#include "compiler/kernel/expression_folder.h"

namespace kiln::codegen {

using ir::DType;
using ir::Node;
using llvm::Value;
using schedule::Space;

void ExpressionEmitter::EmitStore(int buffer, const Node* index, const Node* value,
                                  const Node* valid, bool streaming) {
  if (program_.buffers[buffer].space == Space::kRegister) {
    EmitSlotStore(buffer, index, value, valid);
    return;
  }
  int64_t known;
  if (valid != nullptr && kernel::IsConstant(valid, &known)) {
    if (known == 0) return;
    valid = nullptr;
  }
  Value* stored = Emit(value);
  const bool vector = DependenceOf(index).varying;
  if (!vector) {
    const Address address = AddressOf(buffer, index, nullptr);
    if (stored->getType()->isVectorTy())
      stored = builder_.CreateExtractElement(stored, uint64_t{0});
    EmitScalarStore(buffer, address, ToMemory(builder_, program_.buffers[buffer].dtype, stored),
                    valid == nullptr ? nullptr : Emit(valid));
  } else {
    const Address address = AddressOf(buffer, index, nullptr);
    EmitVectorStore(buffer, address,
                    ToMemory(builder_, program_.buffers[buffer].dtype, Splat(stored, lanes_)),
                    valid, streaming);
  }
  Touch(buffer);
}

std::optional<ExpressionEmitter::CopyOfBytes> ExpressionEmitter::FindCopy(int buffer,
                                                                          const Node* index,
                                                                          const Node* value) {
  if (value->op() != ir::Op::kLoad) return std::nullopt;
  const Node* valid = value->operands().size() > 1 ? value->operand(1) : nullptr;
  if (valid != nullptr && DependenceOf(valid).varying) return std::nullopt;
  const int64_t bytes = lanes_ * ir::SizeOf(value->dtype());
  if (bytes != 4 && bytes != 8 && bytes != 16) return std::nullopt;
  const Address to = AddressOf(buffer, index, nullptr);
  const auto source = static_cast<int>(value->attr<ir::IntAttr>().value);
  // A buffer of at least this size can be read even where the copy is not valid.
  if (valid != nullptr && program_.buffers[source].elements < lanes_) return std::nullopt;
  const Address from = AddressOf(source, value->operand(0), valid);
  for (const Address* address : {&to, &from}) {
    const bool whole = lanes_ == 1 || (address->IsContiguous() && address->lanes == lanes_);
    if (!whole || address->known_multiple % lanes_ != 0) return std::nullopt;
  }
  return CopyOfBytes{to.scalar, from.scalar, bytes, valid == nullptr ? nullptr : Emit(valid)};
}

void ExpressionEmitter::EmitStoreOf(int buffer, const Node* index, Value* value) {
  EmitScalarStore(buffer, AddressOf(buffer, index, nullptr),
                  ToMemory(builder_, program_.buffers[buffer].dtype, value), nullptr);
  Touch(buffer);
}

void ExpressionEmitter::EmitScalarStore(int buffer, const Address& to, Value* value, Value* valid) {
  const llvm::Align align = ScalarAlign(program_.buffers[buffer].dtype, to);
  Value* pointer = to.scalar;
  if (valid == nullptr) {
    builder_.CreateAlignedStore(value, pointer, align);
    return;
  }
  // Unlike a load, an invalid store must not happen, so it needs a branch.
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  auto* store = llvm::BasicBlock::Create(builder_.getContext(), "store", function);
  auto* after = llvm::BasicBlock::Create(builder_.getContext(), "after", function);
  builder_.CreateCondBr(valid, store, after);
  builder_.SetInsertPoint(store);
  builder_.CreateAlignedStore(value, pointer, align);
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
}

void ExpressionEmitter::EmitVectorStore(int buffer, const Address& to, Value* value,
                                        const Node* valid, bool streaming) {
  const DType dtype = program_.buffers[buffer].dtype;
  Address address = to;
  llvm::Type* element = MemoryType(builder_.getContext(), dtype);
  const llvm::Align align = ElementAlign(dtype);
  Value* mask = valid == nullptr ? nullptr : EmitWide(valid, lanes_);
  const bool reversed = address.IsReversed();
  if (address.IsContiguous() || reversed) {
    Value* pointer = address.scalar;
    if (reversed) {
      pointer = builder_.CreateGEP(element, pointer, builder_.getInt64(1 - lanes_));
      value = Reverse(builder_, value);
      if (mask != nullptr) mask = Reverse(builder_, mask);
    }
    // LLVM 22 writes four bytes for a masked store of one lane after a truncation to elements of
    // one or two bytes, so it must not get one.
    if (const int lane = OnlyLane(mask); lane >= 0) {
      builder_.CreateAlignedStore(builder_.CreateExtractElement(value, lane),
                                  builder_.CreateGEP(element, pointer, builder_.getInt64(lane)),
                                  align);
      return;
    }
    if (mask != nullptr) {
      MaskedStore(builder_, element, align, pointer, mask, value);
      return;
    }
    const int64_t bytes = lanes_ * ir::SizeOf(dtype);
    // Buffers begin at multiples of 64 bytes, so that no larger alignment is known.
    const bool aligned = !reversed && bytes <= 64 && address.known_multiple % lanes_ == 0;
    llvm::StoreInst* store = builder_.CreateAlignedStore(
        value, pointer, aligned ? llvm::Align(static_cast<uint64_t>(bytes)) : align);
    // x86's non-temporal stores fault unless the whole vector is aligned.
    if (streaming && aligned && bytes >= 16) {
      llvm::Metadata* one = llvm::ConstantAsMetadata::get(builder_.getInt32(1));
      store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                         llvm::MDNode::get(builder_.getContext(), {one}));
    }
    return;
  }
  if (address.vector == nullptr) address.vector = LanePointers(element, address);
  builder_.CreateMaskedScatter(value, address.vector, align, mask);
}

void ExpressionEmitter::EmitSlotStore(int buffer, const Node* index, const Node* value,
                                      const Node* valid) {
  const int lanes = program_.buffers[buffer].lanes;
  const int64_t slot = SlotOf(index);
  Value* stored = EmitWide(value, lanes);
  if (valid != nullptr) {
    Value* old = slots_[buffer][slot];
    if (old == nullptr) old = llvm::Constant::getNullValue(stored->getType());
    stored = builder_.CreateSelect(Emit(valid), stored, old);
  }
  SetSlot(buffer, slot, stored);
}

void ExpressionEmitter::SetSlot(int buffer, int64_t slot, Value* value) {
  slots_[buffer][slot] = value;
  Touch(buffer);
}

// Fetches into the nearest cache. The address arithmetic is not "inbounds", so that any index is
// allowed.
void ExpressionEmitter::EmitFetch(int buffer, const Node* index) {
  constexpr int kRead = 0, kLocality = 3, kData = 1;
  llvm::Value* pointer = AddressOf(buffer, index, nullptr).scalar;
  builder_.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {pointer->getType()},
      {pointer, builder_.getInt32(kRead), builder_.getInt32(kLocality), builder_.getInt32(kData)});
}

}  // namespace kiln::codegen
