"""Functions that stay accurate where plain formulas do not, and special functions."""

from kiln._array_api.operands import Operand, binary, unary
from kiln.tensor import Tensor


def expm1(x: Operand, /) -> Tensor:
    """exp(x) - 1, accurate near 0.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.expm1(kiln.tensor([0.0, 1.0])))
    tensor([0.    , 1.7183], dtype=float32)
    """
    return unary("expm1", x)


def log1p(x: Operand, /) -> Tensor:
    """The natural logarithm of 1 + x, accurate near 0; NaN below -1.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.log1p(kiln.tensor([0.0, 1.0])))
    tensor([0.    , 0.6931], dtype=float32)
    """
    return unary("log1p", x)


def log10(x: Operand, /) -> Tensor:
    """The decimal logarithm; -inf at 0, NaN below.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.log10(kiln.tensor([1.0, 100.0])))
    tensor([0., 2.], dtype=float32)
    """
    return unary("log10", x)


def logaddexp(x1: Operand, x2: Operand, /) -> Tensor:
    """log(exp(x1) + exp(x2)), without overflow.

    Shapes broadcast, dtypes promote; integers and bools become float32.

    >>> print(kiln.logaddexp(kiln.tensor([0.0, 1000.0]), kiln.tensor([0.0, 0.0])))
    tensor([6.9315e-01, 1.0000e+03], dtype=float32)
    """
    return binary("logaddexp", x1, x2)


def logaddexp2(x1: Operand, x2: Operand, /) -> Tensor:
    """log2(2**x1 + 2**x2), without overflow.

    Shapes broadcast, dtypes promote; integers and bools become float32.

    >>> print(kiln.logaddexp2(kiln.tensor([0.0, 3.0]), kiln.tensor([0.0, 3.0])))
    tensor([1., 4.], dtype=float32)
    """
    return binary("logaddexp2", x1, x2)


def erfc(x: Operand, /) -> Tensor:
    """1 - erf(x), accurate even if the result is small.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.erfc(kiln.tensor([0.0, 1.0])))
    tensor([1.    , 0.1573], dtype=float32)
    """
    return unary("erfc", x)


def erfinv(x: Operand, /) -> Tensor:
    """The inverse of erf; infinite at -1 and 1, NaN beyond.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.erfinv(kiln.tensor([0.0, 0.5])))
    tensor([0.    , 0.4769], dtype=float32)
    """
    return unary("erfinv", x)


def lgamma(x: Operand, /) -> Tensor:
    """The logarithm of the gamma function's magnitude; inf at 0 and the negative integers.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.lgamma(kiln.tensor([0.5, 4.0])))
    tensor([0.5724, 1.7918], dtype=float32)
    """
    return unary("lgamma", x)


def digamma(x: Operand, /) -> Tensor:
    """The derivative of lgamma; NaN at 0 and the negative integers.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.digamma(kiln.tensor([1.0, 4.0])))
    tensor([-0.5772,  1.2561], dtype=float32)
    """
    return unary("digamma", x)


def cbrt(x: Operand, /) -> Tensor:
    """The cube root.

    Any shape. Floats keep their dtype; integers and bools become float32.

    >>> print(kiln.cbrt(kiln.tensor([8.0, -27.0])))
    tensor([ 2., -3.], dtype=float32)
    """
    return unary("cbrt", x)
