// Elimination in steps that are all alike: the matrix is rolled by one row and column after each,
// so that the pivot always stands at (0, 0), what is finished comes back at the other end, and one
// kernel serves every step. Internal to compiler/ops.
//
// Matrices are (batch, rows, columns), of float32 or float64.
#ifndef KILN_COMPILER_OPS_COMPOSITES_ELIMINATION_H_
#define KILN_COMPILER_OPS_COMPOSITES_ELIMINATION_H_

#include <vector>

#include "compiler/ops/builder.h"

namespace kiln::ops {

// The solution X of A X = B by Gauss-Jordan elimination; a (batch, n, n), b (batch, n, m). Rows are
// exchanged (partial pivoting of the matrix with its rows and columns brought to one magnitude)
// unless `a` is known to be lower triangular. A singular matrix gives infinities or NaN.
const ir::Node* SolveByElimination(Builder& b, const ir::Node* a, const ir::Node* rhs,
                                   bool is_lower);

// Of the pivots of Gauss elimination with complete pivoting, (batch, 1, 1) each. No pivot after a
// zero is anything else, so that the determinant's gradient is right for singular matrices too (and
// its second order for those that lack one rank).
struct Pivots {
  const ir::Node* product;     // the determinant
  const ir::Node* sign;        // its sign: -1, 0 or 1
  const ir::Node* log_of_all;  // the logarithm of its magnitude; -inf if it is 0
};
Pivots PivotsOf(Builder& b, const ir::Node* a);

// The lower triangular factor of a symmetric positive definite matrix, of which only the lower half
// is read. NaN where it is not positive definite.
const ir::Node* CholeskyFactor(Builder& b, const ir::Node* a);

// Householder's factorisation A = Q R of (batch, M, N): R is (batch, M, N). The signs are LAPACK's.
// (G. H. Golub and C. F. Van Loan, "Matrix Computations", 5.2.)
struct Reflection {
  const ir::Node* v;       // (batch, M, 1), at (0, 0) as the pivot was
  const ir::Node* factor;  // (batch, 1, 1): the reflection is I - factor v v^T
  const ir::Node* sign;    // (batch, M, 1) or (1, M, 1): 1, or -1 for a row to be turned back
};
struct QrFactors {
  const ir::Node* r;
  std::vector<Reflection> reflections;  // Q is their product
};
QrFactors HouseholderQr(Builder& b, const ir::Node* a);
// The first `columns` columns of Q: (batch, M, columns).
const ir::Node* ColumnsOfQ(Builder& b, const QrFactors& factors, int64_t columns);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_ELIMINATION_H_
