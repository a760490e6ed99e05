"""torch.linalg: matrices. Spectral decompositions are computed by NumPy, without gradients."""

import math
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from kiln._array_api import factorization, linear_algebra
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _creation, _defaults, _products, _reducing
from kiln.torch._functions import with_out
from kiln.torch._scalars import as_rows
from kiln.torch._tensor import adopt, convert


class Inverse(NamedTuple):
    """A matrix, and 0 or the number of the step that failed."""

    inverse: Any
    info: Any


class Factor(NamedTuple):
    """A Cholesky factor, and 0 or the number of the step that failed."""

    L: Any
    info: Any


class Solution(NamedTuple):
    """The result of solve_ex."""

    result: Any
    info: Any


class QR(NamedTuple):
    """An orthogonal and an upper triangular matrix."""

    Q: Any
    R: Any


class Eigen(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class SVD(NamedTuple):
    """Singular vectors and values."""

    U: Any
    S: Any
    Vh: Any


class LeastSquares(NamedTuple):
    """The solution of lstsq and what is known of the matrix."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


class LU(NamedTuple):
    """A permutation, a lower and an upper triangular matrix."""

    P: Any
    L: Any
    U: Any


class LUFactor(NamedTuple):
    """Both triangular matrices in one, and the exchanges of rows, counted from 1."""

    LU: Any
    pivots: Any


class LUFactorEx(NamedTuple):
    """As LUFactor, and 0 or the number of the step that failed."""

    LU: Any
    pivots: Any
    info: Any


def _info(x: Any) -> Any:
    return _creation.zeros(*x.shape[:-2], dtype=dtypes.BY_NAME["int32"])


def _values(name: str, x: Any) -> Any:
    """Returns the values of x as an array; raises InvalidArgument if it wants a gradient."""
    tensor = convert(x)
    if tensor.requires_grad:
        raise InvalidArgument(f"the gradient of {name}, which NumPy computes; detach() its "
                              "argument")
    return tensor.numpy()


def _as(x: Any, array: Any) -> Any:
    wanted = convert(x).dtype
    return adopt(KilnTensor(np.asarray(array), wanted))


matmul = with_out(lambda input, other: convert(input) @ convert(other))
matmul.__name__ = matmul.__qualname__ = "matmul"
matmul.__doc__ = "Returns the product of two matrices."


def cross(input: Any, other: Any, *, dim: int = -1) -> Any:
    """Returns the cross products along a dimension of size 3."""
    return linear_algebra.cross(convert(input), convert(other), axis=dim)


def cholesky(input: Any, *, upper: bool = False) -> Any:
    """Returns the Cholesky factor."""
    return factorization.cholesky(convert(input), upper=upper)


def cholesky_ex(input: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Returns the Cholesky factor; NaN for a matrix that is not positive definite."""
    factor = cholesky(input, upper=upper)
    failed = factor.isnan().any(-1).any(-1)._cast(dtypes.BY_NAME["int32"])
    return Factor(factor, failed)


def inv(A: Any) -> Any:
    """Returns the inverse matrix."""
    return factorization.inv(convert(A))


def inv_ex(A: Any, *, check_errors: bool = False) -> Any:
    """Returns the inverse matrix."""
    return Inverse(inv(A), _info(convert(A)))


def solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """Returns X with A X = B, or X A = B without `left`."""
    a, b = convert(A), convert(B)
    if left:
        return factorization.solve(a, b)
    return factorization.solve(a.mT, b.mT).mT


def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """Returns X with A X = B."""
    return Solution(solve(A, B, left=left), _info(convert(A)))


def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> Any:
    """Returns X with A X = B for a triangular matrix A."""
    a, b = convert(A), convert(B)
    a = a.triu() if upper else a.tril()
    if unitriangular:
        size = a.shape[-1]
        unit = _creation.eye(size, dtype=a.dtype)
        a = a * (1 - unit) + unit
    if not left:
        return factorization.solve_triangular(a.mT, b.mT, upper=not upper).mT
    return factorization.solve_triangular(a, b, upper=upper)


def det(A: Any) -> Any:
    """Returns the determinant."""
    return factorization.det(convert(A))


def slogdet(A: Any) -> Any:
    """Returns the sign of the determinant and the logarithm of its magnitude."""
    return factorization.slogdet(convert(A))


def qr(A: Any, mode: str = "reduced") -> Any:
    """Returns the factors Q and R."""
    if mode == "r":
        return QR(_creation.zeros(0), factorization.qr(convert(A)).R)
    return QR(*factorization.qr(convert(A), mode=mode))


def matrix_power(A: Any, n: int) -> Any:
    """Returns the n-th power of a matrix."""
    return factorization.matrix_power(convert(A), n)


@as_rows
def vector_norm(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, *,
                dtype: Any = None) -> Any:
    """Returns the vector norm of an order."""
    return _reducing.norm(convert(x), float(ord), dim, keepdim, dtype)


def matrix_norm(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *,
                dtype: Any = None) -> Any:
    """Returns the matrix norm of an order."""
    x = convert(A) if dtype is None else convert(A)._cast(_defaults.as_dtype(dtype))
    rows, columns = (axis % x.ndim for axis in dim)
    if ord == "fro":
        return _reducing.norm(x, 2, (rows, columns), keepdim)
    if ord in (1, -1, math.inf, -math.inf):
        along, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = x.abs().sum(along, keepdim=True)
        result = sums.amax(other, True) if ord > 0 else sums.amin(other, True)
        return result if keepdim else result.squeeze((rows, columns))
    moved = x.movedim((rows, columns), (-2, -1))
    values = svdvals(moved)
    result = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    if not keepdim:
        return result
    for axis in sorted((rows, columns)):
        result = result.unsqueeze(axis)
    return result


def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *,
         dtype: Any = None) -> Any:
    """Returns a vector norm, or with two dims or a name a matrix norm."""
    x = convert(A)
    if isinstance(ord, str) or (isinstance(dim, (tuple, list)) and len(dim) == 2) or (
            ord is not None and dim is None and x.ndim == 2):
        return matrix_norm(x, "fro" if ord is None else ord, dim or (-2, -1), keepdim, dtype=dtype)
    return vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Returns the diagonals of matrices."""
    return convert(A).diagonal(offset, dim1, dim2)


def multi_dot(tensors: Any) -> Any:
    """Returns the product of several matrices."""
    return _products.chain_matmul(*tensors)


def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """Returns the inner products along a dimension."""
    return (convert(x) * convert(y)).sum(dim)


def vander(x: Any, N: Optional[int] = None) -> Any:
    """Returns the powers of a vector's elements, rising."""
    return _creation.vander(x, N, True)


def _triangle(name: str) -> Any:
    if name not in ("L", "U"):
        raise InvalidArgument(f'UPLO is {name!r}; it must be "L" or "U"')
    return name


def eigh(A: Any, UPLO: str = "L") -> Any:
    """Returns the eigenvalues of a symmetric matrix, rising, and its eigenvectors."""
    values, vectors = np.linalg.eigh(_values("eigh", A), _triangle(UPLO))
    return Eigen(_as(A, values), _as(A, vectors))


def eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """Returns the eigenvalues of a symmetric matrix, rising."""
    return _as(A, np.linalg.eigvalsh(_values("eigvalsh", A), _triangle(UPLO)))


def matrix_sqrth(A: Any) -> Any:
    """Returns the square root of a symmetric positive definite matrix."""
    values, vectors = eigh(A)
    return (vectors * values.sqrt().unsqueeze(-2)) @ vectors.mT


def svd(A: Any, full_matrices: bool = True, *, driver: Optional[str] = None) -> Any:
    """Returns the singular value decomposition."""
    parts = np.linalg.svd(_values("svd", A), full_matrices)
    return SVD(*[_as(A, part) for part in parts])


def svdvals(A: Any, *, driver: Optional[str] = None) -> Any:
    """Returns the singular values, falling."""
    return _as(A, np.linalg.svd(_values("svdvals", A), compute_uv=False))


def cond(A: Any, p: Any = None) -> Any:
    """Returns the condition number."""
    array = _values("cond", A)
    return _as(A, np.reshape(np.linalg.cond(array, p), array.shape[:-2]))


def pinv(A: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """Returns the pseudoinverse."""
    array = _values("pinv", A)
    left, sizes, right = np.linalg.svd(array, full_matrices=False)
    limit = _limit(array, sizes, atol, rtol)
    usable = sizes > limit
    inverse = np.where(usable, 1 / np.where(usable, sizes, 1), 0)
    return _as(A, np.swapaxes(right, -1, -2) * inverse[..., None, :] @ np.swapaxes(left, -1, -2))


def _limit(array: Any, sizes: Any, atol: Any, rtol: Any) -> Any:
    """Returns the size below which singular values count as 0."""
    least = 0.0 if atol is None else float(atol)
    if rtol is None:
        rtol = max(array.shape[-2:]) * np.finfo(array.dtype).eps if not least else 0.0
    return np.maximum(least, float(rtol) * sizes.max(-1, keepdims=True))


def matrix_rank(A: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """Returns the number of singular values that are not 0."""
    array = _values("matrix_rank", A)
    sizes = np.linalg.svd(array, compute_uv=False)
    return convert((sizes > _limit(array, sizes, atol, rtol)).sum(-1))


def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: Optional[str] = None) -> Any:
    """Returns the least-squares solution of A X = B."""
    a, b = _values("lstsq", A), _values("lstsq", B)
    if a.ndim > 2:
        parts = [np.linalg.lstsq(one, two, rcond=rcond)[0] for one, two in zip(
            a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:]))]
        solution = np.stack(parts).reshape(*a.shape[:-2], *parts[0].shape)
        return LeastSquares(_as(A, solution), _creation.zeros(0), matrix_rank(A),
                            _creation.zeros(0))
    found: Any = np.linalg.lstsq(a, b, rcond=rcond)
    return LeastSquares(_as(A, found[0]), _as(A, found[1]), convert(np.asarray(found[2])),
                        _creation.zeros(0))


def _eliminated(array: Any) -> Any:
    """Returns L and U in one matrix, the exchanges of rows, and the order of rows."""
    matrix = np.array(array, copy=True)
    rows, columns = matrix.shape
    order, pivots = np.arange(rows), []
    for step in range(min(rows, columns)):
        best = step + int(np.abs(matrix[step:, step]).argmax())
        pivots.append(best + 1)
        if best != step:
            matrix[[step, best]] = matrix[[best, step]]
            order[[step, best]] = order[[best, step]]
        if matrix[step, step] != 0:
            matrix[step + 1:, step] /= matrix[step, step]
            matrix[step + 1:, step + 1:] -= np.outer(matrix[step + 1:, step],
                                                     matrix[step, step + 1:])
    return matrix, np.array(pivots, np.int32), order


def _batched(function: Callable[[Any], Any], array: Any) -> Any:
    found = [function(one) for one in array.reshape(-1, *array.shape[-2:])]
    return [np.stack(parts).reshape(*array.shape[:-2], *parts[0].shape) for parts in zip(*found)]


def lu_factor(A: Any, *, pivot: bool = True) -> Any:
    """Returns the triangular matrices in one, and the exchanges of rows."""
    both, pivots, _ = _batched(_eliminated, _values("lu_factor", A))
    return LUFactor(_as(A, both), convert(pivots))


def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """Returns the triangular matrices in one, and the exchanges of rows."""
    both, pivots = lu_factor(A)
    return LUFactorEx(both, pivots, _info(convert(A)))


def lu(A: Any, *, pivot: bool = True) -> Any:
    """Returns a permutation, a lower and an upper triangular matrix whose product is A."""

    def parts(one: Any) -> Any:
        both, _, order = _eliminated(one)
        size = min(both.shape)
        lower = np.tril(both[:, :size], -1) + np.eye(both.shape[0], size)
        return np.eye(both.shape[0])[:, order], lower, np.triu(both[:size])

    return LU(*[_as(A, part) for part in _batched(parts, _values("lu", A))])


def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """Solves A X = B by what lu_factor returned."""
    both, b = convert(LU), convert(B)
    exchanges = convert(pivots).numpy()
    if both.ndim > 2:
        raise InvalidArgument(f"lu_solve of shape {tuple(both.shape)}; it takes one matrix")
    order = np.arange(both.shape[-1])
    for step, other in enumerate(exchanges):
        order[[step, other - 1]] = order[[other - 1, step]]
    lower = solve_triangular(both, b[convert(order)], upper=False, unitriangular=True)
    return solve_triangular(both, lower, upper=True)


def matrix_exp(A: Any) -> Any:
    """Returns the exponential of a matrix, by scaling and squaring of its series."""
    x = convert(A)
    size = float(x.detach().abs().sum(-1).amax().item()) if x.numel() else 0.0
    halvings = max(0, math.ceil(math.log2(size)) + 2) if size > 0.25 else 0
    scaled = x / 2.0 ** halvings
    term = result = _creation.eye(x.shape[-1], dtype=x.dtype).expand(x.shape)
    for i in range(1, 14):
        term = term @ scaled / i
        result = result + term
    for _ in range(halvings):
        result = result @ result
    return result


def tensorinv(A: Any, ind: int = 2) -> Any:
    """Returns the inverse for tensordot."""
    x = convert(A)
    rows = math.prod(x.shape[ind:])
    return inv(x.reshape(-1, rows)).reshape(*x.shape[ind:], *x.shape[:ind])


def tensorsolve(A: Any, B: Any, dims: Any = None) -> Any:
    """Returns X with tensordot(A, X) = B."""
    a, b = convert(A), convert(B)
    if dims is not None:
        a = a.movedim(tuple(dims), tuple(range(a.ndim - len(dims), a.ndim)))
    shape = a.shape[b.ndim:]
    return factorization.solve(a.reshape(-1, math.prod(shape)), b.reshape(-1)).reshape(shape)


def householder_product(A: Any, tau: Any) -> Any:
    """Returns the product of Householder matrices."""
    x, factors = convert(A), convert(tau)
    rows, columns = x.shape[-2:]
    result = _creation.eye(rows, dtype=x.dtype)
    for i in range(factors.shape[-1]):
        place = convert(np.arange(rows))
        vector = x[..., :, i].where(place > i, 0.0) + (place == i)._cast(x.dtype)
        result = result - factors[..., i, None, None] * (
            (result @ vector.unsqueeze(-1)) * vector.unsqueeze(-2))
    return result[..., :, :columns]


for _name in ("cross", "cholesky", "inv", "solve", "solve_triangular", "det", "vector_norm",
              "matrix_norm", "norm", "multi_dot", "vecdot", "matrix_power"):
    globals()[_name] = with_out(globals()[_name])

__all__ = [
    "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh",
    "householder_product", "inv", "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex",
    "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_sqrth", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex",
    "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot",
    "vector_norm",
]  # fmt: skip
