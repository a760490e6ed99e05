"""Exponentials, logarithms and roots."""

from kiln._array_api.operands import Operand, unary
from kiln.tensor import Tensor


def exp(x: Operand, /) -> Tensor:
    """e to the power of x.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.exp(kiln.tensor([0.0, 1.0])))
    tensor([1.    , 2.7183], dtype=float32)
    """
    return unary("exp", x)


def exp2(x: Operand, /) -> Tensor:
    """2 to the power of x.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.exp2(kiln.tensor([0.5, 3.0])))
    tensor([1.4142, 8.    ], dtype=float32)
    """
    return unary("exp2", x)


def log(x: Operand, /) -> Tensor:
    """The natural logarithm; -inf at 0, NaN below.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.log(kiln.tensor([1.0, 10.0])))
    tensor([0.    , 2.3026], dtype=float32)
    """
    return unary("log", x)


def log2(x: Operand, /) -> Tensor:
    """The binary logarithm; -inf at 0, NaN below.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.log2(kiln.tensor([8.0, 10.0])))
    tensor([3.    , 3.3219], dtype=float32)
    """
    return unary("log2", x)


def sqrt(x: Operand, /) -> Tensor:
    """The square root; NaN below 0.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.sqrt(kiln.tensor([2.0, 9.0])))
    tensor([1.4142, 3.    ], dtype=float32)
    """
    return unary("sqrt", x)


def rsqrt(x: Operand, /) -> Tensor:
    """1 / sqrt(x).

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.rsqrt(kiln.tensor([2.0, 4.0])))
    tensor([0.7071, 0.5   ], dtype=float32)
    """
    return unary("rsqrt", x)


def erf(x: Operand, /) -> Tensor:
    """The error function.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.erf(kiln.tensor([0.0, 0.5])))
    tensor([0.    , 0.5205], dtype=float32)
    """
    return unary("erf", x)
