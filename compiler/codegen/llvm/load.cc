// The part of ExpressionEmitter that reads buffers.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "compiler/codegen/llvm/expression.h"
#include "compiler/codegen/llvm/ops.h"
#include "compiler/codegen/llvm/vectors.h"
#include "compiler/kernel/expression_folder.h"

namespace kiln::codegen {

using ir::Node;
using llvm::Value;
using schedule::Space;

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
    return EmitScalarLoad(node, address, valid == nullptr ? nullptr : Emit(valid));
  }
  if (scalar_guard && narrow_ && buffer.elements >= lanes_) {
    const Address address = AddressOf(number, node->operand(0), valid);
    if (address.IsContiguous()) {
      Value* value = EmitVectorLoad(node, address, nullptr);
      return builder_.CreateSelect(Emit(valid), value,
                                   llvm::Constant::getNullValue(value->getType()));
    }
  }
  return EmitVectorLoad(node, AddressOf(number, node->operand(0), nullptr), valid);
}

// For address spaces other than the host's: arguments that are read never overlap arguments that
// are written, so caches that do not see writes may be used.
void ExpressionEmitter::MarkInvariant(const Node* node, llvm::LoadInst* load) {
  if (load->getPointerAddressSpace() == 0) return;
  if (!program_.buffers[node->attr<ir::IntAttr>().value].read_only) return;
  load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                    llvm::MDNode::get(builder_.getContext(), {}));
}

Value* ExpressionEmitter::EmitScalarLoad(const Node* node, const Address& from, Value* valid) {
  llvm::Type* type = MemoryType(builder_.getContext(), node->dtype());
  // Read without a branch: where the condition fails, AddressOf has chosen element 0.
  llvm::LoadInst* load =
      builder_.CreateAlignedLoad(type, from.scalar, ScalarAlign(node->dtype(), from));
  MarkInvariant(node, load);
  Value* value = FromMemory(builder_, node->dtype(), load);
  if (valid == nullptr) return value;
  return builder_.CreateSelect(valid, value, llvm::Constant::getNullValue(value->getType()));
}

// On GPUs, the alignment lets the backend combine accesses to neighbours, which unrolled loops
// make.
llvm::Align ExpressionEmitter::ScalarAlign(ir::DType dtype, const Address& address) const {
  constexpr int64_t kAccessBytesMax = 16;
  if (!narrow_) return ElementAlign(dtype);
  const int64_t multiple = address.known_multiple & -address.known_multiple;
  const int64_t bytes = std::min(multiple * ir::SizeOf(dtype), kAccessBytesMax);
  return std::max(ElementAlign(dtype), llvm::Align(static_cast<uint64_t>(bytes)));
}

// On GPUs, vectors that may be unaligned are loaded in pieces.
llvm::Align ExpressionEmitter::LoadAlign(ir::DType dtype, const Address& address) const {
  const int64_t bytes = lanes_ * ir::SizeOf(dtype);
  const bool aligned =
      narrow_ && address.IsContiguous() && bytes <= 64 && address.known_multiple % lanes_ == 0;
  return aligned ? llvm::Align(static_cast<uint64_t>(bytes)) : ElementAlign(dtype);
}

Value* ExpressionEmitter::EmitVectorLoad(const Node* node, const Address& from, const Node* valid) {
  Address address = from;
  llvm::Type* element = MemoryType(builder_.getContext(), node->dtype());
  llvm::Type* type = Wide(element, lanes_);
  const llvm::Align align = LoadAlign(node->dtype(), address);
  Value* zero = llvm::Constant::getNullValue(type);
  Value* mask = valid == nullptr ? nullptr : EmitWide(valid, lanes_);
  if (auto* known = llvm::dyn_cast_or_null<llvm::Constant>(mask);
      known && known->isAllOnesValue()) {
    mask = nullptr;
  }
  const bool reversed = address.IsReversed();
  if (address.IsContiguous() || reversed) {
    Value* pointer = address.scalar;
    // The last lane's element is the first one in memory.
    if (reversed) pointer = builder_.CreateGEP(element, pointer, builder_.getInt64(1 - lanes_));
    if (reversed && mask != nullptr) mask = Reverse(builder_, mask);
    Value* value;
    if (mask == nullptr) {
      llvm::LoadInst* load = builder_.CreateAlignedLoad(type, pointer, align);
      MarkInvariant(node, load);
      value = load;
    } else {
      value = MaskedLoad(builder_, element, align, pointer, mask);
    }
    return FromMemory(builder_, node->dtype(), reversed ? Reverse(builder_, value) : value);
  }
  if (address.vector == nullptr) {
    if (Value* value = EmitShuffledLoad(node, address, mask))
      return FromMemory(builder_, node->dtype(), value);
    address.vector = LanePointers(element, address);
  }
  return FromMemory(builder_, node->dtype(),
                    builder_.CreateMaskedGather(type, address.vector, align, mask, zero));
}

// Loads lanes within two vectors, from the lowest lane's element on, as these vectors, and selects
// from them with a shuffle. Returns null if the lanes are further apart, or if it is unknown which
// of them are needed.
Value* ExpressionEmitter::EmitShuffledLoad(const Node* node, const Address& address, Value* mask) {
  auto* known = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  if (mask != nullptr && known == nullptr) return nullptr;
  const auto is_needed = [&](int lane) {
    return known == nullptr || !known->getAggregateElement(lane)->isNullValue();
  };
  // Elements outside the needed lanes may be outside the buffer.
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = std::numeric_limits<int64_t>::min();
  for (int lane = 0; lane < lanes_; ++lane) {
    if (!is_needed(lane)) continue;
    first = std::min(first, address.offsets[lane]);
    last = std::max(last, address.offsets[lane]);
  }
  if (first > last || last - first >= 2 * lanes_) return nullptr;
  // Lanes that are in a vector from lane 0 on are aligned more often than those from another one.
  const int64_t base = first >= 0 && last < 2 * lanes_ ? 0 : first;
  llvm::SmallVector<int, 64> order;
  for (int lane = 0; lane < lanes_; ++lane) {
    order.push_back(is_needed(lane) ? static_cast<int>(address.offsets[lane] - base) : 0);
  }
  llvm::Type* element = MemoryType(builder_.getContext(), node->dtype());
  llvm::Value* halves[2];
  for (int half = 0; half < 2; ++half) {
    llvm::SmallVector<llvm::Constant*, 64> inside;
    for (int i = half * lanes_; i < (half + 1) * lanes_; ++i) {
      inside.push_back(builder_.getInt1(first <= base + i && base + i <= last));
    }
    llvm::Constant* part = llvm::ConstantVector::get(inside);
    Value* pointer =
        builder_.CreateGEP(element, address.scalar, builder_.getInt64(base + half * lanes_));
    llvm::Type* type = Wide(element, lanes_);
    const llvm::Align align = ElementAlign(node->dtype());
    Value* zero = llvm::Constant::getNullValue(type);
    halves[half] = part->isNullValue() ? zero
                   : part->isAllOnesValue()
                       ? static_cast<Value*>(builder_.CreateAlignedLoad(type, pointer, align))
                       : MaskedLoad(builder_, element, align, pointer, part);
  }
  Value* value = builder_.CreateShuffleVector(halves[0], halves[1], order);
  return mask == nullptr
             ? value
             : builder_.CreateSelect(mask, value, llvm::Constant::getNullValue(value->getType()));
}

void ExpressionEmitter::EmitSquare(const std::vector<const Node*>& rows) {
  const int number = static_cast<int>(rows[0]->attr<ir::IntAttr>().value);
  const schedule::LoopBuffer& buffer = program_.buffers[number];
  const Dependence dependence = DependenceOf(rows[0]);
  // The results are entered into the innermost scope, so the loads must be there.
  if (buffer.space == Space::kRegister || buffer.elements == 0 || !dependence.varying ||
      rows[0]->operands().size() != 1 || PlaceOf(dependence) != level()) {
    return;
  }
  const kernel::Sum first = kernel::SumOf(rows[0]->operand(0));
  for (size_t i = 0; i < rows.size(); ++i) {
    kernel::Sum other = kernel::SumOf(rows[i]->operand(0));
    other.constant -= static_cast<int64_t>(i);
    if (other.constant != first.constant || other.terms != first.terms) return;
  }
  kernel::Sum rest;
  Address lanes;
  // Lanes at most two elements apart are within two vectors, which EmitShuffledLoad reads.
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
  vectors = Transpose(builder_, std::move(vectors));
  for (size_t i = 0; i < rows.size(); ++i) {
    scopes_.back().values[rows[i]] = {FromMemory(builder_, buffer.dtype, vectors[i]), time_};
  }
}

}  // namespace kiln::codegen
