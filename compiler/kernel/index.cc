#include "compiler/kernel/index.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/kernel/index_sum.h"
#include "proto/check/check.h"

namespace kiln::kernel {

using ir::Node;
using ir::Op;

const Node* IndexMath::Constant(int64_t value) {
  return context_.Get(Op::kConst, ir::DType::kInt64, {}, {}, ir::ConstValue::Int(value));
}

const Node* IndexMath::Range(int64_t extent) {
  KILN_CHECK_GE(extent, 1);
  return context_.Get(Op::kRange, ir::DType::kInt64, {}, {}, ir::RangeAttr{next_range_++, extent});
}

const Node* IndexMath::Add(const Node* a, const Node* b) {
  Sum sum = AddScaled(ToSum(a), ToSum(b), 1);
  CombineDigits(sum);
  return ToNode(sum);
}

const Node* IndexMath::Sub(const Node* a, const Node* b) {
  Sum sum = AddScaled(ToSum(a), ToSum(b), -1);
  CombineDigits(sum);
  return ToNode(sum);
}

const Node* IndexMath::Mul(const Node* a, int64_t factor) {
  return ToNode(AddScaled(Sum{}, ToSum(a), factor));
}

const Node* IndexMath::Div(const Node* a, int64_t divisor, const Validity* where) {
  KILN_CHECK_GE(divisor, 1);
  return ToNode(DivSum(ToSum(a), divisor, where));
}

const Node* IndexMath::Mod(const Node* a, int64_t divisor, const Validity* where) {
  KILN_CHECK_GE(divisor, 1);
  return ToNode(ModSum(ToSum(a), divisor, where));
}

const Node* IndexMath::Flatten(absl::Span<const Node* const> digits,
                               absl::Span<const int64_t> extents) {
  KILN_CHECK_EQ(digits.size(), extents.size());
  Sum sum;
  int64_t weight = 1;
  for (int i = static_cast<int>(digits.size()) - 1; i >= 0; --i) {
    sum = AddScaled(sum, ToSum(digits[i]), weight);
    weight *= extents[i];
  }
  CombineDigits(sum);
  return ToNode(sum);
}

std::vector<const Node*> IndexMath::Unflatten(const Node* index, absl::Span<const int64_t> extents,
                                              const Validity* where) {
  std::vector<const Node*> digits(extents.size());
  int64_t weight = 1;
  // The most significant digit needs no modulo: the index is less than the product of the extents.
  size_t first = 0;
  while (first < extents.size() && extents[first] == 1) ++first;
  for (size_t i = extents.size(); i-- > 0;) {
    if (extents[i] == 1) {
      digits[i] = Constant(0);
      continue;
    }
    const Node* rest = Div(index, weight, where);
    digits[i] = i == first ? rest : Mod(rest, extents[i], where);
    weight *= extents[i];
  }
  return digits;
}

const Node* IndexMath::Simplify(const Node* index, const Validity* where) {
  Simplified known;
  return Simplify(index, where, known);
}

// An index made of data may share operands at every level, so each node is simplified once.
const Node* IndexMath::Simplify(const Node* index, const Validity* where, Simplified& known) {
  if (auto found = known.find(index); found != known.end()) return found->second;
  const Node* simplified = SimplifyOnce(index, where, known);
  known.emplace(index, simplified);
  return simplified;
}

const Node* IndexMath::SimplifyOnce(const Node* index, const Validity* where, Simplified& known) {
  auto operand = [&](int i) { return Simplify(index->operand(i), where, known); };
  auto constant = [](const Node* node) { return node->attr<ir::ConstValue>().AsInt(); };
  switch (index->op()) {
    case Op::kConst:
    case Op::kRange:
      return index;
    case Op::kAdd:
      return Add(operand(0), operand(1));
    case Op::kSub:
      return Sub(operand(0), operand(1));
    case Op::kNeg:
      return Mul(operand(0), -1);
    case Op::kMul:
    case Op::kIDiv:
    case Op::kMod: {
      if (index->dtype() != ir::DType::kInt64) break;
      const Node* a = operand(0);
      const Node* b = operand(1);
      if (index->op() == Op::kMul && a->op() == Op::kConst) std::swap(a, b);
      // A product or quotient of two loaded values has no linear form and stays an atom.
      if (b->op() != Op::kConst) return context_.WithOperands(index, {a, b});
      if (index->op() == Op::kMul) return Mul(a, constant(b));
      if (constant(b) < 1) return context_.WithOperands(index, {a, b});
      return index->op() == Op::kIDiv ? Div(a, constant(b), where) : Mod(a, constant(b), where);
    }
    default:
      break;
  }
  return index;
}

Sum IndexMath::ToSum(const Node* index) {
  if (auto known = sums_.find(index); known != sums_.end()) return known->second;
  Sum sum = SumOf(index);
  // A range of extent 1 is always 0.
  std::erase_if(sum.terms, [](const Term& term) {
    return term.atom->op() == Op::kRange && term.atom->attr<ir::RangeAttr>().extent == 1;
  });
  sums_[index] = sum;
  return sum;
}

const Node* IndexMath::ToNode(const Sum& sum) {
  // Largest coefficients first, as in the digits of a number. Ties are broken by structure, not by
  // node ids, so that the order is the same in every context.
  std::vector<Term> terms = sum.terms;
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) {
    const uint64_t x = Magnitude(a.coefficient);
    const uint64_t y = Magnitude(b.coefficient);
    return x != y ? x > y : Compare(a.atom, b.atom) < 0;
  });
  const Node* node = nullptr;
  auto add = [&](const Node* term) {
    node = node == nullptr ? term : context_.Get(Op::kAdd, ir::DType::kInt64, {}, {node, term});
  };
  for (const Term& term : terms) {
    add(term.coefficient == 1 ? term.atom
                              : context_.Get(Op::kMul, ir::DType::kInt64, {},
                                             {term.atom, Constant(term.coefficient)}));
  }
  if (sum.constant != 0 || node == nullptr) add(Constant(sum.constant));
  // Recorded, so that ToSum need not split the new node.
  sums_.try_emplace(node, sum);
  return node;
}

const Node* IndexMath::Atom(Op op, const Sum& operand, int64_t divisor) {
  return context_.Get(op, ir::DType::kInt64, {}, {ToNode(operand), Constant(divisor)});
}

std::optional<IndexMath::Part> IndexMath::DivisiblePart(const Sum& sum, int64_t divisor,
                                                        const Validity* where) {
  for (const Term& term : sum.terms) {
    const int64_t factor = std::gcd(term.coefficient, divisor);
    if (factor == 1) continue;
    Part part{SplitMultiple(sum, factor), factor};
    const Interval small = SumBounds(part.rest, where);
    if (small.low >= 0 && small.high < part.factor) return part;
  }
  return std::nullopt;
}

// If the sum is a single idiv or mod, returns that atom.
static const Node* SingleAtom(const Sum& sum) {
  const bool single = sum.constant == 0 && sum.terms.size() == 1 && sum.terms[0].coefficient == 1;
  return single ? sum.terms[0].atom : nullptr;
}

Sum IndexMath::DivAtom(const Sum& sum, int64_t divisor, const Validity* where) {
  const Node* atom = SingleAtom(sum);
  if (atom != nullptr && atom->op() == Op::kIDiv && Divisor(atom) > 0) {
    // (x / c) / d is x / (c*d) for positive divisors, since division floors.
    int64_t product;
    if (!__builtin_mul_overflow(Divisor(atom), divisor, &product)) {
      return DivSum(ToSum(atom->operand(0)), product, where);
    }
  }
  if (atom != nullptr && atom->op() == Op::kMod && Divisor(atom) > 0 &&
      Divisor(atom) % divisor == 0) {
    // (x % (c*d)) / d is (x / d) % c.
    return ModSum(DivSum(ToSum(atom->operand(0)), divisor, where), Divisor(atom) / divisor, where);
  }
  return Sum{0, {{Atom(Op::kIDiv, sum, divisor), 1}}};
}

Sum IndexMath::ModAtom(const Sum& sum, int64_t divisor, const Validity* where) {
  const Node* atom = SingleAtom(sum);
  if (atom != nullptr && atom->op() == Op::kMod && Divisor(atom) > 0 &&
      Divisor(atom) % divisor == 0) {
    // (x % (c*d)) % d is x % d.
    return ModSum(ToSum(atom->operand(0)), divisor, where);
  }
  return Sum{0, {{Atom(Op::kMod, sum, divisor), 1}}};
}

Sum IndexMath::DivSum(const Sum& sum, int64_t divisor, const Validity* where) {
  if (divisor == 1) return sum;
  // (c*a + b) / c is a + b/c only if the sum cannot wrap.
  if (!IsExact(sum, where)) return DivAtom(sum, divisor, where);
  auto [quotient, rest] = SplitMultiple(sum, divisor);
  const Interval bounds = SumBounds(rest, where);
  const int64_t block = FloorDiv(bounds.low, divisor);
  if (IsKnown(bounds) && block == FloorDiv(bounds.high, divisor)) {
    // The rest stays within one block of `divisor` numbers, so its quotient is a constant.
    quotient.constant += block;
    return quotient;
  }
  if (const auto part = DivisiblePart(rest, divisor, where)) {
    // (f*m + r) / (f*d) is m / d for 0 <= r < f.
    return AddScaled(quotient, DivSum(part->multiple, divisor / part->factor, where), 1);
  }
  return AddScaled(quotient, DivAtom(rest, divisor, where), 1);
}

Sum IndexMath::ModSum(const Sum& sum, int64_t divisor, const Validity* where) {
  if (divisor == 1) return Sum{};
  if (!IsExact(sum, where)) return ModAtom(sum, divisor, where);
  auto [quotient, rest] = SplitMultiple(sum, divisor);
  const Interval bounds = SumBounds(rest, where);
  const int64_t block = FloorDiv(bounds.low, divisor);
  if (IsKnown(bounds) && block == FloorDiv(bounds.high, divisor)) {
    rest.constant -= block * divisor;
    return rest;
  }
  if (const auto part = DivisiblePart(rest, divisor, where)) {
    // (f*m + r) % (f*d) is f * (m % d) + r for 0 <= r < f.
    return AddScaled(part->rest, ModSum(part->multiple, divisor / part->factor, where),
                     part->factor);
  }
  return ModAtom(rest, divisor, where);
}

namespace {

// (base / stride) % extent; extent 0 means no modulo.
struct BaseDigit {
  const Node* base = nullptr;
  int64_t stride = 1;
  int64_t extent = 0;
};

BaseDigit AsDigit(const Node* atom) {
  BaseDigit digit{atom, 1, 0};
  if (atom->op() == Op::kMod && Divisor(atom) > 0) {
    digit.extent = Divisor(atom);
    digit.base = atom->operand(0);
  }
  if (digit.base->op() == Op::kIDiv && Divisor(digit.base) > 0) {
    digit.stride = Divisor(digit.base);
    digit.base = digit.base->operand(0);
  }
  return digit;
}

}  // namespace

// Joins adjacent digits of one number: (e/b)%m * c*b + e%b * c is c * (e % (b*m)).
void IndexMath::CombineDigits(Sum& sum) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Term low_term = sum.terms[i];
    const BaseDigit low = AsDigit(low_term.atom);
    // Without a modulo there are no higher digits.
    if (low.extent == 0) continue;
    for (size_t j = 0; j < sum.terms.size(); ++j) {
      const Term high_term = sum.terms[j];
      if (i == j || high_term.coefficient != WrappingMul(low_term.coefficient, low.extent)) {
        continue;
      }
      const BaseDigit high = AsDigit(high_term.atom);
      int64_t stride;
      int64_t extent = 0;
      const bool same_base =
          high.base == low.base && !__builtin_mul_overflow(low.stride, low.extent, &stride) &&
          high.stride == stride && !__builtin_mul_overflow(low.extent, high.extent, &extent);
      if (!same_base) continue;
      Sum joined = DivSum(ToSum(low.base), low.stride, nullptr);
      if (high.extent != 0) joined = ModSum(joined, extent, nullptr);
      sum = AddScaled(sum, Sum{0, {low_term, high_term}}, -1, /*unordered=*/true);
      sum = AddScaled(sum, joined, low_term.coefficient);
      return CombineDigits(sum);
    }
  }
}

}  // namespace kiln::kernel
