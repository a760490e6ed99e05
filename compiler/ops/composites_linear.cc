// Matrix products and what is built on them. Each is one sum of one product of two views, which the
// compiler recognises as a contraction.
#include <cmath>
#include <limits>

#include "compiler/ops/composite.h"
#include "compiler/ops/infer.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

Expansion ExpandMatmul(Builder& b, Operands x, const Attributes&) {
  const bool row = x[0]->shape().size() == 1;
  const bool column = x[1]->shape().size() == 1;
  const Node* left = row ? b.Unsqueeze(x[0], 0) : x[0];
  const Node* right = column ? b.Unsqueeze(x[1], 0) : b.Transpose(x[1], -1, -2);
  const Node* product = MatmulTransposed(b, left, right);
  Shape shape = product->shape();
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return b.Reshape(product, shape);
}

Expansion ExpandLinear(Builder& b, Operands x, const Attributes&) {
  const Node* rows = b.Unsqueeze(x[0], -2);  // (…, 1, K) against (N, K)
  const Node* result = b.Sum(b.Mul(rows, x[1]), {-1});
  return x.size() == 3 ? b.Add(result, x[2]) : result;
}

// Whether column s is at most row l.
const Node* CausalMask(Builder& b, int64_t rows, int64_t columns) {
  const Node* row = b.Iota(DType::kInt32, {rows, 1}, 0);
  const Node* column = b.Iota(DType::kInt32, {1, columns}, 1);
  return b.Not(b.Less(row, column));
}

Expansion ExpandAttention(Builder& b, Operands x, const Attributes& attributes) {
  const Node* query = x[0];
  const Node* key = x[1];
  const double given = FloatOf(attributes, "scale");
  const double scale =
      given != 0 ? given : 1 / std::sqrt(static_cast<double>(query->shape().back()));
  const Node* scores = b.Mul(MatmulTransposed(b, query, key), scale);
  const Node* lowest = b.Const(scores->dtype(), -std::numeric_limits<double>::infinity());
  if (BoolOf(attributes, "causal")) {
    const Shape& shape = scores->shape();
    scores = b.Where(CausalMask(b, shape[shape.size() - 2], shape.back()), scores, lowest);
  }
  if (x.size() == 4) scores = b.Where(x[3], scores, lowest);
  const int64_t last = static_cast<int64_t>(scores->shape().size()) - 1;
  return MatmulTransposed(b, Softmax(b, scores, last), b.Transpose(x[2], -1, -2));
}

}  // namespace

const Node* MatmulTransposed(Builder& b, const Node* a, const Node* bt) {
  return b.Sum(b.Mul(b.Unsqueeze(a, -2), b.Unsqueeze(bt, -3)), {-1});
}

std::vector<OpDef> LinearComposites() {
  OpDef matmul = Composite("matmul", {"a", "b"}, DTypeRule::kPromote, DTypeClass::kNumeric,
                           ExpandMatmul, "The matrix product, as NumPy's matmul");
  matmul.shape_rule = ShapeRule::kMatmul;
  OpDef linear =
      Composite("linear", {"x", "weight", "bias?"}, DTypeRule::kPromote, DTypeClass::kNumeric,
                ExpandLinear, "x (…, in) times weight (out, in) transposed, plus bias");
  linear.shape_rule = ShapeRule::kLinear;
  OpDef attention =
      Composite("scaled_dot_product_attention", {"query", "key", "value", "mask?"},
                DTypeRule::kPromoteFloat, DTypeClass::kFloat, ExpandAttention,
                "softmax(query key^T * scale) value (Vaswani et al., 2017). Scale 0 stands for "
                "1 / sqrt(E); where mask is false, or with causal the key comes after the query, "
                "the score is -inf");
  attention.attributes = {OptionalBool("causal", false), OptionalFloat("scale", 0)};
  attention.shape_rule = ShapeRule::kAttention;
  attention.special_operand = 3;
  attention.special_class = DTypeClass::kBool;
  return {std::move(matmul), std::move(linear), std::move(attention)};
}

}  // namespace kiln::ops
