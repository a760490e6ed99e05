"""Bitwise functions."""

from kiln._array_api.operands import Operand, binary, unary
from kiln.tensor import Tensor


def bitwise_and(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns the bits that are set in both.

    Shapes broadcast; either may be a Python number. Integers or bools, which promote.

    >>> print(kiln.bitwise_and(kiln.tensor([6, 5]), kiln.tensor([3, 3])))
    tensor([2, 1], dtype=int64)
    """
    return binary("and", x1, x2)


def bitwise_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns the bits that are set in either.

    Shapes broadcast; either may be a Python number. Integers or bools, which promote.

    >>> print(kiln.bitwise_or(kiln.tensor([6, 5]), kiln.tensor([3, 3])))
    tensor([7, 7], dtype=int64)
    """
    return binary("or", x1, x2)


def bitwise_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns the bits that are set in exactly one of the two.

    Shapes broadcast; either may be a Python number. Integers or bools, which promote.

    >>> print(kiln.bitwise_xor(kiln.tensor([6, 5]), kiln.tensor([3, 3])))
    tensor([5, 6], dtype=int64)
    """
    return binary("xor", x1, x2)


def bitwise_invert(x: Operand, /) -> Tensor:
    """Inverts every bit; for bools, the negation.

    Any shape. Integers or bools; the dtype stays.

    >>> print(kiln.bitwise_invert(kiln.tensor([6, 5])))
    tensor([-7, -6], dtype=int64)
    """
    return unary("not", x)


def bitwise_left_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """Shifts x1's bits left by x2; 0 where x2 is negative or at least the width.

    Shapes broadcast; either may be a Python number. Integers, which promote.

    >>> print(kiln.bitwise_left_shift(kiln.tensor([6, 5]), kiln.tensor([1, 3])))
    tensor([12, 40], dtype=int64)
    """
    return binary("shl", x1, x2)


def bitwise_right_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """Shifts x1's bits right by x2, keeping the sign.

    Where x2 is negative or at least the width, only the sign remains: -1 or 0.

    Shapes broadcast; either may be a Python number. Integers, which promote.

    >>> print(kiln.bitwise_right_shift(kiln.tensor([6, -5]), kiln.tensor([1, 1])))
    tensor([ 3, -3], dtype=int64)
    """
    return binary("shr", x1, x2)
