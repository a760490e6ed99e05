#include "compiler/schedule/linear.h"

#include <algorithm>

#include "compiler/ir/walk.h"

namespace kiln::schedule {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

bool IsInt64Const(const Node* node) {
  return node->op() == Op::kConst && node->dtype() == DType::kInt64;
}

void Add(Linear* into, const Node* node, int64_t scale) {
  switch (node->op()) {
    case Op::kConst:
      into->constant += scale * node->attr<ir::ConstValue>().AsInt();
      return;
    case Op::kAdd:
      Add(into, node->operand(0), scale);
      Add(into, node->operand(1), scale);
      return;
    case Op::kSub:
      Add(into, node->operand(0), scale);
      Add(into, node->operand(1), -scale);
      return;
    case Op::kNeg:
      Add(into, node->operand(0), -scale);
      return;
    case Op::kMul:
      for (int i = 0; i < 2; ++i) {
        if (IsInt64Const(node->operand(i))) {
          Add(into, node->operand(1 - i), scale * node->operand(i)->attr<ir::ConstValue>().AsInt());
          return;
        }
      }
      break;
    default:
      break;
  }
  into->terms.emplace_back(node, scale);
}

bool IsSum(const Node* node) {
  if (node->dtype() != DType::kInt64) return false;
  switch (node->op()) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kNeg:
    case Op::kRange:
      return true;
    default:
      return false;
  }
}

void Collect(const Node* node, absl::flat_hash_set<const Node*>* seen, std::vector<Linear>* out) {
  if (!seen->insert(node).second) return;
  if (!IsSum(node)) {
    const size_t count = node->op() == Op::kReduce ? 1 : node->operands().size();
    for (size_t i = 0; i < count; ++i) Collect(node->operand(i), seen, out);
    return;
  }
  Linear linear = Linearise(node);
  for (const auto& [atom, coefficient] : linear.terms) {
    if (atom->op() == Op::kRange) continue;
    for (const Node* operand : atom->operands()) Collect(operand, seen, out);
  }
  out->push_back(std::move(linear));
}

int64_t SaturatingMul(int64_t a, int64_t b) {
  int64_t product;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

Interval BoundsOfAtom(const Node* node) {
  if (node->op() == Op::kRange)
    return {0, std::max<int64_t>(node->attr<ir::RangeAttr>().extent - 1, 0)};
  if ((node->op() == Op::kMod || node->op() == Op::kIDiv) && IsInt64Const(node->operand(1))) {
    const int64_t divisor = node->operand(1)->attr<ir::ConstValue>().AsInt();
    if (divisor <= 0) return {};
    const Interval inner = BoundsOf(node->operand(0));
    if (inner.low < 0) return node->op() == Op::kMod ? Interval{0, divisor - 1} : Interval{};
    if (node->op() == Op::kIDiv) return {inner.low / divisor, inner.high / divisor};
    return {0, std::min(inner.high, divisor - 1)};
  }
  if (node->op() == Op::kWhere) {
    const Interval a = BoundsOf(node->operand(1));
    const Interval b = BoundsOf(node->operand(2));
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
  }
  return {};
}

}  // namespace

int64_t Linear::Coefficient(const Node* atom) const {
  for (const auto& [term, coefficient] : terms) {
    if (term == atom) return coefficient;
  }
  return 0;
}

Linear Linearise(const Node* node) {
  Linear linear;
  Add(&linear, node, 1);
  std::sort(linear.terms.begin(), linear.terms.end(),
            [](const auto& a, const auto& b) { return a.first->id() < b.first->id(); });
  size_t kept = 0;
  for (size_t i = 0; i < linear.terms.size();) {
    auto term = linear.terms[i];
    for (++i; i < linear.terms.size() && linear.terms[i].first == term.first; ++i) {
      term.second += linear.terms[i].second;
    }
    if (term.second != 0) linear.terms[kept++] = term;
  }
  linear.terms.resize(kept);
  return linear;
}

void CollectLinears(const Node* root, std::vector<Linear>* out) {
  absl::flat_hash_set<const Node*> seen;
  Collect(root, &seen, out);
}

std::vector<const Node*> RangesOf(const Node* root) {
  std::vector<const Node*> ranges;
  for (const Node* node : ir::TopologicalOrder({&root, 1})) {
    if (node->op() == Op::kRange) ranges.push_back(node);
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return ranges;
}

bool DependsOn(const Node* root, const Node* range) {
  for (const Node* node : ir::TopologicalOrder({&root, 1})) {
    if (node == range) return true;
  }
  return false;
}

Interval BoundsOf(const Node* node) {
  const Linear linear = Linearise(node);
  Interval sum{linear.constant, linear.constant};
  for (const auto& [atom, coefficient] : linear.terms) {
    const Interval bounds = BoundsOfAtom(atom);
    const int64_t a = SaturatingMul(bounds.low, coefficient);
    const int64_t b = SaturatingMul(bounds.high, coefficient);
    sum.low = SaturatingAdd(sum.low, std::min(a, b));
    sum.high = SaturatingAdd(sum.high, std::max(a, b));
  }
  return sum;
}

}  // namespace kiln::schedule
