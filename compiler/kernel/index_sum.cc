#include "compiler/kernel/index_sum.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/walk.h"
#include "proto/check/check.h"

namespace kiln::kernel {

using ir::DType;
using ir::Node;
using ir::Op;

namespace {

bool IsInt64Const(const Node* node) {
  return node->op() == Op::kConst && node->dtype() == DType::kInt64;
}

// Bounds the nodes that SumOf splits; beyond it, parts are kept as atoms. Sums share operands:
// splitting x + x, nested a hundred deep, would take 2^100 steps.
constexpr int kVisitsMax = 512;

// Adds scale * node; integers wrap, as they do when the sum is computed.
class Adder {
 public:
  explicit Adder(Sum* into) : into_(*into) {}

  void Add(const Node* node, int64_t scale) {
    if (++visits_ > kVisitsMax || !AddParts(node, scale)) into_.terms.emplace_back(node, scale);
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

  Sum& into_;
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

void Collect(const Node* node, absl::flat_hash_set<const Node*>* seen, std::vector<Sum>* out) {
  if (!seen->insert(node).second) return;
  if (!IsSum(node)) {
    // The other operands of a reduction are the ranges that it runs over.
    const size_t count = node->op() == Op::kReduce ? 1 : node->operands().size();
    for (size_t i = 0; i < count; ++i) Collect(node->operand(i), seen, out);
    return;
  }
  Sum sum = SumOf(node);
  for (const auto& [atom, coefficient] : sum.terms) {
    if (atom->op() == Op::kRange) continue;
    for (const Node* operand : atom->operands()) Collect(operand, seen, out);
  }
  out->push_back(std::move(sum));
}

}  // namespace

void Sum::Validate() const {
  for (size_t i = 0; i < terms.size(); ++i) {
    KILN_CHECK_NE(terms[i].coefficient, 0) << "term " << i;
    if (i > 0) KILN_CHECK_LT(terms[i - 1].atom->id(), terms[i].atom->id());
  }
}

int64_t Sum::Coefficient(const Node* atom) const {
  for (const Term& term : terms) {
    if (term.atom == atom) return term.coefficient;
  }
  return 0;
}

Sum SumOf(const Node* node) {
  Sum sum;
  Adder(&sum).Add(node, 1);
  std::sort(sum.terms.begin(), sum.terms.end(),
            [](const Term& a, const Term& b) { return a.atom->id() < b.atom->id(); });
  size_t kept = 0;
  for (size_t i = 0; i < sum.terms.size();) {
    Term term = sum.terms[i];
    for (++i; i < sum.terms.size() && sum.terms[i].atom == term.atom; ++i) {
      term.coefficient = WrappingAdd(term.coefficient, sum.terms[i].coefficient);
    }
    if (term.coefficient != 0) sum.terms[kept++] = term;
  }
  sum.terms.resize(kept);
  KILN_VALIDATE(sum, kept);
  return sum;
}

void CollectSums(const Node* root, std::vector<Sum>* out) {
  absl::flat_hash_set<const Node*> seen;
  Collect(root, &seen, out);
}

bool DependsOn(const Node* root, const Node* range) {
  for (const Node* node : ir::TopologicalOrder({&root, 1})) {
    if (node == range) return true;
  }
  return false;
}

int64_t Divisor(const Node* node) {
  if (node->operand(1)->op() != Op::kConst) return 0;
  return std::max<int64_t>(0, node->operand(1)->attr<ir::ConstValue>().AsInt());
}

Sum AddScaled(const Sum& a, Sum b, int64_t factor, bool unordered) {
  Sum result;
  result.constant = WrappingAdd(a.constant, WrappingMul(factor, b.constant));
  if (factor == 0) b.terms.clear();
  auto by_id = [](const Term& x, const Term& y) { return x.atom->id() < y.atom->id(); };
  if (unordered) std::sort(b.terms.begin(), b.terms.end(), by_id);
  size_t i = 0;
  size_t j = 0;
  // Both have their terms in order of id, so a merge keeps the order.
  while (i < a.terms.size() || j < b.terms.size()) {
    Term term;
    if (j == b.terms.size() || (i < a.terms.size() && by_id(a.terms[i], b.terms[j]))) {
      term = a.terms[i++];
    } else {
      term = {b.terms[j].atom, WrappingMul(b.terms[j].coefficient, factor)};
      if (i < a.terms.size() && a.terms[i].atom == term.atom) {
        term.coefficient = WrappingAdd(term.coefficient, a.terms[i++].coefficient);
      }
      ++j;
    }
    if (term.coefficient != 0) result.terms.push_back(term);
  }
  KILN_VALIDATE(result, result.terms.size());
  return result;
}

Division SplitMultiple(const Sum& sum, int64_t divisor) {
  KILN_CHECK_GE(divisor, 1);
  Division parts;
  for (const Term& term : sum.terms) {
    if (term.coefficient % divisor == 0) {
      parts.multiple.terms.push_back({term.atom, term.coefficient / divisor});
    } else {
      parts.rest.terms.push_back(term);
    }
  }
  parts.multiple.constant = FloorDiv(sum.constant, divisor);
  parts.rest.constant = sum.constant - parts.multiple.constant * divisor;
  KILN_CHECK(parts.rest.constant >= 0 && parts.rest.constant < divisor) << sum.constant;
  KILN_CHECK_EQ(parts.multiple.terms.size() + parts.rest.terms.size(), sum.terms.size());
  return parts;
}

static int64_t Saturate(__int128 value) {
  if (value >= kUnbounded) return kUnbounded;
  if (value <= -kUnbounded) return -kUnbounded;
  return static_cast<int64_t>(value);
}

Interval AddIntervals(const Interval& a, const Interval& b) {
  return {Saturate(static_cast<__int128>(a.low) + b.low),
          Saturate(static_cast<__int128>(a.high) + b.high)};
}

Interval Scale(const Interval& interval, int64_t factor) {
  const int64_t low = Saturate(static_cast<__int128>(interval.low) * factor);
  const int64_t high = Saturate(static_cast<__int128>(interval.high) * factor);
  return factor < 0 ? Interval{high, low} : Interval{low, high};
}

Interval AddUnlessWrapped(const Interval& a, const Interval& b) {
  const Interval sum = AddIntervals(a, b);
  return IsKnown(a) && IsKnown(b) && IsKnown(sum) ? sum : kAnything;
}

Interval Shift(const Interval& interval, int64_t by) {
  const Interval all = AddIntervals(interval, {by, by});
  return {IsSmall(interval.low) ? all.low : interval.low,
          IsSmall(interval.high) ? all.high : interval.high};
}

static int CompareAttributes(const Node* a, const Node* b) {
  auto three_way = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  if (a->attribute().index() != b->attribute().index()) {
    return three_way(a->attribute().index(), b->attribute().index());
  }
  switch (a->op()) {
    case Op::kConst:
      return three_way(a->attr<ir::ConstValue>().bits, b->attr<ir::ConstValue>().bits);
    case Op::kRange:
      return three_way(a->attr<ir::RangeAttr>().id, b->attr<ir::RangeAttr>().id);
    case Op::kLoad:
      return three_way(a->attr<ir::IntAttr>().value, b->attr<ir::IntAttr>().value);
    case Op::kReduce:
      return three_way(a->attr<ir::ReduceAttr>().kind, b->attr<ir::ReduceAttr>().kind);
    default:
      return 0;
  }
}

int Compare(const Node* a, const Node* b) {
  if (a == b) return 0;
  // Ranges come before all other atoms.
  if (a->op() != b->op())
    return a->op() == Op::kRange ? -1 : b->op() == Op::kRange ? 1 : a->op() < b->op() ? -1 : 1;
  if (a->dtype() != b->dtype()) return a->dtype() < b->dtype() ? -1 : 1;
  if (const int order = CompareAttributes(a, b); order != 0) return order;
  const size_t size = std::min(a->operands().size(), b->operands().size());
  for (size_t i = 0; i < size; ++i) {
    if (const int order = Compare(a->operand(i), b->operand(i)); order != 0) return order;
  }
  if (a->operands().size() != b->operands().size())
    return a->operands().size() < b->operands().size() ? -1 : 1;
  return a->id() < b->id() ? -1 : 1;  // other attributes
}

}  // namespace kiln::kernel
