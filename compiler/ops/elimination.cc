#include "compiler/ops/elimination.h"

#include <algorithm>
#include <limits>

#include "compiler/ops/composite.h"

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
const Node* Zero(Builder& b, const Node* like) { return b.Const(like->dtype(), 0); }

const Node* FirstRow(Builder& b, const Node* matrix) { return b.Slice(matrix, 1, 0, 1); }
const Node* FirstColumn(Builder& b, const Node* matrix) { return b.Slice(matrix, 2, 0, 1); }

// Which rows still wait for their step: all at first, and then one fewer after each roll. In
// memory, so that no step's kernel holds a number of its own.
const Node* AllRows(Builder& b, int64_t rows) {
  return b.Contiguous(b.Full(DType::kInt32, {1, rows, 1}, 1));
}
const Node* OneRowFewer(Builder& b, const Node* waiting) {
  const std::vector<int64_t> padding = {0, 0, 0, 1, 0, 0};
  return b.Contiguous(b.Pad(b.Slice(waiting, 1, 1, waiting->shape()[1]), padding));
}
const Node* Waits(Builder& b, const Node* waiting) { return b.Cast(waiting, DType::kBool); }

// (batch, rows, 1): the one waiting row whose element in column 0 is largest, the first of equals.
const Node* IsPivot(Builder& b, const Node* matrix, const Node* waiting) {
  const Node* magnitude = b.Detach(Abs(b, FirstColumn(b, matrix)));
  const Node* score = b.Where(Waits(b, waiting), magnitude, b.Const(matrix->dtype(), -1));
  const Node* best = b.Equal(score, b.Max(score, {1}, true));
  const Node* from_end = b.Sub(b.ConstInt(DType::kInt32, matrix->shape()[1]), RowNumber(b, matrix));
  const Node* candidates = b.Where(best, from_end, b.ConstInt(DType::kInt32, 0));
  return b.Equal(from_end, b.Max(candidates, {1}, true));
}

struct Exchanged {
  const Node* matrix;         // with the pivot's row first
  const Node* was_elsewhere;  // (batch, 1, 1): whether the rows are two
};

Exchanged PivotFirst(Builder& b, const Node* matrix, const Node* waiting) {
  const Node* is_pivot = IsPivot(b, matrix, waiting);
  const Node* row = b.Sum(b.Where(is_pivot, matrix, Zero(b, matrix)), {1}, true);
  const Node* rest = b.Where(is_pivot, FirstRow(b, matrix), matrix);
  const Node* exchanged = b.Where(IsFirst(b, RowNumber(b, matrix)), row, rest);
  return {b.Contiguous(exchanged), b.Not(FirstRow(b, is_pivot))};
}

// The first row divided by its first element, and taken from all others so that their first
// elements become 0. Then that column leaves, and the row goes last.
const Node* ClearColumn(Builder& b, const Node* matrix, const Node* pivot) {
  const Node* row = b.Div(FirstRow(b, matrix), pivot);
  const Node* others = b.Sub(matrix, b.Mul(FirstColumn(b, matrix), row));
  const Node* cleared = b.Where(IsFirst(b, RowNumber(b, matrix)), row, others);
  const std::vector<int64_t> padding = {0, 0, 0, 0, 0, 1};
  const Node* left = b.Pad(b.Slice(cleared, 2, 1, matrix->shape()[2]), padding);
  return b.Contiguous(Rolled(b, left, 1, -1));
}

}  // namespace

const Node* SolveByElimination(Builder& b, const Node* a, const Node* rhs, bool is_lower) {
  const int64_t size = a->shape()[1];
  const int64_t width = rhs->shape()[2];
  const std::vector<int64_t> right = {0, 0, 0, 0, 0, width};
  const std::vector<int64_t> left = {0, 0, 0, 0, size, 0};
  const Node* in_a =
      b.Less(b.Iota(DType::kInt32, {1, 1, size + width}, 2), b.ConstInt(DType::kInt32, size));
  const Node* matrix = b.Contiguous(b.Where(in_a, b.Pad(a, right), b.Pad(rhs, left)));
  const Node* waiting = AllRows(b, size);
  for (int64_t step = 0; step < size; ++step) {
    if (!is_lower) {
      matrix = PivotFirst(b, matrix, waiting).matrix;
      waiting = OneRowFewer(b, waiting);
    }
    matrix = ClearColumn(b, matrix, FirstColumn(b, FirstRow(b, matrix)));
  }
  return b.Slice(matrix, 2, 0, width);
}

Pivots PivotsOf(Builder& b, const Node* a) {
  const DType dtype = a->dtype();
  const Node* one = b.Const(dtype, 1);
  const Shape scalar = {a->shape()[0], 1, 1};
  Pivots pivots = {b.Full(dtype, scalar, 1), b.Full(dtype, scalar, 1), b.Full(dtype, scalar, 0)};
  const Node* matrix = b.Contiguous(a);
  const Node* waiting = AllRows(b, a->shape()[1]);
  for (int64_t step = 0; step < a->shape()[1]; ++step) {
    const Exchanged exchanged = PivotFirst(b, matrix, waiting);
    const Node* pivot = FirstColumn(b, FirstRow(b, exchanged.matrix));
    const Node* turn = b.Where(exchanged.was_elsewhere, b.Const(dtype, -1), one);
    const Node* magnitude = Abs(b, pivot);
    pivots.product = b.Contiguous(b.Mul(pivots.product, b.Mul(pivot, turn)));
    const Node* is_zero = b.Equal(pivot, Zero(b, pivot));
    const Node* sign = b.Where(is_zero, Zero(b, pivot), b.Mul(SignOf(b, pivot), turn));
    pivots.sign = b.Contiguous(b.Mul(pivots.sign, sign));
    pivots.log_of_all = b.Contiguous(b.Add(pivots.log_of_all, b.Log(magnitude)));
    // A column of zeros has nothing to clear.
    matrix = ClearColumn(b, exchanged.matrix, b.Where(is_zero, one, pivot));
    waiting = OneRowFewer(b, waiting);
  }
  return pivots;
}

// The active block is at the front and lower triangular; finished columns are at the end, and zero
// in what are now the rows of later ones.
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

QrFactors HouseholderQr(Builder& b, const Node* a) {
  const DType dtype = a->dtype();
  const int64_t rows = a->shape()[1];
  const int64_t steps = std::min(rows - 1, a->shape()[2]);
  const Node* one = b.Const(dtype, 1);
  const Node* identity = b.Cast(
      b.Equal(b.Iota(DType::kInt32, {1, rows, 1}, 1), b.Iota(DType::kInt32, {1, 1, rows}, 2)),
      dtype);
  const Node* r = b.Contiguous(a);
  const Node* qt = b.Contiguous(b.Expand(identity, {a->shape()[0], rows, rows}));
  const Node* waiting = AllRows(b, rows);
  const Node* is_first_row = IsFirst(b, RowNumber(b, a));
  const auto nonzero = [&](const Node* x) { return b.Where(b.Equal(x, Zero(b, x)), one, x); };
  for (int64_t step = 0; step < steps; ++step) {
    const Node* x = b.Where(Waits(b, waiting), FirstColumn(b, r), Zero(b, r));
    const Node* square = b.Sum(b.Mul(x, x), {1}, true);
    const Node* is_zero = b.Equal(square, Zero(b, square));
    const Node* length = b.Where(is_zero, Zero(b, square), b.Sqrt(nonzero(square)));
    const Node* turned = b.Neg(b.Mul(SignOf(b, FirstRow(b, x)), length));
    const Node* v = b.Contiguous(b.Where(is_first_row, b.Sub(x, turned), x));
    // A column that is done already, as an upper triangular matrix has them, keeps its sign in
    // LAPACK; turning it and back gives the same, and a derivative.
    const Node* below = b.Sum(b.Where(is_first_row, Zero(b, x), Abs(b, x)), {1}, true);
    const Node* is_done = b.Binary(Op::kAnd, b.Equal(below, Zero(b, below)), b.Not(is_zero));
    const Node* sign = b.Where(b.Binary(Op::kAnd, is_first_row, is_done), b.Const(dtype, -1), one);
    const Node* scale = b.Div(b.Const(dtype, 2), nonzero(b.Sum(b.Mul(v, v), {1}, true)));
    const auto reflect = [&](const Node* m) {
      const Node* along = b.Mul(b.Sum(b.Mul(v, m), {1}, true), scale);
      return b.Sub(m, b.Mul(v, along));
    };
    // The first column becomes what it must be, without rounding.
    const Node* column = b.Where(is_first_row, turned, b.Sub(FirstColumn(b, r), x));
    const Node* next = b.Where(IsFirst(b, ColumnNumber(b, r)), column, reflect(r));
    r = b.Contiguous(Rolled(b, Rolled(b, b.Mul(next, sign), 1, -1), 2, -1));
    qt = b.Contiguous(Rolled(b, b.Mul(reflect(qt), sign), 1, -1));
    waiting = OneRowFewer(b, waiting);
  }
  return {b.Transpose(Rolled(b, qt, 1, steps), 1, 2), Rolled(b, Rolled(b, r, 1, steps), 2, steps)};
}

}  // namespace kiln::ops
