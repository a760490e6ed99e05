"""Comparisons and tests; all return bools."""

from kiln._array_api.operands import Operand, binary, unary
from kiln._tensor.base import apply, tensor_of
from kiln.tensor import Tensor


def equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns whether the two are equal; NaN equals nothing.

    Shapes broadcast; either may be a Python number. The two promote; the result is bool.

    >>> print(kiln.equal(kiln.tensor([1, 2]), kiln.tensor([1, 3])))
    tensor([ True, False], dtype=bool)
    """
    return binary("cmpeq", x1, x2)


def not_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns whether the two differ.

    Shapes broadcast; either may be a Python number. The two promote; the result is bool.

    >>> print(kiln.not_equal(kiln.tensor([1, 2]), kiln.tensor([1, 3])))
    tensor([False,  True], dtype=bool)
    """
    return binary("cmpne", x1, x2)


def less(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns whether x1 < x2.

    Shapes broadcast; either may be a Python number. The two promote; the result is bool.

    >>> print(kiln.less(kiln.tensor([1, 2]), kiln.tensor([1, 3])))
    tensor([False,  True], dtype=bool)
    """
    return binary("cmplt", x1, x2)


def less_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns whether x1 <= x2.

    Shapes broadcast; either may be a Python number. The two promote; the result is bool.

    >>> print(kiln.less_equal(kiln.tensor([1, 2]), kiln.tensor([1, 1])))
    tensor([ True, False], dtype=bool)
    """
    return binary("less_equal", x1, x2)


def greater(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns whether x1 > x2.

    Shapes broadcast; either may be a Python number. The two promote; the result is bool.

    >>> print(kiln.greater(kiln.tensor([1, 2]), kiln.tensor([1, 1])))
    tensor([False,  True], dtype=bool)
    """
    return binary("greater", x1, x2)


def greater_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns whether x1 >= x2.

    Shapes broadcast; either may be a Python number. The two promote; the result is bool.

    >>> print(kiln.greater_equal(kiln.tensor([1, 2]), kiln.tensor([1, 3])))
    tensor([ True, False], dtype=bool)
    """
    return binary("greater_equal", x1, x2)


def isnan(x: Operand, /) -> Tensor:
    """Returns whether x is NaN.

    Any shape. Any dtype; the result is bool.

    >>> print(kiln.isnan(kiln.tensor([1.0, kiln.nan])))
    tensor([False,  True], dtype=bool)
    """
    return tensor_of(x).isnan()


def isinf(x: Operand, /) -> Tensor:
    """Returns whether x is infinite.

    Any shape. Any dtype; the result is bool.

    >>> print(kiln.isinf(kiln.tensor([1.0, kiln.inf])))
    tensor([False,  True], dtype=bool)
    """
    return tensor_of(x).isinf()


def isfinite(x: Operand, /) -> Tensor:
    """Returns whether x is neither infinite nor NaN.

    Any shape. Any dtype; the result is bool.

    >>> print(kiln.isfinite(kiln.tensor([1.0, kiln.inf])))
    tensor([ True, False], dtype=bool)
    """
    return tensor_of(x).isfinite()


def logical_and(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns whether both are true (not 0).

    Shapes broadcast; either may be a Python number. Any dtypes; the result is bool.

    >>> print(kiln.logical_and(kiln.tensor([True, False]), kiln.tensor([True, True])))
    tensor([ True, False], dtype=bool)
    """
    return binary("logical_and", x1, x2)


def logical_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns whether either is true (not 0).

    Shapes broadcast; either may be a Python number. Any dtypes; the result is bool.

    >>> print(kiln.logical_or(kiln.tensor([True, False]), kiln.tensor([True, False])))
    tensor([ True, False], dtype=bool)
    """
    return binary("logical_or", x1, x2)


def logical_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns whether exactly one of the two is true (not 0).

    Shapes broadcast; either may be a Python number. Any dtypes; the result is bool.

    >>> print(kiln.logical_xor(kiln.tensor([True, False]), kiln.tensor([True, True])))
    tensor([False,  True], dtype=bool)
    """
    return apply("cmpne", (tensor_of(x1).bool(), tensor_of(x2).bool()))


def logical_not(x: Operand, /) -> Tensor:
    """Returns whether x is false (0).

    Any shape. Any dtype; the result is bool.

    >>> print(kiln.logical_not(kiln.tensor([True, False])))
    tensor([False,  True], dtype=bool)
    """
    return unary("logical_not", x)
