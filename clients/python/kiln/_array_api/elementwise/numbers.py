"""Functions of a number's sign, neighbours, remainder and special values."""

from typing import Optional, Tuple

from kiln._array_api.operands import Operand, arithmetic, binary, unary
from kiln._rules import flag
from kiln._tensor.base import tensor_of
from kiln.tensor import Tensor, apply


def copysign(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns x1 with x2's sign; -0 counts as negative.

    Shapes broadcast, dtypes promote; integers become float32.

    >>> kiln.copysign(kiln.tensor([1.0, 2.0]), -0.0).tolist()
    [-1.0, -2.0]
    """
    return binary("copysign", x1, x2)


def signbit(x: Operand, /) -> Tensor:
    """Returns whether the sign bit is set: below 0, or -0. Numeric; the result is bool.

    >>> kiln.signbit(kiln.tensor([-1.0, -0.0, 0.0])).tolist()
    [True, True, False]
    """
    return unary("signbit", x)


def nextafter(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns the next float after x1 in the direction of x2.

    Shapes broadcast, dtypes promote; they must be floats.

    >>> (kiln.nextafter(kiln.tensor([1.0]), 2.0) - 1.0).tolist()
    [1.1920928955078125e-07]
    """
    return binary("nextafter", x1, x2)


def hypot(x1: Operand, x2: Operand, /) -> Tensor:
    """sqrt(x1² + x2²), without overflow. The gradient at the origin is 0.

    Shapes broadcast, dtypes promote; integers and bools become float32.

    >>> kiln.hypot(kiln.tensor([3.0, 5.0]), kiln.tensor([4.0, 12.0])).tolist()
    [5.0, 13.0]
    """
    return binary("hypot", x1, x2)


def fmod(x1: Operand, x2: Operand, /) -> Tensor:
    """Returns the remainder of x1 / x2 with x1's sign, like C's fmod; remainder() has x2's.

    Shapes broadcast, dtypes promote; integers give 0 where x2 is 0.

    >>> kiln.fmod(kiln.tensor([-7, 7]), 3).tolist()
    [-1, 1]
    """
    return arithmetic("fmod", x1, x2)


def divmod(x1: Operand, x2: Operand, /) -> Tuple[Tensor, Tensor]:
    """Returns floor_divide and remainder.

    >>> [part.tolist() for part in kiln.divmod(kiln.tensor([-7, 7]), 3)]
    [[-3, 2], [2, 1]]
    """
    return arithmetic("floor_divide", x1, x2), arithmetic("remainder", x1, x2)


def isclose(x1: Operand, x2: Operand, /, *, rtol: float = 1e-5, atol: float = 1e-8,
            equal_nan: bool = False) -> Tensor:
    """Returns whether |x1 - x2| <= atol + rtol * |x2|, as in NumPy.

    Infinities are close to themselves; NaN is close to nothing, or with equal_nan to NaN. Shapes
    broadcast; the result is bool.

    >>> kiln.isclose(kiln.tensor([1.0, 2.0]), kiln.tensor([1.000001, 2.1])).tolist()
    [True, False]
    """
    return apply(
        "isclose", (x1, x2), rtol=float(rtol), atol=float(atol),
        equal_nan=flag(equal_nan, "equal_nan"))


def nan_to_num(x: Operand, /, nan: float = 0.0, posinf: Optional[float] = None,
               neginf: Optional[float] = None) -> Tensor:
    """Replaces NaN and infinities by numbers, by default 0 and the dtype's largest and lowest.

    Numeric; integers stay as they are.

    >>> kiln.nan_to_num(kiln.tensor([1.0, float("nan"), float("inf")]), posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """
    return tensor_of(x)._op(
        "nan_to_num", nan=float(nan), posinf=float("inf" if posinf is None else posinf),
        neginf=float("-inf" if neginf is None else neginf))
