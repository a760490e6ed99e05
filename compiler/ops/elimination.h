// Elimination in steps that are all alike: the matrix is rolled by one row and column after each,
// so that the pivot always stands at (0, 0), what is finished comes back at the other end, and one
// kernel serves every step. Internal to compiler/ops.
//
// Matrices are (batch, rows, columns), of float32 or float64.
#ifndef KILN_COMPILER_OPS_ELIMINATION_H_
#define KILN_COMPILER_OPS_ELIMINATION_H_

#include "compiler/ops/builder.h"

namespace kiln::ops {

// The solution X of A X = B by Gauss-Jordan elimination; a (batch, n, n), b (batch, n, m). Rows are
// exchanged (partial pivoting) unless `a` is known to be lower triangular. A singular matrix gives
// infinities or NaN.
const ir::Node* SolveByElimination(Builder& b, const ir::Node* a, const ir::Node* rhs,
                                   bool is_lower);

// Of the pivots of Gauss elimination with partial pivoting, (batch, 1, 1) each.
struct Pivots {
  const ir::Node* product;     // the determinant
  const ir::Node* sign;        // its sign: -1, 0 or 1
  const ir::Node* log_of_all;  // the logarithm of its magnitude; -inf if it is 0
};
Pivots PivotsOf(Builder& b, const ir::Node* a);

// The lower triangular factor of a symmetric positive definite matrix, of which only the lower half
// is read. NaN where it is not positive definite.
const ir::Node* CholeskyFactor(Builder& b, const ir::Node* a);

// Householder's factorisation A = Q R of (batch, M, N): R is (batch, M, N), Q (batch, M, M). The
// signs are LAPACK's.
struct QrFactors {
  const ir::Node* q;
  const ir::Node* r;
};
QrFactors HouseholderQr(Builder& b, const ir::Node* a);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_ELIMINATION_H_
