// Dropout, with random bits that are a function of a key.
#include <cmath>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

// Drops an element where random_uniform with the same key would be below p.
Expansion ExpandDropout(Builder& b, Operands x, const Attributes& attributes) {
  const double p = FloatOf(attributes, "p");
  Shape shape = x[0]->shape();
  for (const int64_t axis : IntsOf(attributes, "shared_axes")) {
    shape[NormalizeAxis(axis, shape.size()).value()] = 1;
  }
  const auto bits = FindOp("random_bits")->expand(b, {x[1]}, {{"shape", shape}});
  if (!bits.ok()) return bits;
  const Node* number = b.Binary(Op::kShr, *bits, b.ConstInt(DType::kUInt32, 8));
  const auto limit = static_cast<int64_t>(std::ceil(p * (1 << 24)));
  const Node* goes = b.Less(number, b.ConstInt(DType::kUInt32, limit));
  // For p = 1 every element is dropped, and an infinite factor would make the gradient NaN.
  const Node* scaled = b.Mul(x[0], p < 1 ? 1 / (1 - p) : 0);
  return b.Where(goes, b.Const(x[0]->dtype(), 0), scaled);
}

constexpr Rule kSharedAxesRule = {"shared_axes", "x",
                                  R"rule(check_axes(attributes["shared_axes"], len(x)))rule"};

}  // namespace

std::vector<OpDef> DropoutComposites() {
  OpDef row =
      Composite("dropout", {"x", "key"}, DTypeRule::kSame, DTypeClass::kFloat, ExpandDropout,
                "x over 1 - p, and 0 with probability p, by random_bits of the key; all "
                "elements along shared_axes go together (Srivastava et al., 2014)");
  row.attributes = {Fraction(OptionalFloat("p", 0.5)), OptionalInts("shared_axes", {})};
  row.special_operand = 1;
  row.special_class = DTypeClass::kUInt32;
  row.constraints = {kSharedAxesRule, kKeyRule};
  return {std::move(row)};
}

}  // namespace kiln::ops
