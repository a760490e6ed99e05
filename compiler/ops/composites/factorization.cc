// Linear algebra by factorisation, for batches of small matrices. The work is cubic, in as many
// steps as the matrix has columns.
#include <algorithm>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/composites/elimination.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Shape;

// Returns (…, rows, columns) as (batch, rows, columns).
const Node* Batched(Builder& b, const Node* x) {
  const Shape& shape = x->shape();
  const int64_t rows = shape[shape.size() - 2];
  int64_t batch = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) batch *= shape[i];
  return b.Reshape(x, {batch, rows, shape.back()});
}

Expansion ExpandCholesky(Builder& b, Operands x, const Attributes& attributes) {
  if (ir::NumElements(x[0]->shape()) == 0) return x[0];
  const bool upper = BoolOf(attributes, "upper");
  const Node* read = Batched(b, x[0]);
  // Only one half is read, but since the matrix is symmetric, so is its gradient.
  const Node* transposed = b.Transpose(read, 1, 2);
  const Node* both = b.Mul(b.Add(read, transposed), 0.5);
  const Node* matrix =
      b.WithDerivative(b.Detach(upper ? transposed : read), both, b.Const(read->dtype(), 1));
  const Node* factor = CholeskyFactor(b, matrix);
  return b.Reshape(upper ? b.Transpose(factor, 1, 2) : factor, x[0]->shape());
}

// Both operands with the same leading dimensions, b as a matrix.
struct System {
  const Node* a;
  const Node* b;
  Shape shape;  // the result's
};
System SystemOf(Builder& b, Operands x) {
  const Shape& a_shape = x[0]->shape();
  const int64_t size = a_shape.back();
  // As in the array API, only a one-dimensional b is a vector.
  const bool vector = x[1]->shape().size() == 1;
  const Node* rhs = vector ? b.Unsqueeze(x[1], -1) : x[1];
  Shape leading_a(a_shape.begin(), a_shape.end() - 2);
  Shape leading_b(rhs->shape().begin(), rhs->shape().end() - 2);
  const Shape leading = BroadcastShapes({leading_a, leading_b}).value();
  const auto with = [&](int64_t columns) {
    Shape shape = leading;
    shape.insert(shape.end(), {size, columns});
    return shape;
  };
  Shape shape = with(rhs->shape().back());
  System system = {Batched(b, b.BroadcastTo(x[0], with(size))),
                   Batched(b, b.BroadcastTo(rhs, shape)), shape};
  if (vector) system.shape.pop_back();
  return system;
}

Expansion ExpandSolve(Builder& b, Operands x, const Attributes&) {
  const System system = SystemOf(b, x);
  if (ir::NumElements(system.shape) == 0) return b.Full(x[0]->dtype(), system.shape, 0);
  return b.Reshape(SolveByElimination(b, system.a, system.b, false), system.shape);
}

// An upper triangular system is a lower triangular one in reversed order.
Expansion ExpandTriangularSolve(Builder& b, Operands x, const Attributes& attributes) {
  const System system = SystemOf(b, x);
  if (ir::NumElements(system.shape) == 0) return b.Full(x[0]->dtype(), system.shape, 0);
  const bool upper = BoolOf(attributes, "upper");
  const Node* a = upper ? b.Flip(system.a, {1, 2}) : system.a;
  const int64_t size = a->shape()[1];
  const Node* row = b.Iota(DType::kInt32, {1, size, 1}, 1);
  const Node* column = b.Iota(DType::kInt32, {1, 1, size}, 2);
  // Only one half of a is used; the other may contain anything.
  a = b.Where(b.Less(row, column), b.Const(a->dtype(), 0), a);
  if (BoolOf(attributes, "unit_diagonal")) {
    a = b.Where(b.Equal(row, column), b.Const(a->dtype(), 1), a);
  }
  const Node* rhs = upper ? b.Flip(system.b, {1}) : system.b;
  const Node* solution = SolveByElimination(b, a, rhs, true);
  return b.Reshape(upper ? b.Flip(solution, {1}) : solution, system.shape);
}

// Solves A X = I.
Expansion ExpandInverse(Builder& b, Operands x, const Attributes&) {
  if (ir::NumElements(x[0]->shape()) == 0) return x[0];
  const Node* a = Batched(b, x[0]);
  const int64_t size = a->shape()[1];
  const Node* identity = b.Cast(
      b.Equal(b.Iota(DType::kInt32, {1, size, 1}, 1), b.Iota(DType::kInt32, {1, 1, size}, 2)),
      a->dtype());
  const Node* inverse = SolveByElimination(b, a, b.Expand(identity, a->shape()), false);
  return b.Reshape(inverse, x[0]->shape());
}

// Returns one of the three results of PivotsOf; for a matrix without elements they are 1, 1 and 0.
Expansion OfPivots(Builder& b, const Node* x, const Node* Pivots::*part, double of_nothing) {
  const Shape shape(x->shape().begin(), x->shape().end() - 2);
  if (ir::NumElements(x->shape()) == 0) return b.Full(x->dtype(), shape, of_nothing);
  return b.Reshape(PivotsOf(b, Batched(b, x)).*part, shape);
}
Expansion ExpandDet(Builder& b, Operands x, const Attributes&) {
  return OfPivots(b, x[0], &Pivots::product, 1);
}
Expansion ExpandSlogdetSign(Builder& b, Operands x, const Attributes&) {
  return OfPivots(b, x[0], &Pivots::sign, 1);
}
Expansion ExpandSlogdetLogabs(Builder& b, Operands x, const Attributes&) {
  return OfPivots(b, x[0], &Pivots::log_of_all, 0);
}

Expansion ExpandQr(Builder& b, Operands x, const Attributes& attributes) {
  Shape shape = x[0]->shape();
  const int64_t rows = shape[shape.size() - 2];
  const bool is_q = StringOf(attributes, "part") == "q";
  const int64_t inner = BoolOf(attributes, "complete") ? rows : std::min(rows, shape.back());
  (is_q ? shape.back() : shape[shape.size() - 2]) = inner;
  if (ir::NumElements(shape) == 0) return b.Full(x[0]->dtype(), shape, 0);
  const QrFactors factors = HouseholderQr(b, Batched(b, x[0]));
  // Computes only the requested columns: for a tall matrix the square Q would be far larger than
  // the matrix.
  const Node* part = is_q ? ColumnsOfQ(b, factors, inner) : b.Slice(factors.r, 1, 0, inner);
  return b.Reshape(part, shape);
}

constexpr Rule kSolveShape = {"solve", "a, b", R"rule(
  check len(a) >= 2 and a[-2] == a[-1]:
    '"{op.name}" of shape {a}; it must be (…, N, N), square matrices'
  rows = b[-2:-1] if len(b) > 1 else b
  check rows == a[-1:]:
    '"{op.name}" of a {a} and b {b}; b must be ({a[-1]},) or (…, {a[-1]}, M)'
  -> broadcast([a[:-2], b[:-2]]) + b[-2:] if len(b) > 1 else a[:-1]
)rule"};

constexpr Rule kDeterminantShape = {"determinant", "a", R"rule(
  check len(a) >= 2 and a[-2] == a[-1]:
    '"{op.name}" of shape {a}; it must be (…, N, N), square matrices'
  -> a[:-2]
)rule"};

constexpr Rule kQrShape = {"qr", "x", R"rule(
  check len(x) >= 2: "qr of shape {x}; it must be (…, M, N), matrices"
  inner = x[-2] if attributes["complete"] else min(x[-2], x[-1])
  is_q = attributes["part"] == "q"
  -> x[:-1] + (inner,) if is_q else x[:-2] + (inner, x[-1])
)rule"};

constexpr Rule kSquareRule = {"square", "a", R"rule(
  check len(a) >= 2 and a[-2] == a[-1]:
    '"{op.name}" of shape {a}; it must be (…, N, N), square matrices'
)rule"};

// Each column is a separate step in the graph, so their number is bounded.
constexpr Rule kFewColumnsRule = {"few_columns", "x", R"rule(
  check not (surely_more(x[-2], 512) and surely_more(x[-1], 512)):
    '"{op.name}" of matrices of shape {x}; the most is 512 columns, on larger ones work in blocks'
)rule"};

OpDef Matrix(std::string_view name, std::vector<std::string_view> operands, Rule rule,
             ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, std::move(operands), DTypeRule::kPromoteFloat, DTypeClass::kNumeric,
                        expand, doc);
  row.shape_rule = rule;
  row.constraints = {kFewColumnsRule};
  if (rule.name == kSameShape.name) row.constraints = {kSquareRule, kFewColumnsRule};
  return row;
}

}  // namespace

std::vector<OpDef> FactorizationComposites() {
  OpDef cholesky =
      Matrix("cholesky", {"x"}, kSameShape, ExpandCholesky,
             "The lower (or upper) triangular factor L of symmetric positive definite "
             "matrices L L^T, of which only that half is read; else NaN. The gradient is "
             "symmetric");
  cholesky.attributes = {OptionalBool("upper", false)};
  OpDef triangular =
      Matrix("triangular_solve", {"a", "b"}, kSolveShape, ExpandTriangularSolve,
             "X of A X = B for lower (or upper) triangular A, of which only that half is read");
  triangular.attributes = {OptionalBool("upper", false), OptionalBool("unit_diagonal", false)};
  OpDef qr = Matrix("qr", {"x"}, kQrShape, ExpandQr,
                    "The part \"q\" or \"r\" of A = Q R: Q has orthonormal columns, R is upper "
                    "triangular; Householder's reflections with LAPACK's signs");
  qr.attributes = {OneOf(RequiredString("part"), {"q", "r"}), OptionalBool("complete", false)};
  return {
      std::move(cholesky),
      std::move(triangular),
      Matrix("solve", {"a", "b"}, kSolveShape, ExpandSolve,
             "X of A X = B, by elimination with partial pivoting; infinities or NaN where A is "
             "singular"),
      Matrix("inv", {"x"}, kSameShape, ExpandInverse,
             "The inverse of square matrices; infinities or NaN where one is singular"),
      Matrix("det", {"x"}, kDeterminantShape, ExpandDet, "The determinant"),
      Matrix("slogdet_sign", {"x"}, kDeterminantShape, ExpandSlogdetSign, "The determinant's sign"),
      Matrix("slogdet_logabs", {"x"}, kDeterminantShape, ExpandSlogdetLogabs,
             "The logarithm of the determinant's magnitude"),
      std::move(qr),
  };
}

}  // namespace kiln::ops
