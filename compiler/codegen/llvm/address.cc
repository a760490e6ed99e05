// The part of ExpressionEmitter that computes addresses of buffers' elements.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "compiler/codegen/llvm/expression.h"
#include "compiler/codegen/llvm/ops.h"
#include "compiler/kernel/expression_folder.h"

namespace kiln::codegen {

using ir::Node;
using llvm::Value;

// Splits the lane-dependent part from an index: a stride, or known offsets from lane 0. Returns
// false if it is neither; `rest` is lane 0's index.
bool ExpressionEmitter::SplitLanes(const kernel::Sum& sum, kernel::Sum* rest, Address* address) {
  rest->constant = sum.constant;
  std::vector<int64_t> offsets(lanes_, 0);
  bool irregular = false;
  for (const auto& [atom, coefficient] : sum.terms) {
    if (!DependenceOf(atom).varying) {
      rest->terms.emplace_back(atom, coefficient);
      continue;
    }
    irregular |= atom != lane_range_;
    for (int lane = lanes_ - 1; lane >= 0; --lane) {
      // An atom such as lane / 4 becomes a constant if the lane is one.
      kernel::ExpressionFolder::Map memo = {{lane_range_, folder_.Int(lane)}};
      int64_t value;
      if (!kernel::IsConstant(folder_.Substitute(atom, &memo), &value)) return false;
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

// `guard`: where the access is not valid for any lane, the address may be anything; element 0 is
// used then.
ExpressionEmitter::Address ExpressionEmitter::AddressOf(int buffer, const Node* index,
                                                        const Node* guard) {
  Address address;
  llvm::Type* element = MemoryType(builder_.getContext(), program_.buffers[buffer].dtype);
  const bool varying = DependenceOf(index).varying;
  address.lanes = varying ? lanes_ : 1;
  kernel::Sum rest;
  if (!SplitLanes(kernel::SumOf(index), &rest, &address)) {
    address.vector = builder_.CreateGEP(element, bases_[buffer], EmitWide(index, lanes_));
    return address;
  }
  // 0 is a multiple of everything; 4096 stands for that, since no vector needs more.
  address.known_multiple = rest.constant == 0 ? 4096 : std::abs(rest.constant);
  for (const auto& term : rest.terms) {
    address.known_multiple = std::gcd(address.known_multiple, std::abs(term.coefficient));
  }
  int place = 0;
  kernel::Sum terms = rest;
  terms.constant = 0;
  const bool narrow = IsNarrow(rest) && IsNarrow(terms);
  Value* sum = EmitSum(rest, narrow, &place);
  if (sum == nullptr) sum = Integer(0, narrow);
  if (guard != nullptr) {
    sum = builder_.CreateAdd(sum, Integer(rest.constant, narrow));
    sum = builder_.CreateSelect(Emit(guard), sum, Integer(0, narrow));
    address.scalar = builder_.CreateGEP(element, bases_[buffer], sum);
    return address;
  }
  // A separate constant offset lets neighbouring accesses share a pointer.
  address.scalar = PointerAt(buffer, sum, std::max(place, base_levels_[buffer]));
  if (rest.constant != 0) {
    address.scalar = builder_.CreateGEP(element, address.scalar, builder_.getInt64(rest.constant));
  }
  return address;
}

Value* ExpressionEmitter::PointerAt(int buffer, Value* offset, int place) {
  Scope& scope = scopes_[place];
  Value*& known = scope.pointers[{bases_[buffer], offset}];
  if (known != nullptr) return known;
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  if (scope.hoist != nullptr) builder_.SetInsertPoint(scope.hoist->getTerminator());
  llvm::Type* element = MemoryType(builder_.getContext(), program_.buffers[buffer].dtype);
  return known = builder_.CreateGEP(element, bases_[buffer], offset);
}

Value* ExpressionEmitter::LanePointers(llvm::Type* element, const Address& address) {
  llvm::SmallVector<llvm::Constant*, 64> offsets;
  for (int64_t offset : address.offsets) offsets.push_back(builder_.getInt64(offset));
  return builder_.CreateGEP(element, address.scalar, llvm::ConstantVector::get(offsets));
}

}  // namespace kiln::codegen
