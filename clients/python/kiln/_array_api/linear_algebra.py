"""Products of matrices and vectors, and diagonals, as in the Python array API standard.

Matrices are the last two dimensions; leading ones are a batch.
"""

import builtins
from typing import Any, Sequence, Tuple, Union

from kiln._array_api.operands import Operand
from kiln._array_api.statistical import sum
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import also, torch_names
from kiln._rules import NUMBER, normalize_axis, whole
from kiln._tensor.base import tensor_of
from kiln._tensor.contractions import contracted
from kiln.tensor import Tensor, apply

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def require_matrix(name: str, x: Tensor) -> None:
    """Raises InvalidArgument unless x is a matrix or a batch of them."""
    if x.ndim < 2:
        raise InvalidArgument(f"{name} of shape {x.shape}; it must be (…, rows, columns)")


# Products.


def matmul(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns the matrix product, as in NumPy: leading dimensions broadcast; vectors are allowed.

    Shapes (…, N, K) and (…, K, M) give (…, N, M). The two promote; for bools the result is whether
    any product is true.

    >>> kiln.matmul(kiln.tensor([[1, 2], [3, 4]]), kiln.tensor([1, 1])).tolist()
    [3, 7]
    """
    return contracted("matmul", (x1, x2))


def einsum(equation: str, *operands: Operand) -> Tensor:
    """Returns the sum of products that an equation describes, as NumPy's einsum.

    Letters name dimensions: "bij,bjk->bik" is a batch of matrix products. A letter that is not in
    the result is summed, one repeated in an operand takes its diagonal, "..." stands for the other
    dimensions, which broadcast. Without "->" the result has the letters that occur once, in
    alphabetical order. Operands promote; for bools the result is whether any product is true. The
    cheapest order of contractions is used. Raises InvalidArgument for an equation that does not
    fit.

    >>> a, b = kiln.tensor([[1, 2], [3, 4]]), kiln.tensor([[1, 0], [1, 1]])
    >>> kiln.einsum("ij,jk->ik", a, b).tolist(), kiln.einsum("ii", a).item()
    ([[3, 2], [7, 4]], 5)
    """
    return contracted("einsum", operands, equation=equation)


@also(dims="axes")
def tensordot(x1: Tensor, x2: Tensor, /, *,
              axes: Union[int, Tuple[Sequence[int], Sequence[int]]] = 2) -> Tensor:
    """Returns the sum of products over axes of both tensors.

    `axes` is a number, for the last axes of x1 and the first of x2, or a list of axes for each.
    Raises InvalidArgument if their sizes differ.

    >>> kiln.tensordot(kiln.ones(2, 3), kiln.ones(3, 4), axes=1).tolist()
    [[3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0]]
    """
    if isinstance(axes, NUMBER):
        axes = whole(axes, "axes")
        if not 0 <= axes <= (x1.ndim if x1.ndim < x2.ndim else x2.ndim):
            raise InvalidArgument(
                f"tensordot over {axes} axes of shapes {x1.shape} and {x2.shape}; both must have "
                "that many")
        first = list(range(x1.ndim - axes, x1.ndim))
        second = list(range(axes))
    else:
        first = [normalize_axis(axis, x1.ndim) for axis in axes[0]]
        second = [normalize_axis(axis, x2.ndim) for axis in axes[1]]
        if len(first) != len(second):
            raise InvalidArgument(
                f"tensordot over {len(first)} axes of one and {len(second)} of the other; both "
                "numbers must be equal")
    left = list(_LETTERS[: x1.ndim])
    right = list(_LETTERS[x1.ndim : x1.ndim + x2.ndim])
    for i, j in zip(first, second):
        if x1.shape[i] != x2.shape[j]:
            raise InvalidArgument(
                f"tensordot of axis {i} of shape {x1.shape} with axis {j} of shape {x2.shape}; "
                "both must have one size")
        right[j] = left[i]
    kept = [left[i] for i in range(x1.ndim) if i not in first]
    kept += [right[j] for j in range(x2.ndim) if j not in second]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(kept)}", x1, x2)


@torch_names
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Returns the sum of products along an axis; other dimensions broadcast.

    For different ranks the axis must be counted from the end; otherwise, and for different sizes,
    it raises InvalidArgument.

    >>> kiln.vecdot(kiln.tensor([[1, 2], [3, 4]]), kiln.tensor([1, 1])).tolist()
    [3, 7]
    """
    if whole(axis, "axis") >= 0 and x1.ndim != x2.ndim:
        raise InvalidArgument(
            f"vecdot along axis {axis} of shapes {x1.shape} and {x2.shape}; for different ranks, "
            "count the axis from the end")
    first = normalize_axis(axis, x1.ndim)
    second = normalize_axis(axis, x2.ndim)
    if x1.shape[first] != x2.shape[second]:
        raise InvalidArgument(
            f"vecdot along axis {axis} of shapes {x1.shape} and {x2.shape}; both must have one "
            "size there")
    return einsum("...i,...i->...", x1.moveaxis(first, -1), x2.moveaxis(second, -1))


def inner(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the sums of products over the last axes of both, as in NumPy.

    >>> kiln.inner(kiln.tensor([1, 2]), kiln.tensor([3, 4])).item()
    11
    """
    if x1.ndim == 0 or x2.ndim == 0:
        return x1 * x2
    return tensordot(x1, x2, axes=([-1], [-1]))


def vdot(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the sum of products of all elements of two tensors of one size.

    >>> kiln.vdot(kiln.tensor([[1, 2]]), kiln.tensor([3, 4])).item()
    11
    """
    return vecdot(x1.flatten(), x2.flatten())


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the products of each element of one vector with each of another.

    >>> kiln.outer(kiln.tensor([1, 2]), kiln.tensor([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    if x1.ndim != 1 or x2.ndim != 1:
        raise InvalidArgument(f"outer of shapes {x1.shape} and {x2.shape}; both must be vectors")
    return x1.unsqueeze(1) * x2


def kron(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the Kronecker product: blocks of x2 times each element of x1.

    >>> kiln.kron(kiln.tensor([1, 2]), kiln.tensor([1, 1])).tolist()
    [1, 1, 2, 2]
    """
    rank = x1.ndim if x1.ndim > x2.ndim else x2.ndim
    left = [1] * (rank - x1.ndim) + list(x1.shape)
    right = [1] * (rank - x2.ndim) + list(x2.shape)
    a = x1.reshape([size for pair in zip(left, [1] * rank) for size in pair])
    b = x2.reshape([size for pair in zip([1] * rank, right) for size in pair])
    return (a * b).reshape([i * j for i, j in zip(left, right)])


@torch_names
def cross(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Tensor:
    """Returns the cross product of vectors of 3 along an axis. Shapes broadcast, dtypes promote.

    >>> kiln.cross(kiln.tensor([1, 0, 0]), kiln.tensor([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    return apply("cross", (x1, x2), axis=whole(axis, "axis"))


# Views.


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Exchanges the last two dimensions.

    >>> kiln.matrix_transpose(kiln.ones(2, 3, 4)).shape
    (2, 4, 3)
    """
    require_matrix("matrix_transpose", x)
    return x.mT


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Returns the diagonals of matrices as a last dimension.

    They are `offset` columns to the right of the main one.

    >>> kiln.linalg.diagonal(kiln.tensor([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    require_matrix("diagonal", x)
    return x._op("diagonal", offset=whole(offset, "offset"), axis1=-2, axis2=-1)


def diag_embed(x: Tensor, /, offset: int = 0) -> Tensor:
    """Returns matrices with x's last dimension as their diagonals, zero elsewhere.

    >>> kiln.diag_embed(kiln.tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    return x._op("diag_embed", offset=whole(offset, "offset"))


def diag(x: Tensor, /, offset: int = 0) -> Tensor:
    """Returns a matrix with a vector as its diagonal, or a matrix's diagonal as a vector.

    >>> kiln.diag(kiln.tensor([1, 2])).tolist(), kiln.diag(kiln.tensor([[1, 2], [3, 4]])).tolist()
    ([[1, 0], [0, 2]], [1, 4])
    """
    if x.ndim not in (1, 2):
        raise InvalidArgument(f"diag of shape {x.shape}; it must be a vector or a matrix")
    return diag_embed(x, offset) if x.ndim == 1 else diagonal(x, offset=offset)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Returns the sum over a diagonal of matrices, in the dtype of sum.

    >>> kiln.linalg.trace(kiln.tensor([[1, 2], [3, 4]])).item()
    5
    """
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def block_diag(*tensors: Operand) -> Tensor:
    """Places matrices along the diagonal of one that is zero elsewhere.

    Vectors count as rows, numbers as 1 by 1. Dtypes promote. Raises InvalidArgument for more
    dimensions, and without tensors.

    >>> kiln.block_diag(kiln.tensor([[1, 2]]), kiln.tensor([[3], [4]])).tolist()
    [[1, 2, 0], [0, 0, 3], [0, 0, 4]]
    """
    if not tensors:
        raise InvalidArgument("block_diag of nothing; it takes one tensor or more")
    blocks = [tensor_of(tensor) for tensor in tensors]
    for block in blocks:
        if block.ndim > 2:
            raise InvalidArgument(f"block_diag of shape {block.shape}; it must be a matrix")
    blocks = [block.reshape(*(1,) * (2 - block.ndim), *block.shape) for block in blocks]
    # `sum` is the array API's in this module.
    width = builtins.sum(block.shape[1] for block in blocks)
    rows, before = [], 0
    for block in blocks:
        after = width - before - block.shape[1]
        rows.append(block._op("pad", padding=(0, 0, before, after)))
        before += block.shape[1]
    return apply("concat", rows, axis=0)
