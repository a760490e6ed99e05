"""The linear algebra extension of the Python array API standard.

Functions that need iterations (eigenvalues, singular values: eigh, svd, pinv, matrix_rank) are
missing.
"""

# Generated from names.txt by generate_names, except for the docstring; do not edit.
from kiln._array_api.factorization import (
    cholesky,
    det,
    inv,
    matrix_norm,
    matrix_power,
    qr,
    slogdet,
    solve,
    solve_triangular,
    vector_norm,
)
from kiln._array_api.linear_algebra import (
    cross,
    diagonal,
    matmul,
    matrix_transpose,
    outer,
    tensordot,
    trace,
    vecdot,
)

__all__ = [
    "cholesky", "cross", "det", "diagonal", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_transpose", "outer", "qr", "slogdet", "solve", "solve_triangular", "tensordot", "trace",
    "vecdot", "vector_norm",
]
