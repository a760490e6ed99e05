// Padding with values other than zeros. The border is a view of x, so the gradient needs no
// scatter.
#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

Expansion ExpandConstant(Builder& b, Operands operands, const Attributes& attributes) {
  const Node* x = operands[0];
  const std::vector<int64_t>& padding = IntsOf(attributes, "padding");
  const AttributeValue& given = attributes.at("value");
  const Node* value = nullptr;
  if (const double* number = std::get_if<double>(&given)) {
    value = b.Const(x->dtype(), *number);
  } else if (const int64_t* integer = std::get_if<int64_t>(&given)) {
    value = b.ConstInt(x->dtype(), *integer);
  } else {
    value = b.ConstInt(x->dtype(), std::get<bool>(given) ? 1 : 0);
  }
  // Pad fills in zeros; a mask padded in the same way shows where the value belongs.
  const Node* padded = b.Pad(x, padding);
  if (padded == x) return x;
  return b.Where(b.Pad(b.Full(DType::kBool, x->shape(), 1), padding), padded, value);
}

// The two borders of one dimension.
struct Ends {
  const Node* before;  // null if empty
  const Node* after;
};
struct Amounts {
  int64_t axis, before, after;
};
using EndsFn = Ends (*)(Builder&, const Node* x, Amounts amounts);

Ends Reflected(Builder& b, const Node* x, Amounts a) {
  const int64_t length = x->shape()[a.axis];
  Ends ends = {nullptr, nullptr};
  // The mirror is at the edge element, which is not repeated.
  if (a.before > 0) ends.before = b.Flip(b.Slice(x, a.axis, 1, a.before + 1), {a.axis});
  if (a.after > 0) {
    ends.after = b.Flip(b.Slice(x, a.axis, length - 1 - a.after, length - 1), {a.axis});
  }
  return ends;
}

Ends Replicated(Builder& b, const Node* x, Amounts a) {
  const int64_t length = x->shape()[a.axis];
  const auto edge = [&](int64_t place, int64_t times) -> const Node* {
    if (times == 0) return nullptr;
    Shape shape = x->shape();
    shape[a.axis] = times;
    return b.Expand(b.Slice(x, a.axis, place, place + 1), shape);
  };
  return {edge(0, a.before), edge(length - 1, a.after)};
}

Ends WrappedEnds(Builder& b, const Node* x, Amounts a) {
  const int64_t length = x->shape()[a.axis];
  Ends ends = {nullptr, nullptr};
  if (a.before > 0) ends.before = b.Slice(x, a.axis, length - a.before, length);
  if (a.after > 0) ends.after = b.Slice(x, a.axis, 0, a.after);
  return ends;
}

Expansion ExpandBorder(Builder& b, const Node* x, const Attributes& attributes, EndsFn ends_of) {
  const std::vector<int64_t>& padding = IntsOf(attributes, "padding");
  // Each dimension pads the result of the dimensions before it, which fills the corners.
  for (size_t i = 0; i < x->shape().size(); ++i) {
    const Amounts amounts = {static_cast<int64_t>(i), padding[2 * i], padding[2 * i + 1]};
    if (amounts.before == 0 && amounts.after == 0) continue;
    const Ends ends = ends_of(b, x, amounts);
    std::vector<const Node*> parts;
    for (const Node* part : {ends.before, x, ends.after})
      if (part != nullptr) parts.push_back(part);
    x = b.Concat(parts, amounts.axis);
  }
  return x;
}

Expansion ExpandReflect(Builder& b, Operands x, const Attributes& attributes) {
  return ExpandBorder(b, x[0], attributes, Reflected);
}
Expansion ExpandReplicate(Builder& b, Operands x, const Attributes& attributes) {
  return ExpandBorder(b, x[0], attributes, Replicated);
}
Expansion ExpandCircular(Builder& b, Operands x, const Attributes& attributes) {
  return ExpandBorder(b, x[0], attributes, WrappedEnds);
}

OpDef Border(std::string_view name, std::vector<Rule> constraints, ExpandFn expand,
             std::string_view doc) {
  OpDef row = Composite(name, {"x"}, DTypeRule::kSame, DTypeClass::kAny, expand, doc);
  row.attributes = {RequiredInts("padding")};
  row.shape_rule = kPadShape;
  row.constraints = std::move(constraints);
  return row;
}

constexpr Rule kReflectPaddingRule = {"reflect_padding", "x", R"rule(
  padding = attributes["padding"]
  check not (surely_more(padding[i], 0) and surely_more(padding[i], x[i // 2] - 1))
      for i in range(2 * len(x)):
    "a padding of {padding[i - i % 2]} and {padding[i - i % 2 + 1]} around dimension {i // 2} of "
    "size {x[i // 2]}; at most {max(largest(x[i // 2] - 1), 0)} is there to repeat"
)rule"};

constexpr Rule kCircularPaddingRule = {"circular_padding", "x", R"rule(
  padding = attributes["padding"]
  check not (surely_more(padding[i], 0) and surely_more(padding[i], x[i // 2]))
      for i in range(2 * len(x)):
    "a padding of {padding[i - i % 2]} and {padding[i - i % 2 + 1]} around dimension {i // 2} of "
    "size {x[i // 2]}; at most {max(largest(x[i // 2]), 0)} is there to repeat"
)rule"};

constexpr Rule kReplicatePaddingRule = {"replicate_padding", "x", R"rule(
  padding = attributes["padding"]
  check x[i // 2] != 0 or not surely_more(padding[i], 0) for i in range(2 * len(x)):
    "a padding of {padding[i - i % 2]} and {padding[i - i % 2 + 1]} around dimension {i // 2} of "
    "size 0; at most 0 is there to repeat"
)rule"};

}  // namespace

std::vector<OpDef> BorderComposites() {
  OpDef constant = Border("pad_constant", {}, ExpandConstant,
                          "A value around x: padding is before and after for each dimension");
  constant.attributes.push_back({"value", AttributeDef::Type::kNumber, 0.0});
  return {
      std::move(constant),
      Border("pad_reflect", {kReflectPaddingRule}, ExpandReflect,
             "x mirrored at its first and last elements, which are not repeated"),
      Border("pad_replicate", {kReplicatePaddingRule}, ExpandReplicate,
             "x's first and last elements repeated"),
      Border("pad_circular", {kCircularPaddingRule}, ExpandCircular,
             "x's other end before and after it"),
  };
}

}  // namespace kiln::ops
