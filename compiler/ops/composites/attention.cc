// Attention, and rotary position embeddings for it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/promote.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Shape;

const Node* Lowest(Builder& b, const Node* scores) {
  return b.Const(scores->dtype(), -std::numeric_limits<double>::infinity());
}

// Returns whether column <= row.
const Node* CausalMask(Builder& b, int64_t rows, int64_t columns) {
  const Node* row = b.Iota(DType::kInt32, {rows, 1}, 0);
  const Node* column = b.Iota(DType::kInt32, {1, columns}, 1);
  return b.Not(b.Less(row, column));
}

// A softmax that is 0, with gradient 0, in rows that contain only -inf.
const Node* MaskedSoftmax(Builder& b, const Node* scores) {
  // The subtracted maximum cancels in the quotient, so it has no gradient. In a row of only -inf,
  // -inf - -inf would be NaN.
  const Node* largest = b.Detach(b.Max(scores, {-1}, true));
  const Node* zero = b.Const(scores->dtype(), 0);
  const Node* shift = b.Where(b.Equal(largest, Lowest(b, scores)), zero, largest);
  const Node* exponentials = b.Exp(b.Sub(scores, shift));
  const Node* sum = b.Sum(exponentials, {-1}, true);
  // Such a row sums to 0, and 0 / 0 would be NaN.
  const Node* divisor = b.Where(b.Equal(sum, zero), b.Const(scores->dtype(), 1), sum);
  return b.Mul(exponentials, b.Reciprocal(divisor));
}

// Returns (…, heads, rows, columns) as (…, outer, inner, rows, columns).
const Node* SplitHeads(Builder& b, const Node* x, int64_t outer, int64_t inner) {
  Shape shape = x->shape();
  shape[shape.size() - 3] = outer;
  shape.insert(shape.end() - 2, inner);
  return b.Reshape(x, shape);
}

struct Parts {
  const Node* query;
  const Node* key;
  const Node* value;
  const Node* mask;  // null if there is none
};

// Query heads that share a key head become an additional dimension, along which key and value are
// broadcast.
Parts Grouped(Builder& b, const Parts& parts) {
  const Shape& query = parts.query->shape();
  const Shape& key = parts.key->shape();
  const int64_t heads = key[key.size() - 3];
  const int64_t group = query[query.size() - 3] / std::max<int64_t>(heads, 1);
  const Node* mask = parts.mask;
  if (mask != nullptr && mask->shape().size() > 2) {
    const bool one = mask->shape()[mask->shape().size() - 3] == 1;
    mask = SplitHeads(b, mask, one ? 1 : heads, one ? 1 : group);
  }
  return {SplitHeads(b, parts.query, heads, group), SplitHeads(b, parts.key, heads, 1),
          SplitHeads(b, parts.value, heads, 1), mask};
}

const Node* Masked(Builder& b, const Node* scores, const Node* mask) {
  if (mask->dtype() == DType::kBool) return b.Where(mask, scores, Lowest(b, scores));
  return b.Add(scores, b.Cast(mask, scores->dtype()));
}

const Node* InFloat32(Builder& b, const Node* x) {
  return ir::IsShortFloat(x->dtype()) ? b.Cast(x, DType::kFloat32) : x;
}

// Returns the short float in which matrix units can take all factors, or kInvalid.
DType FactorType(Operands x) {
  const DType dtype = x[0]->dtype();
  const bool all = x[1]->dtype() == dtype && x[2]->dtype() == dtype;
  const bool fits = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  return all && fits ? dtype : DType::kInvalid;
}

// Returns x, whose gradient is rounded to the dtype: it is a factor of the gradients of what made
// x.
const Node* WithRoundedGradient(Builder& b, const Node* x, DType dtype) {
  const Node* rounded = b.Cast(b.Cast(x, dtype), x->dtype());
  return b.WithDerivative(b.Detach(x), rounded, b.Const(x->dtype(), 1));
}

// Scores and the softmax are float32. If query, key and value have one short float, the other
// factors of sums (the weights, and gradients of the scores) are rounded to it, as PyTorch does.
Expansion ExpandAttention(Builder& b, Operands x, const Attributes& attributes) {
  const DType factors = FactorType(x);
  Parts parts = {InFloat32(b, x[0]), InFloat32(b, x[1]), InFloat32(b, x[2]),
                 x.size() == 4 ? InFloat32(b, x[3]) : nullptr};
  const bool grouped = BoolOf(attributes, "grouped");
  if (grouped) parts = Grouped(b, parts);
  const double given = FloatOf(attributes, "scale");
  const double scale =
      given != 0 ? given : 1 / std::sqrt(static_cast<double>(x[0]->shape().back()));
  const Node* products = MatmulTransposed(b, parts.query, parts.key);
  if (factors != DType::kInvalid) products = WithRoundedGradient(b, products, factors);
  const Node* scores = b.Mul(products, scale);
  if (BoolOf(attributes, "causal")) {
    const Shape& shape = scores->shape();
    scores =
        b.Where(CausalMask(b, shape[shape.size() - 2], shape.back()), scores, Lowest(b, scores));
  }
  if (parts.mask != nullptr) scores = Masked(b, scores, parts.mask);
  // Without a mask no row is fully masked.
  const auto last = static_cast<int64_t>(scores->shape().size()) - 1;
  const Node* weights = parts.mask != nullptr ? MaskedSoftmax(b, scores) : Softmax(b, scores, last);
  if (factors != DType::kInvalid) weights = b.Cast(b.Cast(weights, factors), weights->dtype());
  const Node* result = MatmulTransposed(b, weights, b.Transpose(parts.value, -1, -2));
  if (!grouped) return result;
  Shape shape = result->shape();
  shape[shape.size() - 4] *= shape[shape.size() - 3];
  shape.erase(shape.end() - 3);
  return b.Reshape(result, shape);
}

// Makes each pair a dimension of 2, at `pair_axis` from the end: out = x cos + (-x₁, x₀) sin.
const Node* Rotate(Builder& b, const Node* x, const Node* cos, const Node* sin, bool interleaved) {
  const int64_t half = x->shape().back() / 2;
  Shape split = x->shape();
  split.back() = interleaved ? half : 2;
  split.push_back(interleaved ? 2 : half);
  const int64_t pair_axis = interleaved ? -1 : -2;
  const Node* pairs = b.Reshape(x, split);
  const Node* swapped = b.Flip(pairs, {pair_axis});
  const Node* places =
      b.Iota(x->dtype(), interleaved ? Shape{1, 2} : Shape{2, 1}, interleaved ? 1 : 0);
  const Node* sign = b.Add(b.Mul(places, 2.0), -1.0);
  const Node* turned = b.Mul(b.Mul(swapped, sign), b.Unsqueeze(sin, pair_axis));
  return b.Reshape(b.Add(b.Mul(pairs, b.Unsqueeze(cos, pair_axis)), turned), x->shape());
}

Expansion ExpandRotary(Builder& b, Operands x, const Attributes& attributes) {
  const int64_t features = x[0]->shape().back();
  const int64_t turned = 2 * x[1]->shape().back();
  const bool interleaved = BoolOf(attributes, "interleaved");
  // Angles may have more digits than x; the result still has x's dtype.
  const ir::DType wide =
      Promote(x[0]->dtype(), Promote(x[1]->dtype(), x[2]->dtype()).value()).value();
  const Node* part = b.Cast(b.Slice(x[0], -1, 0, turned), wide);
  const Node* rotated = Rotate(b, part, b.Cast(x[1], wide), b.Cast(x[2], wide), interleaved);
  const Node* result = b.Cast(rotated, x[0]->dtype());
  if (turned == features) return result;
  return FindOp("concat")->expand(b, {result, b.Slice(x[0], -1, turned, features)},
                                  {{"axis", int64_t{-1}}});
}

constexpr Rule kAttentionShape = {"attention", "q, k, v, mask?", R"rule(
  grouped = attributes["grouped"]
  least = 3 if grouped else 2
  heads = ", with heads before" if grouped else ""
  check min(len(q), len(k), len(v)) >= least and q[-1] == k[-1] and k[-2] == v[-2]:
    "attention of query {q}, key {k} and value {v}; they must be (…, L, E), (…, S, E) and "
    "(…, S, V){heads}"
  check not grouped or (k[-3] >= 1 and k[-3] == v[-3] and q[-3] % k[-3] == 0):
    "attention in groups with {q[-3]} heads of query, {k[-3]} of key and {v[-3]} of value; the "
    "last two must be equal and divide the first"
  leading = broadcast([q[:-least], k[:-least], v[:-least]]) + q[-least:-2]
  scores = leading + (q[-2], k[-2])
  check not given(mask) or broadcasts_to(mask, scores):
    "attention's mask has shape {mask}; it must broadcast to {scores}"
  -> leading + (q[-2], v[-1])
)rule"};

constexpr Rule kRotaryRule = {"rotary", "x, cos, sin", R"rule(
  fits = len(x) > 0 and len(cos) > 0 and cos == sin and not surely_more(2 * cos[-1], x[-1])
  check fits and broadcasts_to(cos, x[:-1] + cos[-1:]):
    '"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, 1)} and '
    "{described(op, shapes, 2)}; both must broadcast to x with at most half its features"
)rule"};

}  // namespace

std::vector<OpDef> AttentionComposites() {
  OpDef attention = Composite(
      "scaled_dot_product_attention", {"query", "key", "value", "mask?"}, DTypeRule::kPromoteFloat,
      DTypeClass::kFloat, ExpandAttention,
      "softmax(query key^T * scale + mask) value (Vaswani et al., 2017). Scale 0 stands for "
      "1 / sqrt(E). A bool mask keeps keys where it is true, a float one is added; causal keeps "
      "those up to the query's place. Rows that keep none are 0. grouped: each head of key and "
      "value, the last leading dimension, serves several of query");
  attention.attributes = {OptionalBool("causal", false), OptionalFloat("scale", 0),
                          OptionalBool("grouped", false)};
  attention.shape_rule = kAttentionShape;
  attention.special_operand = 3;
  attention.special_class = DTypeClass::kFloatOrBool;
  attention.casts_operands = true;
  OpDef rotary = Composite(
      "rotary_embedding", {"x", "cos", "sin"}, DTypeRule::kSame, DTypeClass::kFloat, ExpandRotary,
      "Pairs of the first R features of x (…, L, E) turned by angles whose cos and sin are (…, L, "
      "R / 2): features i and i + R / 2, or interleaved 2 i and 2 i + 1 (Su et al., 2021)");
  rotary.attributes = {OptionalBool("interleaved", false)};
  rotary.constraints = {kRotaryRule};
  return {std::move(attention), std::move(rotary)};
}

}  // namespace kiln::ops
