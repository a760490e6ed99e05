"""Matrix products, as the Python array API standard has them."""

from kiln._errors import InvalidArgument
from kiln._operands import Operand, binary
from kiln.tensor import Tensor


def matmul(x1: Operand, x2: Operand, /) -> Tensor:
    """The matrix product, as NumPy's: leading dimensions broadcast, vectors lend a dimension.

    Shapes (…, N, K) and (…, K, M) give (…, N, M). Numeric; the two promote.

    >>> kiln.matmul(kiln.tensor([[1, 2], [3, 4]]), kiln.tensor([1, 1])).tolist()
    [3, 7]
    """
    return binary("matmul", x1, x2)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dimensions exchanged.

    >>> kiln.matrix_transpose(kiln.ones(2, 3, 4)).shape
    (2, 4, 3)
    """
    if x.ndim < 2:
        raise InvalidArgument(f"matrix_transpose of shape {x.shape}; it must be (…, rows, columns)")
    return x.mT


__all__ = ["matmul", "matrix_transpose"]
