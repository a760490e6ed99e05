"""Norms, factorizations and linear systems, as in the Python array API standard.

Matrices are the last two dimensions; leading ones are a batch. A factorization takes as many steps
as a matrix has columns, at most 512.
"""

from typing import NamedTuple, Optional, Union

from kiln._array_api.creation import eye
from kiln._array_api.linear_algebra import require_matrix
from kiln._array_api.operands import binary
from kiln._array_api.statistical import Axis, max, min, reduced
from kiln._basics.errors import InvalidArgument
from kiln._rules import flag, whole
from kiln._tensor.base import tensor_of
from kiln._tensor.reductions import require_elements
from kiln._tensor.shapes import axes_tuple
from kiln.tensor import Tensor, apply


class QRResult(NamedTuple):
    """The result of qr()."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The result of slogdet()."""

    sign: Tensor
    logabsdet: Tensor


def _require_square(name: str, x: Tensor) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise InvalidArgument(f"{name} of shape {x.shape}; it must be (…, N, N), square matrices")


def vector_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False,
                ord: float = 2) -> Tensor:
    """Returns the norm of order ord over axes: sum(|x|**ord)**(1/ord).

    inf is the largest |x|, -inf the smallest, 0 the count of elements that are not 0. Integers
    become float32; the gradient at 0 is 0. Infinite orders raise InvalidArgument if there is no
    element.

    >>> kiln.linalg.vector_norm(kiln.tensor([3.0, 4.0])).item()
    5.0
    """
    source = tensor_of(x)
    if abs(ord) == float("inf") and (axis is None or axes_tuple(axis)):
        require_elements("the norm of order inf", source.shape,
                         () if axis is None else axes_tuple(axis))
    return reduced("vector_norm", source, axis, keepdims, ord=float(ord))


def matrix_norm(x: Tensor, /, *, keepdims: bool = False,
                ord: Optional[Union[int, float, str]] = "fro") -> Tensor:
    """Returns the norm of matrices: "fro" is the root of the sum of squares.

    1 and -1 are the largest and smallest sum of a column's magnitudes, inf and -inf of a row's. The
    orders of singular values (2, -2, "nuc") raise InvalidArgument: Kiln has no singular value
    decomposition.

    >>> kiln.linalg.matrix_norm(kiln.tensor([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    require_matrix("matrix_norm", x)
    if ord in ("fro", None):
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord not in (1, -1, float("inf"), float("-inf")):
        raise InvalidArgument(
            f'matrix_norm of order {ord!r}; it must be "fro", 1, -1, inf or -inf')
    summed, chosen = (-2, -1) if ord in (1, -1) else (-1, -2)
    sums = vector_norm(x, axis=summed, keepdims=True, ord=1)
    extreme = max if ord in (1, float("inf")) else min
    result = extreme(sums, axis=chosen, keepdims=True)
    return result if keepdims else result.squeeze(-1).squeeze(-1)


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Returns the lower triangular L of symmetric positive definite matrices L @ L.mT.

    With `upper` it is the upper U of U.mT @ U. Only that half of x is read; a matrix that is not
    positive definite gives NaN. Raises InvalidArgument for matrices that are not square.

    >>> kiln.linalg.cholesky(kiln.tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    _require_square("cholesky", x)
    return x._op("cholesky", upper=flag(upper, "upper"))


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Returns Q with orthonormal columns and upper triangular R, x = Q @ R, with LAPACK's signs.

    For matrices (M, N) and K = min(M, N), "reduced" gives (M, K) and (K, N), "complete" (M, M) and
    (M, N). Another mode raises InvalidArgument.

    >>> [part.shape for part in kiln.linalg.qr(kiln.ones(3, 2))]
    [(3, 2), (2, 2)]
    """
    if mode not in ("reduced", "complete"):
        raise InvalidArgument(f'qr\'s mode "{mode}"; it must be "reduced" or "complete"')
    complete = mode == "complete"
    return QRResult(
        x._op("qr", part="q", complete=complete), x._op("qr", part="r", complete=complete))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns X of x1 @ X = x2; x2 is a vector or (…, N, M), and leading dimensions broadcast.

    Uses elimination with partial pivoting; a singular x1 gives infinities or NaN.

    >>> kiln.linalg.solve(kiln.tensor([[2.0, 0.0], [0.0, 4.0]]), kiln.tensor([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    return binary("solve", x1, x2)


def solve_triangular(x1: Tensor, x2: Tensor, /, *, upper: bool = False,
                     unit_diagonal: bool = False) -> Tensor:
    """Returns X of x1 @ X = x2 for triangular x1, of which only the lower (or upper) half is read.

    With unit_diagonal its diagonal is taken as ones.

    >>> a = kiln.tensor([[2.0, 9.0], [1.0, 4.0]])
    >>> kiln.linalg.solve_triangular(a, kiln.tensor([2.0, 9.0])).tolist()
    [1.0, 2.0]
    """
    return apply(
        "triangular_solve", (x1, x2), upper=flag(upper, "upper"),
        unit_diagonal=flag(unit_diagonal, "unit_diagonal"))


def inv(x: Tensor, /) -> Tensor:
    """Returns the inverse of square matrices; a singular one gives infinities or NaN.

    >>> kiln.linalg.inv(kiln.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    _require_square("inv", x)
    return x._op("inv")


def det(x: Tensor, /) -> Tensor:
    """Returns the determinant of square matrices.

    >>> kiln.linalg.det(kiln.tensor([[1.0, 2.0], [0.0, 4.0]])).item()
    4.0
    """
    return x._op("det")


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Returns the determinant's sign and the logarithm of its magnitude; 0 and -inf if it is 0.

    >>> [part.item() for part in kiln.linalg.slogdet(kiln.tensor([[0.0, 1.0], [1.0, 0.0]]))]
    [-1.0, 0.0]
    """
    return SlogdetResult(x._op("slogdet_sign"), x._op("slogdet_logabs"))


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Returns square matrices to an integer power, by squaring; a negative one inverts first.

    >>> kiln.linalg.matrix_power(kiln.tensor([[1, 1], [0, 1]]), 5).tolist()
    [[1, 5], [0, 1]]
    """
    _require_square("matrix_power", x)
    if whole(n, "n") < 0:
        return matrix_power(inv(x), -n)
    if n == 0:
        return eye(x.shape[-1], dtype=x.dtype).expand(x.shape)
    result = None
    while True:
        if n & 1:
            result = x if result is None else result @ x
        n >>= 1
        if n == 0:
            return result  # type: ignore[return-value]
        x = x @ x
