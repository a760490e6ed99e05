// Elimination in identical steps: after each step the matrix is rotated by one row and column, so
// that the pivot is always at (0, 0), finished rows and columns move to the other end, and one
// kernel serves every step. Internal to compiler/ops.
//
// Matrices are (batch, rows, columns), of float32 or float64.
#ifndef KILN_COMPILER_OPS_COMPOSITES_ELIMINATION_H_
#define KILN_COMPILER_OPS_COMPOSITES_ELIMINATION_H_

#include <vector>

#include "compiler/ops/builder.h"

namespace kiln::ops {

// Solves A X = B by Gauss-Jordan elimination; a is (batch, n, n), rhs is (batch, n, m). Uses
// partial pivoting, on the matrix with its rows and columns scaled to one magnitude, unless `a` is
// known to be lower triangular. A singular matrix gives infinities or NaN.
const ir::Node* SolveByElimination(Builder& b, const ir::Node* a, const ir::Node* rhs,
                                   bool is_lower);

// The pivots of Gaussian elimination with complete pivoting, (batch, 1, 1) each. All pivots after a
// zero are zero, so the determinant's gradient is right for singular matrices too (and its second
// derivative for matrices of rank n - 1).
struct Pivots {
  const ir::Node* product;     // the determinant
  const ir::Node* sign;        // its sign: -1, 0 or 1
  const ir::Node* log_of_all;  // the logarithm of its magnitude; -inf if it is 0
};
Pivots PivotsOf(Builder& b, const ir::Node* a);

// Returns the lower triangular factor of a symmetric positive definite matrix. Reads only its lower
// half. NaN where the matrix is not positive definite.
const ir::Node* CholeskyFactor(Builder& b, const ir::Node* a);

// Householder's factorisation A = Q R of (batch, M, N): R is (batch, M, N). The signs are LAPACK's.
// (G. H. Golub and C. F. Van Loan, "Matrix Computations", 5.2.)
struct Reflection {
  const ir::Node* v;       // (batch, M, 1); the pivot is at (0, 0)
  const ir::Node* factor;  // (batch, 1, 1): the reflection is I - factor v v^T
  const ir::Node* sign;    // (batch, M, 1) or (1, M, 1): 1, or -1 for a row to be negated
};
struct QrFactors {
  const ir::Node* r;
  std::vector<Reflection> reflections;  // Q is their product
};
QrFactors HouseholderQr(Builder& b, const ir::Node* a);
// Returns the first `columns` columns of Q: (batch, M, columns).
const ir::Node* ColumnsOfQ(Builder& b, const QrFactors& factors, int64_t columns);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_ELIMINATION_H_
