"""Elementwise arithmetic."""

from kiln._array_api.operands import Operand, arithmetic, binary, power, unary
from kiln._tensor.base import tensor_of
from kiln.tensor import Tensor


def abs(x: Operand, /) -> Tensor:
    """The absolute value; the lowest signed integer wraps to itself.

    Any shape. Numeric; the dtype stays.

    >>> print(kiln.abs(kiln.tensor([-1.5, 2.0])))
    tensor([1.5, 2. ], dtype=float32)
    """
    return unary("abs", x)


def add(x1: Operand, x2: Operand, /) -> Tensor:
    """The sum; integers wrap; for two bools, whether either is true.

    Shapes broadcast; either may be a Python number. Numeric; the two promote.

    >>> print(kiln.add(kiln.tensor([1.0, 2.0]), kiln.tensor([3.0, 5.0])))
    tensor([4., 7.], dtype=float32)
    """
    return arithmetic("add", x1, x2)


def subtract(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 - x2; integers wrap; raises InvalidArgument for two bools.

    Shapes broadcast; either may be a Python number. Numeric; the two promote.

    >>> print(kiln.subtract(kiln.tensor([1.0, 2.0]), kiln.tensor([3.0, 5.0])))
    tensor([-2., -3.], dtype=float32)
    """
    return arithmetic("sub", x1, x2)


def multiply(x1: Operand, x2: Operand, /) -> Tensor:
    """The product; integers wrap; for two bools, whether both are true.

    Shapes broadcast; either may be a Python number. Numeric; the two promote.

    >>> print(kiln.multiply(kiln.tensor([1.0, 2.0]), kiln.tensor([3.0, 5.0])))
    tensor([ 3., 10.], dtype=float32)
    """
    return arithmetic("mul", x1, x2)


def divide(x1: Operand, x2: Operand, /) -> Tensor:
    """The quotient, as floats; IEEE's infinities and NaN where x2 is 0.

    Shapes broadcast; either may be a Python number. The two promote; integers and bools become
    float32.

    >>> print(kiln.divide(kiln.tensor([1.0, 2.0]), kiln.tensor([4.0, 5.0])))
    tensor([0.25, 0.4 ], dtype=float32)
    """
    return binary("div", x1, x2)


def floor_divide(x1: Operand, x2: Operand, /) -> Tensor:
    """The quotient rounded down, like Python's //; integers give 0 where x2 is 0.

    Shapes broadcast; either may be a Python number. Numeric; the two promote.

    >>> print(kiln.floor_divide(kiln.tensor([7, -7]), kiln.tensor([2, 2])))
    tensor([ 3, -4], dtype=int64)
    """
    return arithmetic("floor_divide", x1, x2)


def remainder(x1: Operand, x2: Operand, /) -> Tensor:
    """The remainder with x2's sign, like Python's %; integers give 0 where x2 is 0.

    Shapes broadcast; either may be a Python number. Numeric; the two promote.

    >>> print(kiln.remainder(kiln.tensor([7, -7]), kiln.tensor([3, 3])))
    tensor([1, 2], dtype=int64)
    """
    return arithmetic("remainder", x1, x2)


def pow(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 to the power of x2; integers give an integer, which wraps.

    Shapes broadcast; either may be a Python number. Numeric; the two promote.

    >>> print(kiln.pow(kiln.tensor([2.0, 3.0]), kiln.tensor([3.0, 2.0])))
    tensor([8., 9.], dtype=float32)
    """
    return power(x1, x2)


def negative(x: Operand, /) -> Tensor:
    """-x; unsigned integers wrap.

    Any shape. Numeric; the dtype stays.

    >>> print(kiln.negative(kiln.tensor([1.5, -2.0])))
    tensor([-1.5,  2. ], dtype=float32)
    """
    return unary("neg", x)


def positive(x: Operand, /) -> Tensor:
    """x itself.

    Any shape. Numeric; the dtype stays.

    >>> print(kiln.positive(kiln.tensor([1.5, -2.0])))
    tensor([ 1.5, -2. ], dtype=float32)
    """
    return tensor_of(x)


def reciprocal(x: Operand, /) -> Tensor:
    """1 / x.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.reciprocal(kiln.tensor([2.0, 4.0])))
    tensor([0.5 , 0.25], dtype=float32)
    """
    return unary("reciprocal", x)


def square(x: Operand, /) -> Tensor:
    """x * x.

    Any shape. Numeric; the dtype stays, except that bools become int64.

    >>> print(kiln.square(kiln.tensor([3.0, -2.0])))
    tensor([9., 4.], dtype=float32)
    """
    return tensor_of(x).square()


def sign(x: Operand, /) -> Tensor:
    """The sign of x: -1, 0 or 1; NaN stays NaN.

    Any shape. Numeric; the dtype stays.

    >>> print(kiln.sign(kiln.tensor([3.0, -2.0])))
    tensor([ 1., -1.], dtype=float32)
    """
    return unary("sign", x)


def maximum(x1: Operand, x2: Operand, /) -> Tensor:
    """The larger of the two; NaN if either is.

    Shapes broadcast; either may be a Python number. Numeric; the two promote.

    >>> print(kiln.maximum(kiln.tensor([1.0, 5.0]), kiln.tensor([3.0, 2.0])))
    tensor([3., 5.], dtype=float32)
    """
    return binary("maximum", x1, x2)


def minimum(x1: Operand, x2: Operand, /) -> Tensor:
    """The smaller of the two; NaN if either is.

    Shapes broadcast; either may be a Python number. Numeric; the two promote.

    >>> print(kiln.minimum(kiln.tensor([1.0, 5.0]), kiln.tensor([3.0, 2.0])))
    tensor([1., 2.], dtype=float32)
    """
    return binary("minimum", x1, x2)
