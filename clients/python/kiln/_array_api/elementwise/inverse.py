"""Inverse trigonometric and hyperbolic functions, sinh and cosh; angles are radians."""

from kiln._array_api.operands import Operand, binary, unary
from kiln.tensor import Tensor


def asin(x: Operand, /) -> Tensor:
    """The arc sine in [-pi/2, pi/2]; NaN outside of [-1, 1].

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.asin(kiln.tensor([0.0, 0.5])))
    tensor([0.    , 0.5236], dtype=float32)
    """
    return unary("asin", x)


def acos(x: Operand, /) -> Tensor:
    """The arc cosine in [0, pi]; NaN outside of [-1, 1].

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.acos(kiln.tensor([1.0, 0.5])))
    tensor([0.    , 1.0472], dtype=float32)
    """
    return unary("acos", x)


def atan(x: Operand, /) -> Tensor:
    """The arc tangent in [-pi/2, pi/2].

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.atan(kiln.tensor([0.0, 1.0])))
    tensor([0.    , 0.7854], dtype=float32)
    """
    return unary("atan", x)


def atan2(x1: Operand, x2: Operand, /) -> Tensor:
    """The angle of the point (x2, x1) in [-pi, pi]: x1 is the height, as in C's atan2.

    Shapes broadcast, dtypes promote; integers and bools become float32.

    >>> print(kiln.atan2(kiln.tensor([1.0, 1.0]), kiln.tensor([1.0, -1.0])))
    tensor([0.7854, 2.3562], dtype=float32)
    """
    return binary("atan2", x1, x2)


def sinh(x: Operand, /) -> Tensor:
    """The hyperbolic sine.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.sinh(kiln.tensor([0.0, 1.0])))
    tensor([0.    , 1.1752], dtype=float32)
    """
    return unary("sinh", x)


def cosh(x: Operand, /) -> Tensor:
    """The hyperbolic cosine.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.cosh(kiln.tensor([0.0, 1.0])))
    tensor([1.    , 1.5431], dtype=float32)
    """
    return unary("cosh", x)


def asinh(x: Operand, /) -> Tensor:
    """The inverse hyperbolic sine.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.asinh(kiln.tensor([0.0, 1.0])))
    tensor([0.    , 0.8814], dtype=float32)
    """
    return unary("asinh", x)


def acosh(x: Operand, /) -> Tensor:
    """The inverse hyperbolic cosine; NaN below 1.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.acosh(kiln.tensor([1.0, 2.0])))
    tensor([0.   , 1.317], dtype=float32)
    """
    return unary("acosh", x)


def atanh(x: Operand, /) -> Tensor:
    """The inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.atanh(kiln.tensor([0.0, 0.5])))
    tensor([0.    , 0.5493], dtype=float32)
    """
    return unary("atanh", x)
