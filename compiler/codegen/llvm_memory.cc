// The part of ExpressionEmitter that reads and writes buffers.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "compiler/codegen/llvm_expression.h"
#include "compiler/codegen/llvm_ops.h"
#include "compiler/schedule/fold.h"

namespace kiln::codegen {

using ir::DType;
using ir::Node;
using llvm::Value;
using schedule::Space;

llvm::Type* ExpressionEmitter::Wide(llvm::Type* element, int lanes) const {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

llvm::Align ExpressionEmitter::ElementAlign(DType dtype) const {
  return llvm::Align(static_cast<uint64_t>(ir::SizeOf(dtype)));
}

Value* ExpressionEmitter::FromMemory(DType dtype, Value* value) {
  if (dtype != DType::kBool) return value;
  return builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

Value* ExpressionEmitter::ToMemory(DType dtype, Value* value) {
  if (dtype != DType::kBool) return value;
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  const int lanes = vector == nullptr ? 1 : static_cast<int>(vector->getNumElements());
  return builder_.CreateZExt(value, Wide(builder_.getInt8Ty(), lanes));
}

Value* ExpressionEmitter::Reverse(Value* vector) {
  const auto lanes = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  llvm::SmallVector<int, 64> order;
  for (unsigned i = 0; i < lanes; ++i) order.push_back(static_cast<int>(lanes - 1 - i));
  return builder_.CreateShuffleVector(vector, order);
}

Value* ExpressionEmitter::Pointer(int buffer, Value* offset, int place) {
  Scope& scope = scopes_[place];
  Value*& known = scope.pointers[{bases_[buffer], offset}];
  if (known != nullptr) return known;
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  if (scope.hoist != nullptr) builder_.SetInsertPoint(scope.hoist->getTerminator());
  llvm::Type* element = MemoryType(builder_.getContext(), program_.buffers[buffer].dtype);
  return known = builder_.CreateGEP(element, bases_[buffer], offset);
}

// Takes what varies over the lanes out of an index: a stride, or offsets from lane 0 that are known
// here. False if neither will do; `rest` is lane 0's index.
bool ExpressionEmitter::SplitLanes(const schedule::Linear& linear, schedule::Linear* rest,
                                   Address* address) {
  rest->constant = linear.constant;
  std::vector<int64_t> offsets(lanes_, 0);
  bool irregular = false;
  for (const auto& [atom, coefficient] : linear.terms) {
    if (!DependenceOf(atom).varying) {
      rest->terms.emplace_back(atom, coefficient);
      continue;
    }
    irregular |= atom != lane_range_;
    for (int lane = lanes_ - 1; lane >= 0; --lane) {
      schedule::Folder::Map memo = {{lane_range_, folder_.Int(lane)}};
      int64_t value;
      if (!schedule::IsConstant(folder_.Substitute(atom, &memo), &value)) return false;
      offsets[lane] += value * coefficient;
    }
  }
  const int64_t first = offsets[0];
  rest->constant += first;
  for (int64_t& offset : offsets) offset -= first;
  address->stride = lanes_ > 1 ? offsets[1] : 0;
  for (int lane = 0; lane < lanes_; ++lane) irregular |= offsets[lane] != lane * address->stride;
  if (irregular) address->stride = 0;
  address->offsets = std::move(offsets);
  address->irregular = irregular;
  return true;
}

// `guard`: where the access is not valid for any lane, the address may be anything; then element 0
// is taken instead.
ExpressionEmitter::Address ExpressionEmitter::AddressOf(int buffer, const Node* index,
                                                        const Node* guard) {
  Address address;
  llvm::Type* element = MemoryType(builder_.getContext(), program_.buffers[buffer].dtype);
  const bool varying = DependenceOf(index).varying;
  address.lanes = varying ? lanes_ : 1;
  schedule::Linear rest;
  if (!SplitLanes(schedule::Linearise(index), &rest, &address)) {
    address.vector = builder_.CreateGEP(element, bases_[buffer], EmitWide(index, lanes_));
    return address;
  }
  address.known_multiple = rest.constant == 0 ? 4096 : std::abs(rest.constant);
  for (const auto& term : rest.terms) {
    address.known_multiple = std::gcd(address.known_multiple, std::abs(term.second));
  }
  int place = 0;
  Value* sum = Sum(rest, &place);
  if (sum == nullptr) sum = builder_.getInt64(0);
  if (guard != nullptr) {
    sum = builder_.CreateAdd(sum, builder_.getInt64(rest.constant));
    sum = builder_.CreateSelect(Emit(guard), sum, builder_.getInt64(0));
    address.scalar = builder_.CreateGEP(element, bases_[buffer], sum);
    return address;
  }
  // A constant offset of its own lets neighbouring accesses share a pointer.
  address.scalar = Pointer(buffer, sum, place);
  if (rest.constant != 0) {
    address.scalar = builder_.CreateGEP(element, address.scalar, builder_.getInt64(rest.constant));
  }
  return address;
}

Value* ExpressionEmitter::EmitLoad(const Node* node) {
  const int number = static_cast<int>(node->attr<ir::IntAttr>().value);
  const schedule::LoopBuffer& buffer = program_.buffers[number];
  const Node* valid = node->operands().size() > 1 ? node->operand(1) : nullptr;
  const bool varying = DependenceOf(node).varying;
  if (buffer.space == Space::kRegister) {
    Value* value = slots_[number][SlotOf(node->operand(0))];
    if (valid == nullptr) return value;
    if (varying && !value->getType()->isVectorTy()) value = Splat(value, lanes_);
    return builder_.CreateSelect(EmitWide(valid, varying ? lanes_ : 1), value,
                                 llvm::Constant::getNullValue(value->getType()));
  }
  if (buffer.elements == 0) {
    return llvm::Constant::getNullValue(
        Wide(ScalarType(builder_.getContext(), buffer.dtype), varying ? lanes_ : 1));
  }
  const bool scalar_guard = valid != nullptr && !DependenceOf(valid).varying;
  if (!varying || (scalar_guard && !DependenceOf(node->operand(0)).varying)) {
    const Address address = AddressOf(number, node->operand(0), valid);
    return EmitScalarLoad(node, address.scalar, valid == nullptr ? nullptr : Emit(valid));
  }
  return EmitVectorLoad(node, AddressOf(number, node->operand(0), nullptr), valid);
}

Value* ExpressionEmitter::EmitScalarLoad(const Node* node, Value* pointer, Value* valid) {
  llvm::Type* type = MemoryType(builder_.getContext(), node->dtype());
  Value* value = FromMemory(node->dtype(),
                            builder_.CreateAlignedLoad(type, pointer, ElementAlign(node->dtype())));
  if (valid == nullptr) return value;
  return builder_.CreateSelect(valid, value, llvm::Constant::getNullValue(value->getType()));
}

Value* ExpressionEmitter::EmitVectorLoad(const Node* node, const Address& from, const Node* valid) {
  Address address = from;
  llvm::Type* element = MemoryType(builder_.getContext(), node->dtype());
  llvm::Type* type = Wide(element, lanes_);
  const llvm::Align align = ElementAlign(node->dtype());
  Value* zero = llvm::Constant::getNullValue(type);
  Value* mask = valid == nullptr ? nullptr : EmitWide(valid, lanes_);
  if (auto* known = llvm::dyn_cast_or_null<llvm::Constant>(mask);
      known && known->isAllOnesValue()) {
    mask = nullptr;
  }
  const bool reversed = address.vector == nullptr && !address.irregular && address.stride == -1;
  if (address.vector == nullptr && !address.irregular && (address.stride == 1 || reversed)) {
    Value* pointer = address.scalar;
    if (reversed) pointer = builder_.CreateGEP(element, pointer, builder_.getInt64(1 - lanes_));
    if (reversed && mask != nullptr) mask = Reverse(mask);
    Value* value =
        mask == nullptr
            ? builder_.CreateAlignedLoad(type, pointer, align)
            : static_cast<Value*>(builder_.CreateMaskedLoad(type, pointer, align, mask, zero));
    return FromMemory(node->dtype(), reversed ? Reverse(value) : value);
  }
  if (address.vector == nullptr) {
    if (Value* value = EmitShuffledLoad(node, address, mask))
      return FromMemory(node->dtype(), value);
    address.vector = LanePointers(element, address);
  }
  return FromMemory(node->dtype(),
                    builder_.CreateMaskedGather(type, address.vector, align, mask, zero));
}

void ExpressionEmitter::EmitSquare(const std::vector<const Node*>& rows) {
  const int number = static_cast<int>(rows[0]->attr<ir::IntAttr>().value);
  const schedule::LoopBuffer& buffer = program_.buffers[number];
  const Dependence dependence = DependenceOf(rows[0]);
  if (buffer.space == Space::kRegister || buffer.elements == 0 || !dependence.varying ||
      rows[0]->operands().size() != 1 || PlaceOf(dependence) != level()) {
    return;
  }
  const schedule::Linear first = schedule::Linearise(rows[0]->operand(0));
  for (size_t i = 0; i < rows.size(); ++i) {
    schedule::Linear other = schedule::Linearise(rows[i]->operand(0));
    other.constant -= static_cast<int64_t>(i);
    if (other.constant != first.constant || other.terms != first.terms) return;
  }
  schedule::Linear rest;
  Address lanes;
  if (!SplitLanes(first, &rest, &lanes) || lanes.irregular || std::abs(lanes.stride) <= 2) return;
  const Address address = AddressOf(number, rows[0]->operand(0), nullptr);
  llvm::Type* element = MemoryType(builder_.getContext(), buffer.dtype);
  std::vector<Value*> vectors;
  for (int lane = 0; lane < lanes_; ++lane) {
    Value* pointer =
        builder_.CreateGEP(element, address.scalar, builder_.getInt64(lane * address.stride));
    vectors.push_back(
        builder_.CreateAlignedLoad(Wide(element, lanes_), pointer, ElementAlign(buffer.dtype)));
  }
  vectors = Transpose(std::move(vectors));
  for (size_t i = 0; i < rows.size(); ++i) {
    scopes_.back().values[rows[i]] = {FromMemory(buffer.dtype, vectors[i]), time_};
  }
}

// Each round deals out pairs of vectors that are half of all apart, as one riffles cards; after
// log2(lanes) rounds rows have become columns.
std::vector<Value*> ExpressionEmitter::Transpose(std::vector<Value*> rows) {
  const int count = static_cast<int>(rows.size());
  llvm::SmallVector<int, 64> low, high;
  for (int i = 0; i < count / 2; ++i) {
    low.append({i, count + i});
    high.append({count / 2 + i, count + count / 2 + i});
  }
  for (int round = count; round > 1; round /= 2) {
    std::vector<Value*> next(rows.size());
    for (int i = 0; i < count / 2; ++i) {
      next[2 * i] = builder_.CreateShuffleVector(rows[i], rows[i + count / 2], low);
      next[2 * i + 1] = builder_.CreateShuffleVector(rows[i], rows[i + count / 2], high);
    }
    rows = std::move(next);
  }
  return rows;
}

Value* ExpressionEmitter::LanePointers(llvm::Type* element, const Address& address) {
  llvm::SmallVector<llvm::Constant*, 64> offsets;
  for (int64_t offset : address.offsets) offsets.push_back(builder_.getInt64(offset));
  return builder_.CreateGEP(element, address.scalar, llvm::ConstantVector::get(offsets));
}

// Lanes that lie within two vectors from lane 0 on are loaded as such and sorted out by a shuffle.
// Null if they do not, or if it is not known here which of them are needed.
Value* ExpressionEmitter::EmitShuffledLoad(const Node* node, const Address& address, Value* mask) {
  auto* known = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  if (mask != nullptr && known == nullptr) return nullptr;
  int64_t last = 0;
  llvm::SmallVector<int, 64> order;
  for (int lane = 0; lane < lanes_; ++lane) {
    const bool needed = known == nullptr || !known->getAggregateElement(lane)->isNullValue();
    const int64_t offset = needed ? address.offsets[lane] : 0;
    if (offset < 0 || offset >= 2 * lanes_) return nullptr;
    last = std::max(last, offset);
    order.push_back(static_cast<int>(offset));
  }
  llvm::Type* element = MemoryType(builder_.getContext(), node->dtype());
  llvm::Value* halves[2];
  for (int half = 0; half < 2; ++half) {
    llvm::SmallVector<llvm::Constant*, 64> inside;
    for (int i = 0; i < lanes_; ++i) inside.push_back(builder_.getInt1(half * lanes_ + i <= last));
    llvm::Constant* part = llvm::ConstantVector::get(inside);
    Value* pointer = builder_.CreateGEP(element, address.scalar, builder_.getInt64(half * lanes_));
    llvm::Type* type = Wide(element, lanes_);
    const llvm::Align align = ElementAlign(node->dtype());
    Value* zero = llvm::Constant::getNullValue(type);
    halves[half] = part->isNullValue() ? zero
                   : part->isAllOnesValue()
                       ? static_cast<Value*>(builder_.CreateAlignedLoad(type, pointer, align))
                       : builder_.CreateMaskedLoad(type, pointer, align, part, zero);
  }
  Value* value = builder_.CreateShuffleVector(halves[0], halves[1], order);
  return mask == nullptr
             ? value
             : builder_.CreateSelect(mask, value, llvm::Constant::getNullValue(value->getType()));
}

void ExpressionEmitter::EmitStore(int buffer, const Node* index, const Node* value,
                                  const Node* valid, bool streaming) {
  if (program_.buffers[buffer].space == Space::kRegister) {
    EmitSlotStore(buffer, index, value, valid);
    return;
  }
  int64_t known;
  if (valid != nullptr && schedule::IsConstant(valid, &known)) {
    if (known == 0) return;
    valid = nullptr;
  }
  Value* stored = Emit(value);
  const bool vector = DependenceOf(index).varying;
  if (!vector) {
    const Address address = AddressOf(buffer, index, nullptr);
    if (stored->getType()->isVectorTy())
      stored = builder_.CreateExtractElement(stored, uint64_t{0});
    EmitScalarStore(buffer, address.scalar, ToMemory(program_.buffers[buffer].dtype, stored),
                    valid == nullptr ? nullptr : Emit(valid));
  } else {
    const Address address = AddressOf(buffer, index, nullptr);
    EmitVectorStore(buffer, address,
                    ToMemory(program_.buffers[buffer].dtype, Splat(stored, lanes_)), valid,
                    streaming);
  }
  Touch(buffer);
}

// Into the nearest cache; address arithmetic is not "inbounds", so that any index will do.
void ExpressionEmitter::EmitFetch(int buffer, const Node* index) {
  constexpr int kRead = 0, kLocality = 3, kData = 1;
  llvm::Value* pointer = AddressOf(buffer, index, nullptr).scalar;
  builder_.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {pointer->getType()},
      {pointer, builder_.getInt32(kRead), builder_.getInt32(kLocality), builder_.getInt32(kData)});
}

void ExpressionEmitter::EmitScalarStore(int buffer, Value* pointer, Value* value, Value* valid) {
  const llvm::Align align = ElementAlign(program_.buffers[buffer].dtype);
  if (valid == nullptr) {
    builder_.CreateAlignedStore(value, pointer, align);
    return;
  }
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  auto* store = llvm::BasicBlock::Create(builder_.getContext(), "store", function);
  auto* after = llvm::BasicBlock::Create(builder_.getContext(), "after", function);
  builder_.CreateCondBr(valid, store, after);
  builder_.SetInsertPoint(store);
  builder_.CreateAlignedStore(value, pointer, align);
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
}

// The one lane that a mask known here lets through; -1 if there are more, none or the mask is not
// known (or null). LLVM 22 writes four bytes where such a store of one lane follows a truncation to
// elements of one or two bytes, so it must not see one.
static int OnlyLane(const Value* mask) {
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

void ExpressionEmitter::EmitVectorStore(int buffer, const Address& to, Value* value,
                                        const Node* valid, bool streaming) {
  const DType dtype = program_.buffers[buffer].dtype;
  Address address = to;
  llvm::Type* element = MemoryType(builder_.getContext(), dtype);
  const llvm::Align align = ElementAlign(dtype);
  Value* mask = valid == nullptr ? nullptr : EmitWide(valid, lanes_);
  const bool reversed = address.vector == nullptr && !address.irregular && address.stride == -1;
  if (address.vector == nullptr && !address.irregular && (address.stride == 1 || reversed)) {
    Value* pointer = address.scalar;
    if (reversed) {
      pointer = builder_.CreateGEP(element, pointer, builder_.getInt64(1 - lanes_));
      value = Reverse(value);
      if (mask != nullptr) mask = Reverse(mask);
    }
    if (const int lane = OnlyLane(mask); lane >= 0) {
      builder_.CreateAlignedStore(builder_.CreateExtractElement(value, lane),
                                  builder_.CreateGEP(element, pointer, builder_.getInt64(lane)),
                                  align);
      return;
    }
    if (mask != nullptr) {
      builder_.CreateMaskedStore(value, pointer, align, mask);
      return;
    }
    const int64_t bytes = lanes_ * ir::SizeOf(dtype);
    const bool aligned = !reversed && bytes <= 64 && address.known_multiple % lanes_ == 0;
    llvm::StoreInst* store = builder_.CreateAlignedStore(
        value, pointer, aligned ? llvm::Align(static_cast<uint64_t>(bytes)) : align);
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
  Value*& slot = slots_[buffer][SlotOf(index)];
  Value* stored = EmitWide(value, lanes);
  if (valid != nullptr) {
    Value* old = slot != nullptr ? slot : llvm::Constant::getNullValue(stored->getType());
    stored = builder_.CreateSelect(Emit(valid), stored, old);
  }
  slot = stored;
  Touch(buffer);
}

}  // namespace kiln::codegen
