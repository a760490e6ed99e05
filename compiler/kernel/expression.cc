#include "compiler/kernel/expression.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/movement.h"

namespace kiln::kernel {

using ir::DType;
using ir::Node;
using ir::Op;

namespace {

const Node* Zero(ir::Context& context, DType dtype) {
  return context.Get(Op::kConst, dtype, {}, {},
                     ir::IsFloat(dtype) ? ir::ConstValue::Float(0) : ir::ConstValue::Int(0));
}

bool IsElementwise(Op op) { return op >= Op::kNeg && op <= Op::kWhere; }

// IndexMath::ToNode makes left-leaning conjunctions, so the loop follows them and the recursion
// stays shallow.
void CollectParts(const Node* condition, absl::flat_hash_set<const Node*>* parts) {
  while (condition->op() == Op::kAnd) {
    CollectParts(condition->operand(1), parts);
    condition = condition->operand(0);
  }
  parts->insert(condition);
}

// Returns whether all parts of the conjunction `less` are among those of `more`.
bool Implies(const Node* more, const Node* less) {
  absl::flat_hash_set<const Node*> all, asked;
  CollectParts(more, &all);
  CollectParts(less, &asked);
  return absl::c_all_of(asked, [&](const Node* part) { return all.contains(part); });
}

}  // namespace

absl::StatusOr<const Node*> ExpressionLowerer::Lower(const Node* node, const Point& point) {
  Key key{node, point.index};
  key.second.push_back(math_.ToNode(point.valid));
  // A product in a sum may leave one factor without its guard, so it differs from the same product
  // elsewhere.
  if (!summed_.empty()) {
    key.second.push_back(nullptr);
    key.second.insert(key.second.end(), summed_.begin(), summed_.end());
  }
  if (auto known = memo_.find(key); known != memo_.end()) return known->second;
  absl::StatusOr<const Node*> value = LowerUncached(node, point);
  if (value.ok()) memo_.emplace(std::move(key), *value);
  return value;
}

absl::StatusOr<const Node*> ExpressionLowerer::LowerSummed(const Node* node, const Point& point,
                                                           const Ranges& ranges) {
  Ranges outer = std::exchange(summed_, ranges);
  absl::StatusOr<const Node*> value = Lower(node, point);
  summed_ = std::move(outer);
  return value;
}

void ExpressionLowerer::Clear() {
  memo_.clear();
  zero_where_invalid_.clear();
}

absl::StatusOr<const Node*> ExpressionLowerer::LowerUncached(const Node* node, const Point& point) {
  absl::StatusOr<Source> source = find_(node, point);
  if (!source.ok()) return source.status();
  if (source->kind == Source::Kind::kComputed) return source->value;
  if (source->kind == Source::Kind::kMemory) {
    // An empty tensor has no element that an index could be proved to name.
    if (point.valid.never || ir::NumElements(node->shape()) == 0) {
      return Zero(math_.context(), node->dtype());
    }
    // The op's semantics keep the index in bounds; if that is too hard to prove, adds a condition.
    Validity valid = point.valid;
    const Interval bounds = math_.BoundsOf(source->index, valid);
    if (bounds.low < 0 || bounds.high >= source->elements) {
      math_.Require(valid, source->index, 0, source->elements);
      ++unproved_;
    }
    std::vector<const Node*> operands = {source->index};
    if (const Node* condition = math_.ToNode(valid)) operands.push_back(condition);
    return math_.context().Get(Op::kLoad, node->dtype(), {}, std::move(operands),
                               ir::IntAttr{source->buffer});
  }
  if (node->op() == Op::kConst) {
    return math_.context().Get(Op::kConst, node->dtype(), {}, {}, node->attribute());
  }
  if (node->op() == Op::kIota) {
    const Node* index = point.index[node->attr<ir::IntAttr>().value];
    if (node->dtype() == DType::kInt64) return index;
    return math_.context().Get(Op::kCast, node->dtype(), {}, {index});
  }
  if (IsMovement(node->op())) {
    return LowerGuarded(node, point, MoveThrough(math_, node, point));
  }
  if (node->op() == Op::kGatherElements) return LowerGather(node, point);
  if (IsElementwise(node->op())) return LowerElementwise(node, point);
  const std::string name(ir::Name(node->op()));
  if (node->op() == Op::kGradient || node->op() == Op::kScatterElements) {
    return absl::InternalError(absl::StrCat("node ", node->id(), " (", name,
                                            ") should have been replaced before lowering"));
  }
  return absl::InternalError(
      absl::StrCat("node ", node->id(), " (", name, ") is read where no stage computes it"));
}

absl::StatusOr<const Node*> ExpressionLowerer::LowerElementwise(const Node* node,
                                                                const Point& point) {
  if (!summed_.empty() && node->op() == Op::kMul && !point.valid.always()) {
    absl::StatusOr<const Node*> product = LowerGuardedProduct(node, point);
    if (!product.ok() || *product != nullptr) return product;
  }
  std::vector<const Node*> operands;
  for (const Node* operand : node->operands()) {
    absl::StatusOr<const Node*> value = Lower(operand, point);
    if (!value.ok()) return value;
    operands.push_back(*value);
  }
  return math_.context().Get(node->op(), node->dtype(), {}, std::move(operands), node->attribute());
}

absl::StatusOr<const Node*> ExpressionLowerer::LowerGuardedProduct(const Node* node,
                                                                   const Point& point) {
  if (point.valid.never) return nullptr;
  const auto factors = FactorRanges(node, point);
  if (!factors.ok()) return factors.status();
  const bool is_contraction = IsContraction(*factors);
  if (is_contraction) {
    absl::StatusOr<const Node*> shared = LowerSharedGuards(node, point, *factors);
    if (!shared.ok() || *shared != nullptr) return shared;
  }
  for (const int free : {1, 0}) {
    const Node* other = node->operand(1 - free);
    if (!IsZeroWhereInvalid(other)) continue;
    const int unproved = unproved_;
    absl::StatusOr<const Node*> factor = Lower(node->operand(free), Point{point.index, {}});
    if (!factor.ok()) return factor;
    if (unproved_ != unproved) continue;
    absl::StatusOr<const Node*> guarded = Lower(other, point);
    if (!guarded.ok()) return guarded;
    std::vector<const Node*> operands = {*guarded, *factor};
    if (free == 0) std::swap(operands[0], operands[1]);
    const Node* product = math_.context().Get(Op::kMul, node->dtype(), {}, std::move(operands));
    return is_contraction ? product : ZeroUnless(math_.ToNode(point.valid), product);
  }
  return nullptr;
}

absl::StatusOr<std::array<ExpressionLowerer::Ranges, 2>> ExpressionLowerer::FactorRanges(
    const Node* product, const Point& point) {
  std::array<Ranges, 2> ranges;
  for (const int i : {0, 1}) {
    // Lowered without guards, only to find the ranges that the factor depends on.
    absl::StatusOr<const Node*> factor = Lower(product->operand(i), Point{point.index, {}});
    if (!factor.ok()) return factor.status();
    ranges[i] = ir::RangesOf(*factor);
  }
  return ranges;
}

bool ExpressionLowerer::IsContraction(const std::array<Ranges, 2>& factors) const {
  bool shared = false;
  bool own[2] = {false, false};
  for (const int i : {0, 1}) {
    for (const Node* range : factors[i]) {
      const bool is_shared = absl::c_linear_search(factors[1 - i], range);
      const bool is_summed = absl::c_linear_search(summed_, range);
      shared = shared || (is_shared && is_summed);
      own[i] = own[i] || (!is_shared && !is_summed);
    }
  }
  return shared && own[0] && own[1];
}

absl::StatusOr<const Node*> ExpressionLowerer::LowerSharedGuards(
    const Node* node, const Point& point, const std::array<Ranges, 2>& factors) {
  for (const int i : {0, 1}) {
    if (!IsZeroWhereInvalid(node->operand(i))) return nullptr;
  }
  Validity guards[2];
  // A condition is assigned to the factors that depend on all of its ranges.
  auto assign = [&](const Node* condition, const auto& add) {
    bool assigned = false;
    for (const int i : {0, 1}) {
      const bool knows = absl::c_all_of(ir::RangesOf(condition), [&](const Node* range) {
        return absl::c_linear_search(factors[i], range);
      });
      if (knows) add(&guards[i]);
      assigned = assigned || knows;
    }
    return assigned;
  };
  for (const Bound& bound : point.valid.bounds) {
    // A condition on ranges that no single factor has belongs to neither.
    if (!assign(math_.ToNode(bound.sum), [&](Validity* v) { v->bounds.push_back(bound); })) {
      return nullptr;
    }
  }
  for (const Node* condition : point.valid.conditions) {
    if (!assign(condition, [&](Validity* v) { v->conditions.push_back(condition); })) {
      return nullptr;
    }
  }
  const int unproved = unproved_;
  std::vector<const Node*> operands;
  for (const int i : {0, 1}) {
    absl::StatusOr<const Node*> factor = Lower(node->operand(i), Point{point.index, guards[i]});
    if (!factor.ok()) return factor;
    operands.push_back(*factor);
  }
  if (unproved_ != unproved) return nullptr;
  return math_.context().Get(Op::kMul, node->dtype(), {}, std::move(operands));
}

absl::StatusOr<const Node*> ExpressionLowerer::LowerGather(const Node* node, const Point& point) {
  absl::StatusOr<Point> inner = IndexedPoint(node, node->attr<ir::IntAttr>().value, point);
  if (!inner.ok()) return inner.status();
  return LowerGuarded(node, point, *std::move(inner));
}

absl::StatusOr<Point> ExpressionLowerer::IndexedPoint(const Node* node, int64_t axis,
                                                      const Point& point) {
  Point at_index = point;
  for (size_t i = 0; i < at_index.index.size(); ++i) {
    // In the other dimensions, an index of size 1 is broadcast.
    if (node->operand(1)->shape()[i] == 1) at_index.index[i] = math_.Constant(0);
  }
  absl::StatusOr<const Node*> index = Lower(node->operand(1), at_index);
  if (!index.ok()) return index.status();
  const Node* position = *index;
  if (position->dtype() != DType::kInt64) {
    position = math_.context().Get(Op::kCast, DType::kInt64, {}, {position});
  }
  // Brought to canonical form, so that bounds on it are found again.
  position = math_.Simplify(position);
  Point inner = point;
  inner.index[axis] = position;
  const int64_t size = node->operand(0)->shape()[axis];
  // Positions are data. Out of range, a gather gives zero and a scatter changes nothing.
  math_.Require(inner.valid, position, 0, size);
  // The index of a dimension of size 1 is 0 where it is valid, however it is computed.
  if (size == 1) inner.index[axis] = math_.Constant(0);
  return inner;
}

absl::StatusOr<const Node*> ExpressionLowerer::LowerGuarded(const Node* node, const Point& outer,
                                                            Point inner) {
  if (inner.valid.never) return Zero(math_.context(), node->dtype());
  // The index of a dimension of size 1 is 0 where it is valid, however it is computed.
  for (size_t i = 0; i < inner.index.size(); ++i) {
    if (node->operand(0)->shape()[i] == 1) inner.index[i] = math_.Constant(0);
  }
  absl::StatusOr<const Node*> value = Lower(node->operand(0), inner);
  if (!value.ok() || inner.valid == outer.valid || IsZeroWhereInvalid(node->operand(0)))
    return value;
  const Node* condition = math_.ToNode(inner.valid);
  const Node* zero = Zero(math_.context(), node->dtype());
  // An inner guard that implies this one has already inserted the zero.
  const bool guarded = (*value)->op() == Op::kWhere && (*value)->operand(2) == zero &&
                       Implies((*value)->operand(0), condition);
  if (guarded) return value;
  return ZeroUnless(condition, *value);
}

const Node* ExpressionLowerer::ZeroUnless(const Node* condition, const Node* value) {
  const Node* zero = Zero(math_.context(), value->dtype());
  return math_.context().Get(Op::kWhere, value->dtype(), {}, {condition, value, zero});
}

// Loads are zero where their condition fails. These ops map zeros to zero, so they need no
// selection.
bool ExpressionLowerer::IsZeroWhereInvalid(const Node* node) {
  // The operands of a stored value are not part of the kernel.
  if (is_stored_(node)) return true;
  // Memoised, since shared operands have exponentially many paths to them.
  auto [known, inserted] = zero_where_invalid_.try_emplace(node, false);
  if (!inserted) return known->second;
  bool zero = false;
  switch (node->op()) {
    // Both factors of a product must be zero: zero times an infinity is NaN.
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kMax:
    case Op::kMin:
      zero = IsZeroWhereInvalid(node->operand(0)) && IsZeroWhereInvalid(node->operand(1));
      break;
    case Op::kWhere:
      zero = IsZeroWhereInvalid(node->operand(1)) && IsZeroWhereInvalid(node->operand(2));
      break;
    case Op::kConst:
      zero = ir::IsFloat(node->dtype()) ? node->attr<ir::ConstValue>().AsDouble() == 0
                                        : node->attr<ir::ConstValue>().AsInt() == 0;
      break;
    default: {
      const bool view =
          IsMovement(node->op()) || node->op() == Op::kGatherElements || node->op() == Op::kCast;
      zero = view && IsZeroWhereInvalid(node->operand(0));
      break;
    }
  }
  zero_where_invalid_[node] = zero;
  return zero;
}

}  // namespace kiln::kernel
