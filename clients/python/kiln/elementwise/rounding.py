"""Rounding to whole numbers."""

from kiln._operands import Operand, rounded
from kiln.tensor import Tensor


def ceil(x: Operand, /) -> Tensor:
    """Rounded up.

    Any shape. Any numeric dtype, which stays; integers are whole already.

    >>> print(kiln.ceil(kiln.tensor([1.2, -1.7])))
    tensor([ 2., -1.], dtype=float32)
    """
    return rounded("ceil", x)


def floor(x: Operand, /) -> Tensor:
    """Rounded down.

    Any shape. Any numeric dtype, which stays; integers are whole already.

    >>> print(kiln.floor(kiln.tensor([1.2, -1.7])))
    tensor([ 1., -2.], dtype=float32)
    """
    return rounded("floor", x)


def round(x: Operand, /) -> Tensor:
    """Rounded to the nearest whole number, halves to the even one.

    Any shape. Any numeric dtype, which stays; integers are whole already.

    >>> print(kiln.round(kiln.tensor([1.2, 2.5])))
    tensor([1., 2.], dtype=float32)
    """
    return rounded("round", x)


def trunc(x: Operand, /) -> Tensor:
    """Without the fraction.

    Any shape. Any numeric dtype, which stays; integers are whole already.

    >>> print(kiln.trunc(kiln.tensor([1.2, -1.7])))
    tensor([ 1., -1.], dtype=float32)
    """
    return rounded("trunc", x)


__all__ = [
    "ceil", "floor", "round", "trunc",
]  # fmt: skip
