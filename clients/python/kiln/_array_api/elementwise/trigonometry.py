"""Trigonometric and hyperbolic functions; angles are radians."""

from kiln._array_api.operands import Operand, unary
from kiln.tensor import Tensor


def sin(x: Operand, /) -> Tensor:
    """The sine.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.sin(kiln.tensor([0.0, 1.0])))
    tensor([0.    , 0.8415], dtype=float32)
    """
    return unary("sin", x)


def cos(x: Operand, /) -> Tensor:
    """The cosine.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.cos(kiln.tensor([0.0, 1.0])))
    tensor([1.    , 0.5403], dtype=float32)
    """
    return unary("cos", x)


def tan(x: Operand, /) -> Tensor:
    """The tangent.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.tan(kiln.tensor([0.0, 1.0])))
    tensor([0.    , 1.5574], dtype=float32)
    """
    return unary("tan", x)


def tanh(x: Operand, /) -> Tensor:
    """The hyperbolic tangent.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.tanh(kiln.tensor([0.0, 1.0])))
    tensor([0.    , 0.7616], dtype=float32)
    """
    return unary("tanh", x)
