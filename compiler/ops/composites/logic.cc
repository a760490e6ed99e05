// Comparisons and tests built from cmplt, cmpeq and cmpne.
#include <limits>

#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

Expansion ExpandGreater(Builder& b, Operands x, const Attributes&) { return b.Less(x[1], x[0]); }

// Not the negation of greater: with NaN both are false.
Expansion ExpandLessEqual(Builder& b, Operands x, const Attributes&) {
  // Without NaN, one comparison is enough.
  if (!ir::IsFloat(x[0]->dtype())) return b.Not(b.Less(x[1], x[0]));
  return b.Binary(Op::kOr, b.Less(x[0], x[1]), b.Equal(x[0], x[1]));
}
Expansion ExpandGreaterEqual(Builder& b, Operands x, const Attributes& attributes) {
  return ExpandLessEqual(b, {x[1], x[0]}, attributes);
}

const Node* Truth(Builder& b, const Node* x) { return b.Cast(x, DType::kBool); }

Expansion ExpandLogicalNot(Builder& b, Operands x, const Attributes&) {
  return b.Not(Truth(b, x[0]));
}
Expansion ExpandLogicalAnd(Builder& b, Operands x, const Attributes&) {
  return b.Binary(Op::kAnd, Truth(b, x[0]), Truth(b, x[1]));
}
Expansion ExpandLogicalOr(Builder& b, Operands x, const Attributes&) {
  return b.Binary(Op::kOr, Truth(b, x[0]), Truth(b, x[1]));
}

Expansion ExpandLogicalXor(Builder& b, Operands x, const Attributes&) {
  return b.Binary(Op::kXor, Truth(b, x[0]), Truth(b, x[1]));
}

Expansion ExpandIsNan(Builder& b, Operands x, const Attributes&) { return IsNan(b, x[0]); }

const Node* IsInfinite(Builder& b, const Node* x) {
  return b.Equal(Abs(b, x), b.Const(x->dtype(), std::numeric_limits<double>::infinity()));
}
Expansion ExpandIsInf(Builder& b, Operands x, const Attributes&) { return IsInfinite(b, x[0]); }

Expansion ExpandIsFinite(Builder& b, Operands x, const Attributes&) {
  return b.Less(Abs(b, x[0]), b.Const(x[0]->dtype(), std::numeric_limits<double>::infinity()));
}

OpDef Comparison(std::string_view name, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"a", "b"}, DTypeRule::kBool, DTypeClass::kAny, expand, doc);
  row.shape_rule = kBroadcastShape;
  return row;
}

OpDef Test(std::string_view name, DTypeClass operand_class, ExpandFn expand, std::string_view doc) {
  return Composite(name, {"x"}, DTypeRule::kBool, operand_class, expand, doc);
}

}  // namespace

std::vector<OpDef> LogicComposites() {
  return {
      Comparison("greater", ExpandGreater, "a > b"),
      Comparison("greater_equal", ExpandGreaterEqual, "a >= b"),
      Comparison("less_equal", ExpandLessEqual, "a <= b"),
      Comparison("logical_and", ExpandLogicalAnd, "Whether neither a nor b is 0"),
      Comparison("logical_or", ExpandLogicalOr, "Whether a or b is not 0"),
      Comparison("logical_xor", ExpandLogicalXor, "Whether one of a and b is 0 and the other not"),
      Test("logical_not", DTypeClass::kAny, ExpandLogicalNot, "Whether x is 0"),
      Test("isnan", DTypeClass::kFloat, ExpandIsNan, "Whether x is NaN"),
      Test("isinf", DTypeClass::kFloat, ExpandIsInf, "Whether x is inf or -inf"),
      Test("isfinite", DTypeClass::kFloat, ExpandIsFinite, "Whether x is neither inf nor NaN"),
  };
}

}  // namespace kiln::ops
