#include "compiler/schedule/linear.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/walk.h"

namespace kiln::schedule {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

bool IsInt64Const(const Node* node) {
  return node->op() == Op::kConst && node->dtype() == DType::kInt64;
}

// Sums share operands: x + x a hundred times over has more terms than atoms in the universe.
constexpr int kMostVisits = 512;

int64_t WrappingMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t WrappingAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Adds scale * node; integers wrap, as they do when the sum is computed.
class Adder {
 public:
  explicit Adder(Linear* into) : into_(*into) {}

  void Add(const Node* node, int64_t scale) {
    if (++visits_ > kMostVisits || !AddParts(node, scale)) into_.terms.emplace_back(node, scale);
  }

 private:
  bool AddParts(const Node* node, int64_t scale) {
    switch (node->op()) {
      case Op::kConst:
        into_.constant =
            WrappingAdd(into_.constant, WrappingMul(scale, node->attr<ir::ConstValue>().AsInt()));
        return true;
      case Op::kAdd:
      case Op::kSub:
        Add(node->operand(0), scale);
        Add(node->operand(1), node->op() == Op::kAdd ? scale : WrappingMul(scale, -1));
        return true;
      case Op::kNeg:
        Add(node->operand(0), WrappingMul(scale, -1));
        return true;
      case Op::kMul:
        for (int i = 0; i < 2; ++i) {
          if (!IsInt64Const(node->operand(i))) continue;
          Add(node->operand(1 - i),
              WrappingMul(scale, node->operand(i)->attr<ir::ConstValue>().AsInt()));
          return true;
        }
        return false;
      default:
        return false;
    }
  }

  Linear& into_;
  int visits_ = 0;
};

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

// Bounds of nodes that share operands: each is asked once, since the paths to it can be as many as
// the atoms in the universe.
class Bounds {
 public:
  Interval Of(const Node* node) {
    if (auto known = known_.find(node); known != known_.end()) return known->second;
    const Interval bounds = OfSum(Linearise(node));
    known_.emplace(node, bounds);
    return bounds;
  }

 private:
  Interval OfSum(const Linear& linear) {
    Interval sum{linear.constant, linear.constant};
    for (const auto& [atom, coefficient] : linear.terms) {
      const Interval bounds = OfAtom(atom);
      int64_t a, b;
      // Where a sum could wrap nothing is known of it.
      if (__builtin_mul_overflow(bounds.low, coefficient, &a) ||
          __builtin_mul_overflow(bounds.high, coefficient, &b) ||
          __builtin_add_overflow(sum.low, std::min(a, b), &sum.low) ||
          __builtin_add_overflow(sum.high, std::max(a, b), &sum.high)) {
        return {};
      }
    }
    return sum;
  }

  Interval OfAtom(const Node* node) {
    if (node->op() == Op::kRange)
      return {0, std::max<int64_t>(node->attr<ir::RangeAttr>().extent - 1, 0)};
    if ((node->op() == Op::kMod || node->op() == Op::kIDiv) && IsInt64Const(node->operand(1))) {
      const int64_t divisor = node->operand(1)->attr<ir::ConstValue>().AsInt();
      if (divisor <= 0) return {};
      const Interval inner = Of(node->operand(0));
      if (inner.low < 0) return node->op() == Op::kMod ? Interval{0, divisor - 1} : Interval{};
      if (node->op() == Op::kIDiv) return {inner.low / divisor, inner.high / divisor};
      return {0, std::min(inner.high, divisor - 1)};
    }
    if (node->op() == Op::kWhere) {
      const Interval a = Of(node->operand(1));
      const Interval b = Of(node->operand(2));
      return {std::min(a.low, b.low), std::max(a.high, b.high)};
    }
    return {};
  }

  absl::flat_hash_map<const Node*, Interval> known_;
};

}  // namespace

int64_t Linear::Coefficient(const Node* atom) const {
  for (const auto& [term, coefficient] : terms) {
    if (term == atom) return coefficient;
  }
  return 0;
}

Linear Linearise(const Node* node) {
  Linear linear;
  Adder(&linear).Add(node, 1);
  std::sort(linear.terms.begin(), linear.terms.end(),
            [](const auto& a, const auto& b) { return a.first->id() < b.first->id(); });
  size_t kept = 0;
  for (size_t i = 0; i < linear.terms.size();) {
    auto term = linear.terms[i];
    for (++i; i < linear.terms.size() && linear.terms[i].first == term.first; ++i) {
      term.second = WrappingAdd(term.second, linear.terms[i].second);
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

bool DependsOn(const Node* root, const Node* range) {
  for (const Node* node : ir::TopologicalOrder({&root, 1})) {
    if (node == range) return true;
  }
  return false;
}

Interval BoundsOf(const Node* node) { return Bounds().Of(node); }

}  // namespace kiln::schedule
