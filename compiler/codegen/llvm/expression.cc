#include "compiler/codegen/llvm/expression.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "compiler/codegen/llvm/ops.h"
#include "compiler/codegen/math/composite.h"
#include "compiler/codegen/math/instructions.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/kernel/index_bounds.h"
#include "compiler/schedule/reduction.h"

namespace kiln::codegen {

using ir::Node;
using ir::Op;
using kernel::Sum;
using llvm::Value;
using schedule::Space;

namespace {

// Returns whether the node is split into terms; a product of two unknowns is not.
bool IsSum(const Node* node) {
  if (node->op() == Op::kAdd || node->op() == Op::kSub) return true;
  if (node->op() != Op::kMul) return false;
  int64_t factor;
  return kernel::IsConstant(node->operand(0), &factor) ||
         kernel::IsConstant(node->operand(1), &factor);
}

}  // namespace

ExpressionEmitter::ExpressionEmitter(llvm::IRBuilder<>& builder,
                                     const schedule::LoopProgram& program, bool narrow)
    : builder_(builder),
      program_(program),
      narrow_(narrow),
      folder_(*program.context),
      scopes_(1),
      written_(64) {
  bases_.resize(program.buffers.size());
  base_levels_.resize(program.buffers.size());
  slots_.resize(program.buffers.size());
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].space == Space::kRegister) slots_[i].resize(program.buffers[i].elements);
  }
}

void ExpressionEmitter::OpenScope(bool conditional) {
  scopes_.back().hoist = builder_.GetInsertBlock();
  scopes_.emplace_back();
  scopes_.back().conditional = conditional;
}

void ExpressionEmitter::CloseScope() {
  scopes_.pop_back();
  scopes_.back().hoist = nullptr;
}

bool ExpressionEmitter::IsFresh(const Scope::Known& known, const Dependence& dependence) const {
  for (uint64_t bits = dependence.changing; bits != 0; bits &= bits - 1) {
    if (written_[std::countr_zero(bits)] > known.time) return false;
  }
  return true;
}

void ExpressionEmitter::Touch(int buffer) { written_[std::min(buffer, 63)] = ++time_; }

void ExpressionEmitter::BindRange(const Node* range, Value* value) {
  range_levels_[range] = level();
  range_values_[range] = value;
}

void ExpressionEmitter::BindLanes(const Node* range) {
  range_levels_[range] = level();
  lane_range_ = range;
  lanes_ = static_cast<int>(range->attr<ir::RangeAttr>().extent);
  // A constant vector, so that LLVM folds values that depend only on the lane.
  llvm::SmallVector<llvm::Constant*, 64> lanes;
  for (int i = 0; i < lanes_; ++i) lanes.push_back(builder_.getInt64(i));
  range_values_[range] = llvm::ConstantVector::get(lanes);
}

void ExpressionEmitter::UnbindLanes(const Node* range) {
  range_values_.erase(range);
  lane_range_ = nullptr;
  lanes_ = 1;
}

const Dependence& ExpressionEmitter::DependenceOf(const Node* node) {
  auto found = dependences_.find(node);
  if (found != dependences_.end()) return found->second;
  const Dependence dependence = ComputeDependence(node);
  return dependences_[node] = dependence;
}

Dependence ExpressionEmitter::ComputeDependence(const Node* node) {
  Dependence result;
  if (node->op() == Op::kRange) {
    // Ranges that are not bound yet belong to horizontal reductions.
    auto level = range_levels_.find(node);
    result.level = level == range_levels_.end() ? 0 : level->second;
    auto value = range_values_.find(node);
    result.varying = value == range_values_.end() || value->second->getType()->isVectorTy();
    return result;
  }
  for (const Node* operand : node->operands()) {
    const Dependence& inner = DependenceOf(operand);
    result.level = std::max(result.level, inner.level);
    result.loads |= inner.loads;
    result.changing |= inner.changing;
    result.varying |= inner.varying;
  }
  if (node->op() == Op::kReduce) result.varying = false;
  if (node->op() == Op::kLoad) {
    const schedule::LoopBuffer& buffer = program_.buffers[node->attr<ir::IntAttr>().value];
    result.loads = true;
    if (!buffer.read_only) {
      result.changing |= uint64_t{1} << std::min<int64_t>(node->attr<ir::IntAttr>().value, 63);
    }
    result.varying |= buffer.lanes > 1;
  }
  return result;
}

int ExpressionEmitter::PlaceOf(const Dependence& dependence) const {
  if (dependence.changing != 0) return level();
  int place = dependence.level;
  if (!dependence.loads) return place;
  // A load must not leave a scope that may not run: its address may be outside the buffer then.
  for (int i = place + 1; i <= level(); ++i) {
    if (scopes_[i].conditional) place = i;
  }
  return place;
}

Value* ExpressionEmitter::Emit(const Node* node) {
  if (node->op() == Op::kRange) return range_values_.at(node);
  if (node->op() == Op::kConst) return EmitConstant(builder_.getContext(), node);
  return EmitAt(node, PlaceOf(DependenceOf(node)));
}

Value* ExpressionEmitter::EmitAt(const Node* node, int place) {
  auto found = scopes_[place].values.find(node);
  if (found != scopes_[place].values.end() && IsFresh(found->second, DependenceOf(node))) {
    return found->second.value;
  }
  Value* value;
  if (scopes_[place].hoist == nullptr) {
    value = EmitNode(node);
  } else {
    llvm::IRBuilderBase::InsertPointGuard guard(builder_);
    builder_.SetInsertPoint(scopes_[place].hoist->getTerminator());
    value = EmitNode(node);
  }
  scopes_[place].values[node] = {value, time_};
  return value;
}

Value* ExpressionEmitter::EmitWide(const Node* node, int lanes) {
  Value* value = Emit(node);
  if (lanes == 1 || value->getType()->isVectorTy()) return value;
  if (llvm::isa<llvm::Constant>(value)) return Splat(value, lanes);
  Scope& scope = scopes_[PlaceOf(DependenceOf(node))];
  // Stored in the value's scope, so that no inner loop repeats the broadcast.
  Scope::Known& known = scope.splats[node];
  if (known.value != nullptr && IsFresh(known, DependenceOf(node)) &&
      llvm::cast<llvm::FixedVectorType>(known.value->getType())->getNumElements() ==
          static_cast<unsigned>(lanes)) {
    return known.value;
  }
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  if (scope.hoist != nullptr) builder_.SetInsertPoint(scope.hoist->getTerminator());
  known = {Splat(value, lanes), time_};
  return known.value;
}

Value* ExpressionEmitter::Splat(Value* scalar, int lanes) {
  if (lanes == 1 || scalar->getType()->isVectorTy()) return scalar;
  return builder_.CreateVectorSplat(lanes, scalar);
}

Value* ExpressionEmitter::EmitNode(const Node* node) {
  if (node->op() == Op::kLoad) return EmitLoad(node);
  if (node->op() == Op::kReduce) return EmitReduce(node);
  if (Value* fused = EmitFused(node)) return fused;
  const bool varying = DependenceOf(node).varying;
  if (const auto composite = MatchComposite(node)) {
    Value* argument = EmitWide(composite->argument, varying ? lanes_ : 1);
    return EmitComposite(builder_, composite->kind, argument);
  }
  if (node->dtype() == ir::DType::kInt64 && !varying && IsSum(node)) return EmitInteger(node);
  llvm::SmallVector<Value*, 4> operands;
  for (const Node* operand : node->operands()) {
    operands.push_back(EmitWide(operand, varying ? lanes_ : 1));
  }
  int64_t divisor;
  if ((node->op() != Op::kIDiv && node->op() != Op::kMod) || node->dtype() != ir::DType::kInt64 ||
      !kernel::IsConstant(node->operand(1), &divisor) || divisor <= 0) {
    return EmitOp(builder_, node, operands, /*known_nonnegative=*/false);
  }
  // An unsigned division rounds down; a signed one would need a correction.
  const kernel::Interval dividend = kernel::BoundsOf(node->operand(0));
  const bool nonnegative = dividend.low >= 0;
  if (!narrow_ || !nonnegative || dividend.high > INT32_MAX || divisor > INT32_MAX)
    return EmitOp(builder_, node, operands, nonnegative);
  llvm::Type* wide = operands[0]->getType();
  for (Value*& operand : operands)
    operand = builder_.CreateTrunc(operand, wide->getWithNewBitWidth(32));
  return builder_.CreateZExt(EmitOp(builder_, node, operands, nonnegative), wide);
}

// Splits sums, so that their outer parts are computed in outer scopes.
Value* ExpressionEmitter::EmitInteger(const Node* node) {
  const Sum parts = kernel::SumOf(node);
  int place = 0;
  Value* sum = EmitSum(parts, /*narrow=*/false, &place);
  Value* constant = builder_.getInt64(parts.constant);
  if (sum == nullptr) return constant;
  return parts.constant == 0 ? sum : builder_.CreateAdd(sum, constant);
}

bool ExpressionEmitter::IsNarrow(const Sum& sum) const {
  if (!narrow_) return false;
  const kernel::Interval bounds = kernel::IndexBounds().Of(sum);
  return bounds.low >= INT32_MIN && bounds.high <= INT32_MAX;
}

Value* ExpressionEmitter::Integer(int64_t value, bool narrow) {
  return llvm::ConstantInt::getSigned(narrow ? builder_.getInt32Ty() : builder_.getInt64Ty(), value,
                                      /*ImplicitTrunc=*/narrow);
}

// Returns Σ coefficient * atom without the constant, outer scopes first; null if there is no term.
// `place`: the level at which the sum is. `narrow`: modulo 2^32.
Value* ExpressionEmitter::EmitSum(const Sum& parts, bool narrow, int* place) {
  std::vector<kernel::Term> terms = parts.terms;
  std::stable_sort(terms.begin(), terms.end(), [this](const auto& a, const auto& b) {
    return PlaceOf(DependenceOf(a.atom)) < PlaceOf(DependenceOf(b.atom));
  });
  // The initial value keeps the keys of 32-bit sums apart from the others.
  Value* const none = narrow ? Integer(0, narrow) : nullptr;
  Value* sum = none;
  *place = 0;
  for (const auto& [atom, coefficient] : terms) {
    const Dependence dependence = DependenceOf(atom);
    *place = PlaceOf(dependence);
    Value* value = Emit(atom);
    Scope& scope = scopes_[*place];
    // Indices with the same leading terms share partial sums.
    Value*& known = scope.sums[{sum, atom, coefficient}];
    if (known != nullptr && dependence.changing == 0) {
      sum = known;
      continue;
    }
    llvm::IRBuilderBase::InsertPointGuard guard(builder_);
    if (scope.hoist != nullptr) builder_.SetInsertPoint(scope.hoist->getTerminator());
    if (narrow) value = builder_.CreateTrunc(value, builder_.getInt32Ty());
    if (coefficient != 1) value = builder_.CreateMul(value, Integer(coefficient, narrow));
    sum = sum == none ? value : builder_.CreateAdd(sum, value);
    known = sum;
  }
  return sum == none ? nullptr : sum;
}

// sum + a * b of an accumulator becomes one fused multiply-add.
Value* ExpressionEmitter::EmitFused(const Node* node) {
  if (node->op() != Op::kAdd || !ir::IsFloat(node->dtype())) return nullptr;
  if (!MayUse(builder_, Instruction::kFusedMultiplyAdd)) return nullptr;
  const Node* sum = node->operand(0);
  const Node* product = node->operand(1);
  if (sum->op() != Op::kLoad || product->op() != Op::kMul) return nullptr;
  if (program_.buffers[sum->attr<ir::IntAttr>().value].read_only) return nullptr;
  const int lanes = DependenceOf(node).varying ? lanes_ : 1;
  Value* c = EmitWide(sum, lanes);
  Value* a = EmitWide(product->operand(0), lanes);
  Value* b = EmitWide(product->operand(1), lanes);
  return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {c->getType()}, {a, b, c});
}

Value* ExpressionEmitter::EmitReduce(const Node* node) {
  const Node* range = node->operand(1);
  BindLanes(range);
  Value* vector = EmitWide(node->operand(0), lanes_);
  UnbindLanes(range);
  return EmitHorizontal(builder_, CombineOpOf(node), node->dtype(), vector);
}

int64_t ExpressionEmitter::SlotOf(const Node* index) const {
  int64_t slot = 0;
  if (!kernel::IsConstant(index, &slot)) return 0;
  return slot;
}

}  // namespace kiln::codegen
