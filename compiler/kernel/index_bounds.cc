#include "compiler/kernel/index_bounds.h"

#include <algorithm>

namespace kiln::kernel {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

Interval DTypeBounds(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  // 64-bit data may be beyond kUnbounded, so its bounds are unknown.
  if (!ir::IsInteger(dtype) || ir::SizeOf(dtype) >= 8) return kAnything;
  const int bits = 8 * ir::SizeOf(dtype);
  if (!ir::IsSigned(dtype)) return {0, (int64_t{1} << bits) - 1};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

Interval Union(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Interval OfRemainder(const Interval& operand, int64_t divisor) {
  // A remainder has the sign of its divisor, which is positive here, and does not exceed an operand
  // that is not negative.
  return {0, operand.low >= 0 ? std::min(operand.high, divisor - 1) : divisor - 1};
}

// Returns the constant that an int64 idiv or mod divides by; 0 if there is none or it is not
// positive.
int64_t IndexDivisor(const Node* atom) { return IsIndex(atom) ? Divisor(atom) : 0; }

// Returns the bounds of an atom from the bounds of its operands.
Interval AtomBounds(const Node* atom, IndexBounds& of) {
  const Interval any = DTypeBounds(atom->dtype());
  switch (atom->op()) {
    case Op::kRange:
      return {0, std::max<int64_t>(atom->attr<ir::RangeAttr>().extent - 1, 0)};
    case Op::kIDiv:
      if (IndexDivisor(atom) == 0) return any;
      return DivideInterval(of.Of(atom->operand(0)), Divisor(atom));
    case Op::kMod:
      if (IndexDivisor(atom) == 0) return any;
      return OfRemainder(of.Of(atom->operand(0)), Divisor(atom));
    case Op::kMin:
    case Op::kMax: {
      if (!IsIndex(atom)) return any;
      const Interval a = of.Of(atom->operand(0));
      const Interval b = of.Of(atom->operand(1));
      return atom->op() == Op::kMin ? Interval{std::min(a.low, b.low), std::min(a.high, b.high)}
                                    : Interval{std::max(a.low, b.low), std::max(a.high, b.high)};
    }
    case Op::kWhere:
      return IsIndex(atom) ? Union(of.Of(atom->operand(1)), of.Of(atom->operand(2))) : any;
    // Positions are often narrower than int64: their dtype alone can prove that an access to a
    // table is in bounds.
    case Op::kCast: {
      const DType from = atom->operand(0)->dtype();
      const bool keeps = IsIndex(atom) && (from == DType::kBool || ir::IsInteger(from));
      return keeps ? DTypeBounds(from) : any;
    }
    default:
      return any;
  }
}

}  // namespace

Interval DivideInterval(const Interval& operand, int64_t divisor) {
  return {operand.low <= -kUnbounded ? operand.low : FloorDiv(operand.low, divisor),
          operand.high >= kUnbounded ? operand.high : FloorDiv(operand.high, divisor)};
}

Interval IndexBounds::OfAtom(const Node* atom) {
  if (auto known = known_.find(atom); known != known_.end()) return known->second;
  const Interval bounds = AtomBounds(atom, *this);
  known_.emplace(atom, bounds);
  return bounds;
}

Interval IndexBounds::Of(const Sum& sum) {
  if (sum.constant == 0 && sum.terms.size() == 1 && sum.terms[0].coefficient == 1)
    return OfAtom(sum.terms[0].atom);
  Interval bounds = {sum.constant, sum.constant};
  for (const Term& term : sum.terms)
    bounds = AddUnlessWrapped(bounds, Scale(OfAtom(term.atom), term.coefficient));
  return bounds;
}

}  // namespace kiln::kernel
