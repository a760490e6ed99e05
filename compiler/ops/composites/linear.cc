// Matrix products. Each is one sum of one product of two views, which the compiler recognises as a
// contraction.
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Shape;

Expansion ExpandMatmul(Builder& b, Operands x, const Attributes&) {
  // As in NumPy, a vector is a row on the left and a column on the right, and its dimension of size
  // 1 is removed from the result.
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
  // The weight is (out, in), so both are summed along their last dimension and nothing is
  // transposed.
  const Node* rows = b.Unsqueeze(x[0], -2);  // (…, 1, K) against (N, K)
  const Node* result = b.Sum(b.Mul(rows, x[1]), {-1});
  return x.size() == 3 ? b.Add(result, x[2]) : result;
}

constexpr Rule kMatmulShape = {"matmul", "a, b", R"rule(
  check len(a) > 0 and len(b) > 0:
    "matmul of {a} and {b}; scalars have no dimension to sum over, use mul"
  rows = b[-2] if len(b) > 1 else b[0]
  place = "second to last" if len(b) > 1 else "only"
  check a[-1] == rows:
    "matmul of {a} and {b}: the first's last dimension ({a[-1]}) must equal the second's {place} "
    "dimension ({rows})"
  check do_broadcast(a[:-2], b[:-2]):
    "matmul of {a} and {b}: shapes {a[:-2]} and {b[:-2]} do not broadcast: from the last "
    "dimension on, sizes must be equal or 1"
  -> broadcast([a[:-2], b[:-2]]) + a[-2:-1] + (b[-1:] if len(b) > 1 else ())
)rule"};

constexpr Rule kLinearShape = {"linear", "x, weight, bias?", R"rule(
  check len(x) > 0 and len(weight) == 2 and x[-1] == weight[1]:
    "linear of x {x} and weight {weight}; x must be (…, in), weight (out, in)"
  check not given(bias) or bias == weight[:1]:
    "linear's bias has shape {bias}; it must be {weight[:1]}"
  -> x[:-1] + weight[:1]
)rule"};

}  // namespace

const Node* MatmulTransposed(Builder& b, const Node* a, const Node* bt) {
  return b.Sum(b.Mul(b.Unsqueeze(a, -2), b.Unsqueeze(bt, -3)), {-1});
}

std::vector<OpDef> LinearComposites() {
  OpDef matmul = Composite("matmul", {"a", "b"}, DTypeRule::kPromote, DTypeClass::kNumeric,
                           ExpandMatmul, "The matrix product, as NumPy's matmul");
  matmul.shape_rule = kMatmulShape;
  OpDef linear =
      Composite("linear", {"x", "weight", "bias?"}, DTypeRule::kPromote, DTypeClass::kNumeric,
                ExpandLinear, "x (…, in) times weight (out, in) transposed, plus bias");
  linear.shape_rule = kLinearShape;
  return {std::move(matmul), std::move(linear)};
}

}  // namespace kiln::ops
