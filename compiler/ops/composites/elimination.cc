#include "compiler/ops/composites/elimination.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/ops/composites/composite.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

const Node* RowNumber(Builder& b, const Node* matrix) {
  return b.Iota(DType::kInt32, {1, matrix->shape()[1], 1}, 1);
}
const Node* ColumnNumber(Builder& b, const Node* matrix) {
  return b.Iota(DType::kInt32, {1, 1, matrix->shape()[2]}, 2);
}
const Node* IsFirst(Builder& b, const Node* number) {
  return b.Equal(number, b.ConstInt(DType::kInt32, 0));
}

const Node* FirstRow(Builder& b, const Node* matrix) { return b.Slice(matrix, 1, 0, 1); }
const Node* FirstColumn(Builder& b, const Node* matrix) { return b.Slice(matrix, 2, 0, 1); }

// The rows that still wait for their step: initially all, and one fewer after each roll. Stored in
// memory instead of computed from the step's number, so that all steps share one kernel.
const Node* AllRows(Builder& b, int64_t rows) {
  return b.Contiguous(b.Full(DType::kInt32, {1, rows, 1}, 1));
}
const Node* OneRowFewer(Builder& b, const Node* waiting) {
  const std::vector<int64_t> padding = {0, 0, 0, 1, 0, 0};
  return b.Contiguous(b.Pad(b.Slice(waiting, 1, 1, waiting->shape()[1]), padding));
}
const Node* Waits(Builder& b, const Node* waiting) { return b.Cast(waiting, DType::kBool); }

// Returns the position among the waiting rows where `of` is largest, the first one if several are
// equal. NaN counts as infinite, so that it propagates to the result.
const Node* IsPivot(Builder& b, const Node* of, const Node* waiting) {
  const int64_t columns = of->shape()[2];
  const Node* infinity = b.Const(of->dtype(), std::numeric_limits<double>::infinity());
  const Node* magnitude = b.Detach(b.Where(IsNan(b, of), infinity, Abs(b, of)));
  const Node* score = b.Where(Waits(b, waiting), magnitude, b.Const(of->dtype(), -1));
  const Node* best = b.Equal(score, b.Max(score, {1, 2}, true));
  const auto whole = [&](int64_t value) { return b.ConstInt(DType::kInt32, value); };
  const Node* place = b.Add(b.Mul(RowNumber(b, of), whole(columns)), ColumnNumber(b, of));
  const Node* from_end = b.Sub(whole(of->shape()[1] * columns), place);
  const Node* candidates = b.Where(best, from_end, whole(0));
  return b.Equal(from_end, b.Max(candidates, {1, 2}, true));
}

// Exchanges the first row (axis 1) or column (axis 2) of the matrix with the one that is_chosen
// marks.
const Node* Exchanged(Builder& b, const Node* matrix, const Node* is_chosen, int64_t axis) {
  const Node* chosen = b.Sum(b.Where(is_chosen, matrix, Zero(b, matrix)), {axis}, true);
  const Node* first = b.Slice(matrix, axis, 0, 1);
  const Node* number = axis == 1 ? RowNumber(b, matrix) : ColumnNumber(b, matrix);
  const Node* rest = b.Where(is_chosen, first, matrix);
  return b.Contiguous(b.Where(IsFirst(b, number), chosen, rest));
}

// Divides the first row by its first element and subtracts multiples of it from all others, so that
// their first elements become 0. Then removes that column and moves the row to the end.
const Node* ClearColumn(Builder& b, const Node* matrix, const Node* pivot) {
  const Node* row = b.Div(FirstRow(b, matrix), pivot);
  const Node* others = b.Sub(matrix, b.Mul(FirstColumn(b, matrix), row));
  const Node* cleared = b.Where(IsFirst(b, RowNumber(b, matrix)), row, others);
  const std::vector<int64_t> padding = {0, 0, 0, 0, 0, 1};
  const Node* left = b.Pad(b.Slice(cleared, 2, 1, matrix->shape()[2]), padding);
  return b.Contiguous(Rolled(b, left, 1, -1));
}

// Scales rows and columns by powers of two, so that the largest element of each is about 1 whatever
// the magnitudes, and no intermediate quotient overflows: A X = B becomes (D A E) (E^-1 X) = D B.
struct Balanced {
  const Node* matrix;
  const Node* rows;     // D's diagonal, (batch, n, 1)
  const Node* columns;  // E's, (batch, 1, n)
};
Balanced Balance(Builder& b, const Node* a) {
  const Node* rows = ScaleOf(b, b.Max(Abs(b, a), {2}, true));
  const Node* even = b.Mul(a, rows);
  const Node* columns = ScaleOf(b, b.Max(Abs(b, even), {1}, true));
  return {b.Mul(even, columns), rows, columns};
}

// A product of any magnitude: mantissa * 2^exponent, where |mantissa| is 0 or in [1, 2).
struct WideProduct {
  const Node* mantissa;
  const Node* exponent;  // a whole number, of the mantissa's dtype
};
WideProduct Normalized(Builder& b, const WideProduct& product) {
  const Node* magnitude = Abs(b, product.mantissa);
  const Node* one = b.Const(magnitude->dtype(), 1);
  const Node* is_zero = b.Equal(magnitude, Zero(b, magnitude));
  const Node* scale = b.Where(is_zero, one, ScaleOf(b, magnitude));
  return {b.Mul(product.mantissa, scale), b.Sub(product.exponent, b.Log2(scale))};
}
WideProduct Times(Builder& b, const WideProduct& product, const Node* factor) {
  const WideProduct other = Normalized(b, {factor, product.exponent});
  return Normalized(b, {b.Mul(product.mantissa, other.mantissa), other.exponent});
}
// Scales in two steps, since the power of two alone may be out of range when the product is not.
const Node* ValueOf(Builder& b, const WideProduct& product) {
  const Node* exponent = b.Detach(product.exponent);
  const Node* half = b.Trunc(b.Mul(exponent, 0.5));
  const Node* nearer = b.Mul(product.mantissa, b.Exp2(half));
  return b.Mul(nearer, b.Exp2(b.Sub(exponent, half)));
}

}  // namespace

const Node* SolveByElimination(Builder& b, const Node* a, const Node* rhs, bool is_lower) {
  const int64_t size = a->shape()[1];
  const int64_t width = rhs->shape()[2];
  const Node* columns = nullptr;
  if (!is_lower) {
    const Balanced balanced = Balance(b, a);
    a = balanced.matrix;
    rhs = b.Mul(rhs, balanced.rows);
    columns = b.Transpose(balanced.columns, 1, 2);
  }
  const std::vector<int64_t> right = {0, 0, 0, 0, 0, width};
  const std::vector<int64_t> left = {0, 0, 0, 0, size, 0};
  const Node* in_a =
      b.Less(b.Iota(DType::kInt32, {1, 1, size + width}, 2), b.ConstInt(DType::kInt32, size));
  const Node* matrix = b.Contiguous(b.Where(in_a, b.Pad(a, right), b.Pad(rhs, left)));
  const Node* waiting = AllRows(b, size);
  for (int64_t step = 0; step < size; ++step) {
    if (!is_lower) {
      const Node* is_pivot = IsPivot(b, FirstColumn(b, matrix), waiting);
      matrix = Exchanged(b, matrix, is_pivot, 1);
      waiting = OneRowFewer(b, waiting);
    }
    matrix = ClearColumn(b, matrix, FirstColumn(b, FirstRow(b, matrix)));
  }
  const Node* solution = b.Slice(matrix, 2, 0, width);
  return is_lower ? solution : b.Mul(solution, columns);
}

Pivots PivotsOf(Builder& b, const Node* a) {
  const DType dtype = a->dtype();
  const Node* one = b.Const(dtype, 1);
  const Shape scalar = {a->shape()[0], 1, 1};
  WideProduct product = {b.Full(dtype, scalar, 1), b.Full(dtype, scalar, 0)};
  Pivots pivots = {nullptr, b.Full(dtype, scalar, 1), b.Full(dtype, scalar, 0)};
  const Node* matrix = b.Contiguous(a);
  const Node* waiting = AllRows(b, a->shape()[1]);
  for (int64_t step = 0; step < a->shape()[1]; ++step) {
    const Node* is_pivot = b.Cast(IsPivot(b, matrix, waiting), DType::kInt32);
    const Node* in_row = b.Cast(b.Contiguous(b.Max(is_pivot, {2}, true)), DType::kBool);
    const Node* in_column = b.Cast(b.Contiguous(b.Max(is_pivot, {1}, true)), DType::kBool);
    matrix = Exchanged(b, Exchanged(b, matrix, in_row, 1), in_column, 2);
    const Node* pivot = FirstColumn(b, FirstRow(b, matrix));
    const Node* is_odd = b.Binary(Op::kXor, FirstRow(b, in_row), FirstColumn(b, in_column));
    const Node* turn = b.Where(is_odd, b.Const(dtype, -1), one);
    const Node* magnitude = Abs(b, pivot);
    product = Times(b, product, b.Mul(pivot, turn));
    product = {b.Contiguous(product.mantissa), b.Contiguous(product.exponent)};
    const Node* is_zero = b.Equal(pivot, Zero(b, pivot));
    const Node* turned = b.Mul(SignOf(b, pivot), turn);
    // For NaN the sign is NaN, since its sign bit has no meaning.
    const Node* sign = b.Where(is_zero, Zero(b, pivot), b.Where(IsNan(b, pivot), pivot, turned));
    pivots.sign = b.Contiguous(b.Mul(pivots.sign, sign));
    pivots.log_of_all = b.Contiguous(b.Add(pivots.log_of_all, b.Log(magnitude)));
    // After a zero pivot the rest of the matrix is zero, and there is nothing to clear.
    matrix = ClearColumn(b, matrix, b.Where(is_zero, one, pivot));
    waiting = OneRowFewer(b, waiting);
  }
  pivots.product = ValueOf(b, product);
  return pivots;
}

// The active block is at the front and lower triangular; finished columns are at the end, with
// zeros in the rows of later steps.
const Node* CholeskyFactor(Builder& b, const Node* a) {
  const Node* in_lower = b.Not(b.Less(RowNumber(b, a), ColumnNumber(b, a)));
  const Node* is_first_column = IsFirst(b, ColumnNumber(b, a));
  const Node* matrix = b.Contiguous(b.Where(in_lower, a, Zero(b, a)));
  for (int64_t step = 0; step < a->shape()[1]; ++step) {
    const Node* root = b.Sqrt(FirstColumn(b, FirstRow(b, matrix)));
    const Node* column = b.Contiguous(b.Div(FirstColumn(b, matrix), root));
    const Node* product = b.Mul(column, b.Transpose(column, 1, 2));
    const Node* rest = b.Sub(matrix, b.Where(in_lower, product, Zero(b, a)));
    const Node* next = b.Where(is_first_column, column, rest);
    matrix = b.Contiguous(Rolled(b, Rolled(b, next, 1, -1), 2, -1));
  }
  return matrix;
}

static const Node* Reflected(Builder& b, const Reflection& reflection, const Node* m) {
  const auto& [v, factor, sign] = reflection;
  const Node* along = b.Mul(b.Sum(b.Mul(v, m), {1}, true), factor);
  return b.Sub(m, b.Mul(v, along));
}

QrFactors HouseholderQr(Builder& b, const Node* a) {
  const DType dtype = a->dtype();
  const int64_t rows = a->shape()[1];
  const int64_t steps = std::min(rows - 1, a->shape()[2]);
  const Node* one = b.Const(dtype, 1);
  const Node* r = b.Contiguous(a);
  const Node* waiting = AllRows(b, rows);
  const Node* is_first_row = IsFirst(b, RowNumber(b, a));
  const auto nonzero = [&](const Node* x) { return b.Where(b.Equal(x, Zero(b, x)), one, x); };
  std::vector<Reflection> reflections;
  for (int64_t step = 0; step < steps; ++step) {
    const Node* column = b.Where(Waits(b, waiting), FirstColumn(b, r), Zero(b, r));
    // Squares of numbers near 1 neither overflow nor underflow.
    const Node* scale = ScaleOf(b, b.Contiguous(b.Max(Abs(b, column), {1}, true)));
    const Node* x = b.Mul(column, scale);
    const Node* square = b.Sum(b.Mul(x, x), {1}, true);
    const Node* is_zero = b.Equal(square, Zero(b, square));
    const Node* length = b.Where(is_zero, Zero(b, square), b.Sqrt(nonzero(square)));
    const Node* turned = b.Neg(b.Mul(SignOf(b, FirstRow(b, x)), length));
    const Node* v = b.Contiguous(b.Where(is_first_row, b.Sub(x, turned), x));
    // LAPACK keeps the sign of a column that is already finished, as in an upper triangular matrix.
    // Reflecting it and negating the row gives the same, and has a derivative.
    const Node* below = b.Sum(b.Where(is_first_row, Zero(b, x), Abs(b, x)), {1}, true);
    const Node* is_done = b.Binary(Op::kAnd, b.Equal(below, Zero(b, below)), b.Not(is_zero));
    const Node* sign = b.Where(b.Binary(Op::kAnd, is_first_row, is_done), b.Const(dtype, -1), one);
    const Node* factor = b.Div(b.Const(dtype, 2), nonzero(b.Sum(b.Mul(v, v), {1}, true)));
    reflections.push_back({v, factor, sign});
    // Sets the first column to its exact value, without rounding.
    const Node* first =
        b.Where(is_first_row, b.Div(turned, scale), b.Sub(FirstColumn(b, r), column));
    const Node* next =
        b.Where(IsFirst(b, ColumnNumber(b, r)), first, Reflected(b, reflections.back(), r));
    r = b.Contiguous(Rolled(b, Rolled(b, b.Mul(next, sign), 1, -1), 2, -1));
    waiting = OneRowFewer(b, waiting);
  }
  return {Rolled(b, Rolled(b, r, 1, steps), 2, steps), std::move(reflections)};
}

// Starts with the columns of the identity, rolled as after the last step, and applies all steps in
// reverse.
const Node* ColumnsOfQ(Builder& b, const QrFactors& factors, int64_t columns) {
  const int64_t batch = factors.r->shape()[0];
  const int64_t rows = factors.r->shape()[1];
  const auto steps = static_cast<int64_t>(factors.reflections.size());
  const Node* row = b.Iota(DType::kInt32, {1, rows, 1}, 1);
  const Node* column = b.Iota(DType::kInt32, {1, 1, columns}, 2);
  const Node* identity = b.Cast(b.Equal(row, column), factors.r->dtype());
  const Node* q = b.Expand(identity, {batch, rows, columns});
  q = b.Contiguous(Rolled(b, q, 1, -steps));
  for (int64_t step = steps; step-- > 0;) {
    const Reflection& reflection = factors.reflections[step];
    q = b.Contiguous(Reflected(b, reflection, b.Mul(Rolled(b, q, 1, 1), reflection.sign)));
  }
  return q;
}

}  // namespace kiln::ops
