// The part of IndexMath that converts conditions to bounds, and back.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "compiler/kernel/index.h"
#include "compiler/kernel/index_sum.h"

namespace kiln::kernel {

using ir::DType;
using ir::Node;
using ir::Op;

namespace {

bool IsConstant(const Node* node) { return node->op() == Op::kConst; }

int64_t ValueOf(const Node* node) { return node->attr<ir::ConstValue>().AsInt(); }

}  // namespace

void IndexMath::Require(Validity& validity, const Node* condition) {
  if (validity.never) return;
  if (condition->op() == Op::kAnd) {
    Require(validity, condition->operand(0));
    Require(validity, condition->operand(1));
    return;
  }
  if (condition->op() == Op::kConst) {
    if (ValueOf(condition) == 0) validity = Validity{true, {}, {}};
    return;
  }
  if (condition->op() == Op::kCmpLt && IsIndex(condition->operand(0))) {
    const Node* a = condition->operand(0);
    const Node* b = condition->operand(1);
    if (IsConstant(b) && IsSmall(ValueOf(b))) {
      return RequireBound(validity, ToSum(a), {-kUnbounded, ValueOf(b) - 1});
    }
    if (IsConstant(a) && IsSmall(ValueOf(a))) {
      return RequireBound(validity, ToSum(b), {ValueOf(a) + 1, kUnbounded});
    }
    // a < b is a - b < 0 only if the difference cannot wrap.
    const Sum difference = AddScaled(ToSum(a), ToSum(b), -1);
    if (IsExact(difference, &validity)) {
      return RequireBound(validity, difference, {-kUnbounded, -1});
    }
  }
  if (condition->op() == Op::kCmpEq && IsIndex(condition->operand(0)) &&
      IsConstant(condition->operand(1)) && IsSmall(ValueOf(condition->operand(1)))) {
    const int64_t value = ValueOf(condition->operand(1));
    return RequireBound(validity, ToSum(condition->operand(0)), {value, value});
  }
  // Not a bound: kept as a whole.
  auto& all = validity.conditions;
  if (std::find(all.begin(), all.end(), condition) == all.end()) all.push_back(condition);
}

const Node* IndexMath::ToNode(const Validity& validity) {
  auto truth = [&](bool value) {
    return context_.Get(Op::kConst, DType::kBool, {}, {}, ir::ConstValue::Int(value ? 1 : 0));
  };
  if (validity.never) return truth(false);
  std::vector<const Node*> parts = validity.conditions;
  for (const Bound& bound : validity.bounds) {
    const Node* sum = ToNode(bound.sum);
    // Bounds include their ends, but the IR's only order is <. Moving an end by one is safe, since
    // known ends are smaller than kUnbounded.
    if (bound.interval.low == bound.interval.high) {
      parts.push_back(
          context_.Get(Op::kCmpEq, DType::kBool, {}, {sum, Constant(bound.interval.low)}));
      continue;
    }
    if (bound.interval.low > -kUnbounded) {
      parts.push_back(
          context_.Get(Op::kCmpLt, DType::kBool, {}, {Constant(bound.interval.low - 1), sum}));
    }
    if (bound.interval.high < kUnbounded) {
      parts.push_back(
          context_.Get(Op::kCmpLt, DType::kBool, {}, {sum, Constant(bound.interval.high + 1)}));
    }
  }
  std::sort(parts.begin(), parts.end(),
            [](const Node* a, const Node* b) { return Compare(a, b) < 0; });
  const Node* node = nullptr;
  for (const Node* part : parts) {
    node = node == nullptr ? part : context_.Get(Op::kAnd, DType::kBool, {}, {node, part});
  }
  return node;
}

// Conditions on fewer terms come first: their bounds on data show whether sums of these terms can
// wrap, and thus how the other conditions can be used.
Validity IndexMath::ToValidity(const Node* condition) {
  Validity validity;
  if (condition == nullptr) return validity;
  std::vector<const Node*> parts = {condition};
  for (size_t i = 0; i < parts.size();) {
    const Node* part = parts[i];
    if (part->op() == Op::kAnd) {
      parts[i] = part->operand(1);
      parts.insert(parts.begin() + static_cast<int64_t>(i), part->operand(0));
    } else {
      ++i;
    }
  }
  auto terms_of = [&](const Node* part) {
    size_t most = 1;
    for (const Node* side : part->operands()) {
      if (IsIndex(side)) most = std::max(most, ToSum(side).terms.size());
    }
    return most;
  };
  absl::c_stable_sort(
      parts, [&](const Node* a, const Node* b) { return terms_of(a) < terms_of(b); });
  for (const Node* part : parts) Require(validity, part);
  return validity;
}

}  // namespace kiln::kernel
