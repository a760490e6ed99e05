#include "compiler/kernel/expression_folder.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace kiln::kernel {
namespace {

using ir::ConstValue;
using ir::DType;
using ir::Node;
using ir::Op;

// Returns false if the op is not folded.
bool Evaluate(Op op, int64_t a, int64_t b, int64_t* result) {
  switch (op) {
    case Op::kAdd:
      *result = WrappingAdd(a, b);
      return true;
    case Op::kSub:
      *result = WrappingAdd(a, WrappingMul(b, -1));
      return true;
    case Op::kMul:
      *result = WrappingMul(a, b);
      return true;
    case Op::kMin:
      *result = std::min(a, b);
      return true;
    case Op::kMax:
      *result = std::max(a, b);
      return true;
    case Op::kCmpLt:
      *result = a < b;
      return true;
    case Op::kCmpEq:
      *result = a == b;
      return true;
    case Op::kCmpNe:
      *result = a != b;
      return true;
    // Division by zero or by a negative number is left to the op.
    case Op::kIDiv:
      if (b <= 0) return false;
      *result = FloorDiv(a, b);
      return true;
    case Op::kMod:
      if (b <= 0) return false;
      *result = a - FloorDiv(a, b) * b;
      return true;
    default:
      return false;
  }
}

bool IsZero(const Node* node) {
  int64_t value;
  return IsConstant(node, &value) && value == 0;
}
bool IsOne(const Node* node) {
  int64_t value;
  return IsConstant(node, &value) && value == 1;
}

// Returns an operand that equals the result, or null. For integers only: a float times 0 may be NaN
// or -0.
const Node* Identity(Op op, const Node* a, const Node* b) {
  switch (op) {
    case Op::kAdd:
      if (IsZero(a)) return b;
      return IsZero(b) ? a : nullptr;
    case Op::kSub:
    case Op::kShl:
    case Op::kShr:
      return IsZero(b) ? a : nullptr;
    case Op::kMul:
      if (IsOne(a) || IsZero(b)) return b;
      return IsOne(b) || IsZero(a) ? a : nullptr;
    case Op::kIDiv:
      return IsOne(b) ? a : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

bool IsConstant(const Node* node, int64_t* value) {
  if (node->op() != Op::kConst || ir::IsFloat(node->dtype())) return false;
  *value = node->attr<ConstValue>().AsInt();
  return true;
}

const Node* ExpressionFolder::Int(int64_t value) {
  return context_.Get(Op::kConst, DType::kInt64, {}, {}, ConstValue::Int(value));
}
const Node* ExpressionFolder::Bool(bool value) {
  return context_.Get(Op::kConst, DType::kBool, {}, {}, ConstValue::Int(value ? 1 : 0));
}
const Node* ExpressionFolder::Range(int64_t id, int64_t extent) {
  return context_.Get(Op::kRange, DType::kInt64, {}, {}, ir::RangeAttr{id, extent});
}

const Node* ExpressionFolder::Add(const Node* a, const Node* b) {
  int64_t x, y;
  if (IsConstant(a, &x) && IsConstant(b, &y)) return Int(WrappingAdd(x, y));
  if (const Node* same = Identity(Op::kAdd, a, b)) return same;
  return context_.Get(Op::kAdd, DType::kInt64, {}, {a, b});
}

const Node* ExpressionFolder::Mul(const Node* a, int64_t factor) {
  int64_t x;
  if (IsConstant(a, &x)) return Int(WrappingMul(x, factor));
  if (factor == 0) return Int(0);
  if (factor == 1) return a;
  return context_.Get(Op::kMul, DType::kInt64, {}, {a, Int(factor)});
}

const Node* ExpressionFolder::Quotient(const Node* a, int64_t divisor) {
  int64_t x;
  if (IsConstant(a, &x)) return Int(FloorDiv(x, divisor));
  if (divisor == 1) return a;
  if (const Node* divided = Divide(Op::kIDiv, a, Int(divisor))) return divided;
  return context_.Get(Op::kIDiv, DType::kInt64, {}, {a, Int(divisor)});
}

std::optional<bool> ExpressionFolder::DecideLess(const Node* a, const Node* b) {
  const Interval x = bounds_.Of(a);
  const Interval y = bounds_.Of(b);
  // An end at or beyond kUnbounded is unknown, so it must not be compared.
  if (IsSmall(x.high) && IsSmall(y.low) && x.high < y.low) return true;
  if (IsSmall(x.low) && IsSmall(y.high) && x.low >= y.high) return false;
  return std::nullopt;
}

const Node* ExpressionFolder::Less(const Node* a, const Node* b) {
  if (const std::optional<bool> known = DecideLess(a, b)) return Bool(*known);
  return context_.Get(Op::kCmpLt, DType::kBool, {}, {a, b});
}

const Node* ExpressionFolder::Equal(const Node* a, const Node* b) {
  int64_t x, y;
  if (IsConstant(a, &x) && IsConstant(b, &y)) return Bool(x == y);
  return context_.Get(Op::kCmpEq, DType::kBool, {}, {a, b});
}

const Node* ExpressionFolder::And(const Node* a, const Node* b) {
  int64_t value;
  if (a == nullptr || (IsConstant(a, &value) && value != 0)) return b;
  if (b == nullptr || (IsConstant(b, &value) && value != 0)) return a;
  if (IsZero(a) || a == b) return a;
  if (IsZero(b)) return b;
  return context_.Get(Op::kAnd, DType::kBool, {}, {a, b});
}

const Node* ExpressionFolder::Where(const Node* condition, const Node* a, const Node* b) {
  int64_t value;
  if (IsConstant(condition, &value)) return value != 0 ? a : b;
  if (a == b) return a;
  return context_.Get(Op::kWhere, a->dtype(), {}, {condition, a, b});
}

const Node* ExpressionFolder::Load(DType dtype, int buffer, const Node* index, const Node* valid) {
  std::vector<const Node*> operands = {index};
  int64_t value;
  if (valid != nullptr && !(IsConstant(valid, &value) && value != 0)) operands.push_back(valid);
  return context_.Get(Op::kLoad, dtype, {}, std::move(operands), ir::IntAttr{buffer});
}

const Node* ExpressionFolder::FromSum(const Sum& sum) {
  const Node* node = Int(sum.constant);
  for (const auto& [atom, coefficient] : sum.terms) node = Add(node, Mul(atom, coefficient));
  return node;
}

// Returns multiple and rest with sum = multiple * factor + rest, for a factor of the divisor such
// that the rest is provably in [0, factor). Nothing if there is none.
std::optional<std::pair<int64_t, Division>> ExpressionFolder::LowDigit(const Sum& sum,
                                                                       int64_t divisor) {
  for (const auto& [atom, coefficient] : sum.terms) {
    const int64_t factor = std::gcd(coefficient, divisor);
    if (factor == 1) continue;
    Division parts = SplitMultiple(sum, factor);
    const Interval low = bounds_.Of(parts.rest);
    if (IsKnown(low) && low.low >= 0 && low.high < factor) return {{factor, std::move(parts)}};
  }
  return std::nullopt;
}

// (c*a + b) // c = a + b // c, and (c*a + b) % c = b % c; for 0 <= b < c, b // c is 0 and b % c is
// b. If b has a low digit, as the lanes of a split loop are: for 0 <= r < f, (f*m + r) // (f*d) is
// m // d, and (f*m + r) % (f*d) is f * (m % d) + r. Returns null if nothing changes.
const Node* ExpressionFolder::Divide(Op op, const Node* dividend, const Node* divisor) {
  int64_t c;
  if (!IsConstant(divisor, &c) || c < 1) return nullptr;
  // A sum that may wrap cannot be split.
  const Sum sum = SumOf(dividend);
  if (!IsKnown(bounds_.Of(sum))) return nullptr;
  const auto [multiple, rest] = SplitMultiple(sum, c);
  const Interval bounds = bounds_.Of(rest);
  if (IsKnown(bounds) && bounds.low >= 0 && bounds.high < c) {
    return FromSum(op == Op::kMod ? rest : multiple);
  }
  const auto digit = LowDigit(rest, c);
  if (multiple.terms.empty() && multiple.constant == 0 && !digit.has_value()) return nullptr;
  if (!digit.has_value()) {
    const Node* divided = context_.Get(op, ir::DType::kInt64, {}, {FromSum(rest), divisor});
    return op == Op::kMod ? divided : Add(FromSum(multiple), divided);
  }
  const auto& [factor, parts] = *digit;
  const Node* high = FromSum(parts.multiple);
  const Node* smaller = Int(c / factor);
  const Node* divided = Divide(op, high, smaller);
  if (divided == nullptr) divided = context_.Get(op, ir::DType::kInt64, {}, {high, smaller});
  if (op == Op::kIDiv) return Add(FromSum(multiple), divided);
  return Add(Mul(divided, factor), FromSum(parts.rest));
}

const Node* ExpressionFolder::Make(const Node* like, std::vector<const Node*> operands) {
  const Op op = like->op();
  if (op == Op::kAnd && like->dtype() == DType::kBool) {
    return And(operands[0], operands[1]);
  }
  if (op == Op::kWhere) return Where(operands[0], operands[1], operands[2]);
  if (op == Op::kLoad && operands.size() == 2) {
    return Load(like->dtype(), static_cast<int>(like->attr<ir::IntAttr>().value), operands[0],
                operands[1]);
  }
  if (operands.size() == 2 && operands[0]->dtype() == DType::kInt64) {
    int64_t a, b, result;
    // The operands determine whether this is index arithmetic: a comparison of indices is a bool.
    if (IsConstant(operands[0], &a) && IsConstant(operands[1], &b) && Evaluate(op, a, b, &result)) {
      return like->dtype() == DType::kBool ? Bool(result != 0) : Int(result);
    }
    if (op == Op::kCmpLt) return Less(operands[0], operands[1]);
    if (op == Op::kIDiv || op == Op::kMod) {
      if (const Node* divided = Divide(op, operands[0], operands[1])) return divided;
    }
    if (like->dtype() == DType::kInt64) {
      if (const Node* same = Identity(op, operands[0], operands[1])) return same;
    }
  }
  return context_.WithOperands(like, std::move(operands));
}

const Node* ExpressionFolder::Substitute(const Node* root, Map* memo) {
  if (root == nullptr) return nullptr;
  if (auto found = memo->find(root); found != memo->end()) return found->second;
  std::vector<const Node*> operands;
  operands.reserve(root->operands().size());
  bool changed = false;
  for (const Node* operand : root->operands()) {
    operands.push_back(Substitute(operand, memo));
    changed |= operands.back() != operand;
  }
  const Node* result = changed ? Make(root, std::move(operands)) : root;
  memo->emplace(root, result);
  return result;
}

}  // namespace kiln::kernel
