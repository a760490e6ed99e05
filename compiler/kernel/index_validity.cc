// The part of IndexMath that computes bounds.
#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/kernel/index.h"
#include "compiler/kernel/index_sum.h"

namespace kiln::kernel {

using ir::DType;
using ir::Node;
using ir::Op;

Interval IndexMath::AtomBounds(const Node* atom, const Validity& where) {
  if (auto known = conditional_bounds_.find(atom); known != conditional_bounds_.end()) {
    return known->second;
  }
  Interval bounds = bounds_.OfAtom(atom);
  if (atom->op() == Op::kIDiv && IsIndex(atom) && Divisor(atom) > 0) {
    // The bounds of the operand may need this atom's again; they then get the unconditional ones.
    conditional_bounds_.emplace(atom, bounds);
    ++conditional_depth_;
    const Interval operand = SumBounds(ToSum(atom->operand(0)), &where);
    --conditional_depth_;
    bounds = Intersect(bounds, DivideInterval(operand, Divisor(atom)));
  }
  for (const Bound& known : where.bounds) {
    const bool about_atom = known.sum.terms.size() == 1 && known.sum.terms[0].atom == atom;
    if (about_atom && known.sum.terms[0].coefficient == 1) {
      bounds = Intersect(bounds, known.interval);
    }
  }
  // Conditional bounds are valid only for this one call.
  if (conditional_depth_ > 0) {
    conditional_bounds_[atom] = bounds;
  } else {
    conditional_bounds_.clear();
  }
  return bounds;
}

Interval IndexMath::SumBounds(const Sum& sum, const Validity* where) {
  if (where == nullptr) return bounds_.Of(sum);
  const bool single = sum.constant == 0 && sum.terms.size() == 1 && sum.terms[0].coefficient == 1;
  Interval bounds = {sum.constant, sum.constant};
  for (const Term& term : sum.terms) {
    const Interval atom = AtomBounds(term.atom, *where);
    bounds = single ? atom : AddUnlessWrapped(bounds, Scale(atom, term.coefficient));
  }
  // A known bound on a sum that this sum contains, scaled.
  for (const Bound& known : where->bounds) {
    const Term& first = known.sum.terms[0];
    // AtomBounds has already used bounds on a single atom.
    if (known.sum.terms.size() < 2 && first.coefficient == 1) continue;
    const int64_t coefficient = sum.Coefficient(first.atom);
    if (!IsSmall(coefficient) || !IsSmall(first.coefficient)) continue;
    if (coefficient == 0 || coefficient % first.coefficient != 0) continue;
    const int64_t factor = coefficient / first.coefficient;
    const Sum rest = AddScaled(sum, known.sum, -factor);
    // Helps only if terms cancel. This also ends the recursion below.
    if (rest.terms.size() >= sum.terms.size()) continue;
    Interval whole = Scale(known.interval, factor);
    if (factor != 1 || rest.constant != 0 || !rest.terms.empty()) {
      // If an end is unknown a part may wrap, unless the sum is known not to.
      const Interval beside = SumBounds(rest, where);
      whole = IsExact(sum, nullptr) || IsExact(sum, where) ? AddIntervals(whole, beside)
                                                           : AddUnlessWrapped(whole, beside);
    }
    bounds = Intersect(bounds, whole);
  }
  return bounds;
}

bool IndexMath::IsExact(const Sum& sum, const Validity* where) {
  if (!IsSmall(sum.constant)) return false;
  // The sum of the terms' magnitudes bounds the magnitude of any part.
  Interval total = {0, static_cast<int64_t>(Magnitude(sum.constant))};
  for (const Term& term : sum.terms) {
    if (!IsSmall(term.coefficient)) return false;
    const Interval atom =
        where == nullptr ? bounds_.OfAtom(term.atom) : AtomBounds(term.atom, *where);
    if (!IsKnown(atom)) return false;
    const Interval scaled = Scale(atom, term.coefficient);
    total = AddIntervals(total, {0, std::max(std::abs(scaled.low), std::abs(scaled.high))});
  }
  return IsKnown(total);
}

Interval IndexMath::BoundsOf(const Node* index, const Validity& where) {
  return SumBounds(ToSum(index), &where);
}

void IndexMath::Require(Validity& validity, const Node* index, int64_t low, int64_t high) {
  RequireBound(validity, ToSum(index), {low, high - 1});
}

// Brings a bound to canonical form and merges it with the others.
void IndexMath::RequireBound(Validity& validity, Sum sum, Interval interval) {
  if (validity.never) return;
  if (!IsKnown(interval) && sum.terms.size() > 1 && !IsExact(sum, &validity)) {
    // The other end may follow from bounds on parts of the sum. With both ends, constants may be
    // added to the sum although it might wrap.
    const Interval both = Intersect(interval, SumBounds(sum, &validity));
    if (IsKnown(both) && both.low <= both.high) interval = both;
  }
  const bool one_sided = !IsKnown(interval);
  Interval shifted = interval;
  if (sum.constant != 0 && IsSmall(sum.constant)) shifted = Shift(interval, -sum.constant);
  // Adding a constant is a bijection modulo 2^64. So if both ends are known, the constant may move
  // to the other side even if the sum wraps. With one open end, numbers near the limits of int64
  // would wrap into the interval.
  const bool splits = IsSmall(sum.constant) && KeepsEnds(interval, shifted) &&
                      (sum.constant == 0 || !one_sided || IsExact(sum, &validity));
  if (splits) {
    interval = shifted;
    sum.constant = 0;
  } else {
    sum = Sum{0, {{ToNode(sum), 1}}};
  }
  if (sum.terms.size() == 1 && sum.terms[0].coefficient == 1) {
    const Node* atom = sum.terms[0].atom;
    if (atom->op() == Op::kIDiv && IsIndex(atom) && Divisor(atom) > 0) {
      const int64_t divisor = Divisor(atom);
      // low <= x / d <= high is d*low <= x <= d*high + d-1.
      Interval scaled = Scale(interval, divisor);
      scaled = AddIntervals(scaled, {0, interval.high < kUnbounded ? divisor - 1 : 0});
      if (KeepsEnds(interval, scaled)) {
        return RequireBound(validity, ToSum(atom->operand(0)), scaled);
      }
    }
  }
  // A common factor may be divided out only if nothing wraps. The sign of the leading term makes
  // bounds on a sum and on its negative the same bound.
  const bool exact = IsExact(sum, &validity);
  int64_t factor = exact ? 0 : 1;
  for (const Term& term : sum.terms) {
    if (exact) factor = std::gcd(factor, term.coefficient);
  }
  const Node* lead = nullptr;
  int64_t sign = 1;
  for (const Term& term : sum.terms) {
    if (lead != nullptr && Compare(lead, term.atom) <= 0) continue;
    lead = term.atom;
    sign = term.coefficient < 0 && (exact || !one_sided) ? -1 : 1;
  }
  if (factor > 1 || sign < 0) {
    for (Term& term : sum.terms) {
      term.coefficient =
          WrappingMul(factor > 1 ? term.coefficient / factor : term.coefficient, sign);
    }
    if (sign < 0) interval = {-interval.high, -interval.low};
    if (interval.low > -kUnbounded) interval.low = CeilDiv(interval.low, factor);
    if (interval.high < kUnbounded) interval.high = FloorDiv(interval.high, factor);
  }
  const Interval known = SumBounds(sum, &validity);
  if (interval.low <= known.low && known.high <= interval.high) return;
  const Interval both = Intersect(known, interval);
  if (both.low > both.high) {
    validity = Validity{true, {}, {}};
    return;
  }
  // Keeps only the ends that do not follow from the ranges, so that equal conditions look equal.
  const Interval free = SumBounds(sum, nullptr);
  auto same = std::find_if(validity.bounds.begin(), validity.bounds.end(),
                           [&](const Bound& bound) { return bound.sum == sum; });
  if (same != validity.bounds.end()) {
    same->interval = Intersect(same->interval, interval);
    return;
  }
  if (interval.low <= free.low) interval.low = -kUnbounded;
  if (interval.high >= free.high) interval.high = kUnbounded;
  validity.bounds.push_back({std::move(sum), interval});
}

}  // namespace kiln::kernel
