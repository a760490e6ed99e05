"""Elementwise arithmetic and functions of Tensor."""

from typing import TYPE_CHECKING, Any, Tuple

from kiln import _dtypes
from kiln._comparison import Comparison

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Arithmetic(Comparison):
    """Elementwise; operands broadcast, and Python numbers take the tensor's dtype."""

    __slots__ = ()

    # Arithmetic. Bools count as integers.

    def _numeric(self, name: str, other: Any, reflected: bool = False) -> "Tensor":
        mine = self._tensor
        if self.dtype is _dtypes.bool_:
            kind = getattr(other, "dtype", None)
            if not isinstance(kind, _dtypes.DType):
                kind = _dtypes.float32 if isinstance(other, float) else _dtypes.int64
            mine = self.cast(_dtypes.int64 if kind is _dtypes.bool_ else kind)
            if kind is _dtypes.bool_:
                other = other.cast(_dtypes.int64)
        elif getattr(other, "dtype", None) is _dtypes.bool_:
            other = other.cast(self.dtype)
        return mine._reflected(name, other) if reflected else mine._op(name, other)

    def add(self, other: Any, alpha: Any = 1) -> "Tensor":
        """self + alpha * other."""
        if alpha != 1:
            other = other * alpha
        return self._numeric("add", other)

    def sub(self, other: Any, alpha: Any = 1) -> "Tensor":
        """self - alpha * other."""
        if alpha != 1:
            other = other * alpha
        return self._numeric("sub", other)

    def mul(self, other: Any) -> "Tensor":
        """Self * other."""
        return self._numeric("mul", other)

    def div(self, other: Any) -> "Tensor":
        """Self / other; integers become float32."""
        return self._op("div", other)

    def floor_divide(self, other: Any) -> "Tensor":
        """The quotient rounded down, as Python's //."""
        return self._numeric("floor_divide", other)

    def remainder(self, other: Any) -> "Tensor":
        """The remainder with the divisor's sign, as Python's %."""
        return self._numeric("remainder", other)

    def pow(self, exponent: Any) -> "Tensor":
        """Self to a power."""
        if isinstance(exponent, int) and not isinstance(exponent, bool):
            if exponent == 2:
                return self.square()
            if exponent == 1:
                return self._alias()
            if exponent == 3:
                return self * self.square()
        if isinstance(exponent, float) and exponent == 0.5:
            return self.sqrt()
        return self._op("pow", exponent)

    def maximum(self, other: Any) -> "Tensor":
        """The larger of two, elementwise."""
        return self._op("maximum", other)

    def minimum(self, other: Any) -> "Tensor":
        """The smaller of two, elementwise."""
        return self._op("minimum", other)

    __add__ = add
    __sub__ = sub
    __mul__ = mul
    __truediv__ = div
    __floordiv__ = floor_divide
    __mod__ = remainder
    __pow__ = pow
    __radd__ = add
    __rmul__ = mul
    multiply = mul
    divide = div
    subtract = sub

    def __rsub__(self, other: Any) -> "Tensor":
        return self._numeric("sub", other, reflected=True)

    def __rtruediv__(self, other: Any) -> "Tensor":
        return self._reflected("div", other)

    def __rfloordiv__(self, other: Any) -> "Tensor":
        return self._numeric("floor_divide", other, reflected=True)

    def __rmod__(self, other: Any) -> "Tensor":
        return self._numeric("remainder", other, reflected=True)

    def __rpow__(self, other: Any) -> "Tensor":
        return self._reflected("pow", other)

    def __matmul__(self, other: Any) -> "Tensor":
        return self._tensor.matmul(other)

    def __rmatmul__(self, other: Any) -> "Tensor":
        return self._reflected("matmul", other)

    def __divmod__(self, other: Any) -> Tuple["Tensor", "Tensor"]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Tuple["Tensor", "Tensor"]:
        return other // self, other % self

    # One operand.

    def neg(self) -> "Tensor":
        """-self."""
        return self._op("neg")

    __neg__ = neg

    def __pos__(self) -> "Tensor":
        return self._tensor

    def __abs__(self) -> "Tensor":
        return self.abs()

    def reciprocal(self) -> "Tensor":
        """1 / self."""
        return self._op("reciprocal")

    def sqrt(self) -> "Tensor":
        """The square root."""
        return self._op("sqrt")

    def rsqrt(self) -> "Tensor":
        """1 / sqrt(self)."""
        return self._op("rsqrt")

    def square(self) -> "Tensor":
        """Self * self."""
        return self._op("square")

    def exp(self) -> "Tensor":
        """E to the power of self."""
        return self._op("exp")

    def exp2(self) -> "Tensor":
        """2 to the power of self."""
        return self._op("exp2")

    def log(self) -> "Tensor":
        """The natural logarithm."""
        return self._op("log")

    def log2(self) -> "Tensor":
        """The binary logarithm."""
        return self._op("log2")

    def sin(self) -> "Tensor":
        """The sine of radians."""
        return self._op("sin")

    def cos(self) -> "Tensor":
        """The cosine of radians."""
        return self._op("cos")

    def tan(self) -> "Tensor":
        """The tangent of radians."""
        return self._op("tan")

    def tanh(self) -> "Tensor":
        """The hyperbolic tangent."""
        return self._op("tanh")

    def sigmoid(self) -> "Tensor":
        """1 / (1 + exp(-self))."""
        return self._op("sigmoid")

    def erf(self) -> "Tensor":
        """The error function."""
        return self._op("erf")

    def relu(self) -> "Tensor":
        """max(self, 0)."""
        return self._op("relu")

    def abs(self) -> "Tensor":
        """The absolute value."""
        return self._op("abs")

    def sign(self) -> "Tensor":
        """-1, 0 or 1."""
        return self._op("sign")

    def trunc(self) -> "Tensor":
        """Without the fraction."""
        return self._op("trunc") if self.dtype.is_float else self._alias()

    def floor(self) -> "Tensor":
        """Rounded down."""
        return self._op("floor") if self.dtype.is_float else self._alias()

    def ceil(self) -> "Tensor":
        """Rounded up."""
        return self._op("ceil") if self.dtype.is_float else self._alias()

    def round(self) -> "Tensor":
        """Rounded to the nearest integer, ties to even."""
        return self._op("round") if self.dtype.is_float else self._alias()

    def __round__(self, digits: int = 0) -> "Tensor":
        scale = 10.0**digits
        return self.round() if digits == 0 else self.mul(scale).round().div(scale)

    def isnan(self) -> "Tensor":
        """Whether it is not a number."""
        return self._op("isnan") if self.dtype.is_float else self._op("cmpne", self)

    def isinf(self) -> "Tensor":
        """Whether it is infinite."""
        return self._op("isinf") if self.dtype.is_float else self._op("cmpne", self)

    def isfinite(self) -> "Tensor":
        """Whether it is a number and not infinite."""
        return self._op("isfinite") if self.dtype.is_float else self._op("cmpeq", self)

    def clamp(self, min: Any = None, max: Any = None) -> "Tensor":
        """Held between `min` and `max`; either may be None."""
        result = self._tensor
        if min is not None:
            result = result.maximum(min)
        if max is not None:
            result = result.minimum(max)
        return result

    clip = clamp

    def where(self, condition: Any, other: Any) -> "Tensor":
        """Self where `condition` is true, else `other`."""
        from kiln.searching import where

        return where(condition, self._tensor, other)

    def masked_fill(self, mask: "Tensor", value: Any) -> "Tensor":
        """`value` where `mask` is true, else self."""
        from kiln.searching import where

        return where(mask, value, self._tensor)

    def lerp(self, end: Any, weight: Any) -> "Tensor":
        """Self + weight * (end - self)."""
        return self.add((end - self._tensor) * weight)
