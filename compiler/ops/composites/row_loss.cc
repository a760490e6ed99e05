// Losses that compare vectors along the last dimension: one per row.
#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Op;

// PyTorch's cosine for this loss: adds 1e-12 to both squares.
const Node* Cosine(Builder& b, const Node* a, const Node* c) {
  const Node* x = WithRoomForSquares(b, a);
  const Node* y = WithRoomForSquares(b, c);
  const Node* product = b.Sum(b.Mul(x, y), {-1});
  const Node* square_x = b.Add(b.Sum(b.Mul(x, x), {-1}), 1e-12);
  const Node* square_y = b.Add(b.Sum(b.Mul(y, y), {-1}), 1e-12);
  const Node* cosine = b.Div(product, b.Mul(b.Sqrt(square_x), b.Sqrt(square_y)));
  return b.Cast(cosine, a->dtype());
}

Expansion ExpandCosineEmbedding(Builder& b, Operands x, const Attributes& attributes) {
  const Node* cosine = Cosine(b, x[0], x[1]);
  const Node* zero = b.Const(cosine->dtype(), 0);
  const Node* one = b.Const(cosine->dtype(), 1);
  const Node* same = b.Sub(one, cosine);
  const Node* apart = Positive(b, b.Add(cosine, -FloatOf(attributes, "margin")));
  const Node* otherwise = b.Where(b.Equal(x[2], b.Neg(one)), apart, zero);
  return ReduceLoss(b, b.Where(b.Equal(x[2], one), same, otherwise), attributes);
}

Expansion ExpandTripletMargin(Builder& b, Operands x, const Attributes& attributes) {
  const double p = FloatOf(attributes, "p");
  const auto axis = static_cast<int64_t>(x[0]->shape().size()) - 1;
  const auto distance = [&](const Node* a, const Node* c) {
    // PyTorch's pairwise distance: adds epsilon to each difference.
    const Node* difference = b.Add(b.Sub(a, c), FloatOf(attributes, "epsilon"));
    return Norm(b, difference, {axis}, p, false);
  };
  const Node* negative = distance(x[0], x[2]);
  if (BoolOf(attributes, "swap")) {
    negative = b.Binary(Op::kMin, negative, distance(x[1], x[2]));
  }
  const Node* excess = b.Add(b.Sub(distance(x[0], x[1]), negative), FloatOf(attributes, "margin"));
  return ReduceLoss(b, Positive(b, excess), attributes);
}

constexpr Rule kRowLossShape = {"row_loss", "x", R"rule(
  check len(x) > 0: '"{op.name}" of scalars; its operands must be (…, features)'
  check shapes[i] == x or (i > 1 and shapes[i] == x[:-1]) for i in range(1, len(shapes)):
    '"{op.name}" of {described(op, shapes, 0)} and {described(op, shapes, i)}; they must agree'
  none = attributes["reduction"] == "none"
  -> x[:-1] if none else ()
)rule"};

constexpr Rule kLabelForEachRowRule = {"label_for_each_row", "x, other, labels", R"rule(
  check len(labels) + 1 == len(x):
    '"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, 2)}; it must have one '
    "element for each row"
)rule"};

constexpr Rule kEqualShapesRule = {"equal_shapes", "wanted", R"rule(
  check shapes[i] == wanted for i in range(1, len(shapes)):
    '"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, i)}; it must have '
    "shape {wanted}"
)rule"};

OpDef RowLoss(std::string_view name, std::vector<std::string_view> operands,
              std::vector<AttributeDef> attributes, ExpandFn expand, std::string_view doc) {
  return LossRow(kRowLossShape, name, std::move(operands), std::move(attributes), expand, doc);
}

}  // namespace

std::vector<OpDef> RowLossComposites() {
  return {
      Requiring({kLabelForEachRowRule},
                RowLoss("cosine_embedding_loss", {"a", "b", "target"}, {OptionalFloat("margin", 0)},
                        ExpandCosineEmbedding,
                        "1 - cos(a, b) of the last dimension where target is 1, max(0, cos - "
                        "margin) where it is -1")),
      Requiring(
          {kEqualShapesRule},
          RowLoss(
              "triplet_margin_loss", {"anchor", "positive", "negative"},
              {OptionalFloat("margin", 1), AboveZero(OptionalFloat("p", 2)),
               OptionalFloat("epsilon", 1e-6), OptionalBool("swap", false)},
              ExpandTripletMargin,
              "max(0, |anchor - positive| - |anchor - negative| + margin) of the last dimension; "
              "with swap, the negative's distance to the positive counts if it is less")),
  };
}

}  // namespace kiln::ops
