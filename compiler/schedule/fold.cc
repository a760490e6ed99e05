#include "compiler/schedule/fold.h"

#include <algorithm>
#include <utility>

#include "compiler/schedule/linear.h"

namespace kiln::schedule {
namespace {

using ir::ConstValue;
using ir::DType;
using ir::Node;
using ir::Op;

int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

uint64_t Unsigned(int64_t value) { return static_cast<uint64_t>(value); }
int64_t Wrap(uint64_t value) { return static_cast<int64_t>(value); }

// False where the op is not folded.
bool Evaluate(Op op, int64_t a, int64_t b, int64_t* result) {
  switch (op) {
    case Op::kAdd:
      *result = Wrap(Unsigned(a) + Unsigned(b));
      return true;
    case Op::kSub:
      *result = Wrap(Unsigned(a) - Unsigned(b));
      return true;
    case Op::kMul:
      *result = Wrap(Unsigned(a) * Unsigned(b));
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
    case Op::kIDiv:
      if (b <= 0) return false;
      *result = FloorDivide(a, b);
      return true;
    case Op::kMod:
      if (b <= 0) return false;
      *result = a - FloorDivide(a, b) * b;
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

// An operand that is the result, or null.
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

// Conditions over ranges that are always true or false within their bounds.
bool DecideLess(const Node* a, const Node* b, bool* result) {
  const Interval x = BoundsOf(a);
  const Interval y = BoundsOf(b);
  if (x.high < y.low) {
    *result = true;
    return true;
  }
  if (x.low >= y.high) {
    *result = false;
    return true;
  }
  return false;
}

}  // namespace

bool IsConstant(const Node* node, int64_t* value) {
  if (node->op() != Op::kConst || ir::IsFloat(node->dtype())) return false;
  *value = node->attr<ConstValue>().AsInt();
  return true;
}

const Node* Folder::Int(int64_t value) {
  return context_.Get(Op::kConst, DType::kInt64, {}, {}, ConstValue::Int(value));
}
const Node* Folder::Bool(bool value) {
  return context_.Get(Op::kConst, DType::kBool, {}, {}, ConstValue::Int(value ? 1 : 0));
}
const Node* Folder::Range(int64_t id, int64_t extent) {
  return context_.Get(Op::kRange, DType::kInt64, {}, {}, ir::RangeAttr{id, extent});
}

const Node* Folder::Add(const Node* a, const Node* b) {
  int64_t x, y;
  if (IsConstant(a, &x) && IsConstant(b, &y)) return Int(Wrap(Unsigned(x) + Unsigned(y)));
  if (const Node* same = Identity(Op::kAdd, a, b)) return same;
  return context_.Get(Op::kAdd, DType::kInt64, {}, {a, b});
}

const Node* Folder::Mul(const Node* a, int64_t factor) {
  int64_t x;
  if (IsConstant(a, &x)) return Int(Wrap(Unsigned(x) * Unsigned(factor)));
  if (factor == 0) return Int(0);
  if (factor == 1) return a;
  return context_.Get(Op::kMul, DType::kInt64, {}, {a, Int(factor)});
}

const Node* Folder::Less(const Node* a, const Node* b) {
  bool known;
  if (DecideLess(a, b, &known)) return Bool(known);
  return context_.Get(Op::kCmpLt, DType::kBool, {}, {a, b});
}

const Node* Folder::Equal(const Node* a, const Node* b) {
  int64_t x, y;
  if (IsConstant(a, &x) && IsConstant(b, &y)) return Bool(x == y);
  return context_.Get(Op::kCmpEq, DType::kBool, {}, {a, b});
}

const Node* Folder::And(const Node* a, const Node* b) {
  int64_t value;
  if (a == nullptr || (IsConstant(a, &value) && value != 0)) return b;
  if (b == nullptr || (IsConstant(b, &value) && value != 0)) return a;
  if (IsZero(a) || a == b) return a;
  if (IsZero(b)) return b;
  return context_.Get(Op::kAnd, DType::kBool, {}, {a, b});
}

const Node* Folder::Where(const Node* condition, const Node* a, const Node* b) {
  int64_t value;
  if (IsConstant(condition, &value)) return value != 0 ? a : b;
  if (a == b) return a;
  return context_.Get(Op::kWhere, a->dtype(), {}, {condition, a, b});
}

const Node* Folder::Load(DType dtype, int buffer, const Node* index, const Node* valid) {
  std::vector<const Node*> operands = {index};
  int64_t value;
  if (valid != nullptr && !(IsConstant(valid, &value) && value != 0)) operands.push_back(valid);
  return context_.Get(Op::kLoad, dtype, {}, std::move(operands), ir::IntAttr{buffer});
}

const Node* Folder::FromLinear(const Linear& linear) {
  const Node* sum = Int(linear.constant);
  for (const auto& [atom, coefficient] : linear.terms) sum = Add(sum, Mul(atom, coefficient));
  return sum;
}

// (c*a + b) // c = a + b // c, and (c*a + b) % c = b % c; b // c is 0 and b % c is b where 0 <= b <
// c. Null where nothing changes.
const Node* Folder::Divide(Op op, const Node* dividend, const Node* divisor) {
  int64_t c;
  if (!IsConstant(divisor, &c) || c < 1) return nullptr;
  // A sum that may wrap cannot be taken apart.
  if (BoundsOf(dividend) == Interval{}) return nullptr;
  const Linear linear = Linearise(dividend);
  Linear quotient, rest;
  quotient.constant = FloorDivide(linear.constant, c);
  rest.constant = linear.constant - quotient.constant * c;
  for (const auto& [atom, coefficient] : linear.terms) {
    if (coefficient % c == 0) {
      quotient.terms.emplace_back(atom, coefficient / c);
    } else {
      rest.terms.emplace_back(atom, coefficient);
    }
  }
  const Node* left = FromLinear(rest);
  const Interval bounds = BoundsOf(left);
  if (bounds.low >= 0 && bounds.high < c) {
    return op == Op::kMod ? left : FromLinear(quotient);
  }
  if (quotient.terms.empty() && quotient.constant == 0) return nullptr;
  const Node* divided = context_.Get(op, ir::DType::kInt64, {}, {left, divisor});
  return op == Op::kMod ? divided : Add(FromLinear(quotient), divided);
}

const Node* Folder::Make(const Node* like, std::vector<const Node*> operands) {
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

const Node* Folder::Substitute(const Node* root, Map* memo) {
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

}  // namespace kiln::schedule
