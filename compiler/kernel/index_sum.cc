#include "compiler/kernel/index_sum.h"

#include <algorithm>

namespace kiln::kernel {

using ir::Node;
using ir::Op;

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
  return result;
}

int64_t CoefficientOf(const Sum& sum, const Node* atom) {
  for (const Term& term : sum.terms) {
    if (term.atom == atom) return term.coefficient;
  }
  return 0;
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
  if (a->op() != b->op())
    return a->op() == Op::kRange ? -1 : b->op() == Op::kRange ? 1 : a->op() < b->op() ? -1 : 1;
  if (a->dtype() != b->dtype()) return a->dtype() < b->dtype() ? -1 : 1;
  if (const int order = CompareAttributes(a, b); order != 0) return order;
  const size_t size = std::min(a->operands().size(), b->operands().size());
  for (size_t i = 0; i < size; ++i) {
    if (const int order = Compare(a->operand(i), b->operand(i)); order != 0) return order;
  }
  return a->operands().size() < b->operands().size() ? -1 : 1;
}

}  // namespace kiln::kernel
