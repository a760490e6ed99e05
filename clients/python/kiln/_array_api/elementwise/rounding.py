"""Rounding to integers."""

from typing import Optional

from kiln._array_api.operands import Operand, rounded
from kiln._tensor.base import tensor_of
from kiln.tensor import Tensor


def ceil(x: Operand, /) -> Tensor:
    """Rounds up.

    Any shape. Any numeric dtype, which stays; integers are unchanged.

    >>> print(kiln.ceil(kiln.tensor([1.2, -1.7])))
    tensor([ 2., -1.], dtype=float32)
    """
    return rounded("ceil", x)


def floor(x: Operand, /) -> Tensor:
    """Rounds down.

    Any shape. Any numeric dtype, which stays; integers are unchanged.

    >>> print(kiln.floor(kiln.tensor([1.2, -1.7])))
    tensor([ 1., -2.], dtype=float32)
    """
    return rounded("floor", x)


def round(x: Operand, /) -> Tensor:
    """Rounds to the nearest integer, ties to even.

    Any shape. Any numeric dtype, which stays; integers are unchanged.

    >>> print(kiln.round(kiln.tensor([1.2, 2.5])))
    tensor([1., 2.], dtype=float32)
    """
    return rounded("round", x)


def trunc(x: Operand, /) -> Tensor:
    """Rounds towards zero.

    Any shape. Any numeric dtype, which stays; integers are unchanged.

    >>> print(kiln.trunc(kiln.tensor([1.2, -1.7])))
    tensor([ 1., -1.], dtype=float32)
    """
    return rounded("trunc", x)


def clip(x: Tensor, /, min: Optional[Operand] = None, max: Optional[Operand] = None) -> Tensor:
    """Limits x to two bounds, each a number, a tensor that broadcasts, or None for no bound.

    Numeric; x and tensors promote. NaN where any is NaN. The gradient is 1 between the bounds and
    on them.

    >>> print(kiln.clip(kiln.tensor([-1.0, 0.5, 2.0]), 0, 1))
    tensor([0. , 0.5, 1. ], dtype=float32)
    """
    return tensor_of(x).clamp(min, max)
