"""Methods of Tensor for functions beyond plain arithmetic; `kiln` has the same as functions."""

from typing import TYPE_CHECKING, Any

from kiln._base import TensorBase

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Functions(TensorBase):
    """Elementwise functions. Floats keep their dtype; integers and bools become float32."""

    __slots__ = ()

    def expm1(self) -> "Tensor":
        """E to the power of self, less 1, with all digits near 0."""
        return self._op("expm1")

    def log1p(self) -> "Tensor":
        """The natural logarithm of 1 + self, with all digits near 0."""
        return self._op("log1p")

    def log10(self) -> "Tensor":
        """The decimal logarithm."""
        return self._op("log10")

    def sinh(self) -> "Tensor":
        """The hyperbolic sine."""
        return self._op("sinh")

    def cosh(self) -> "Tensor":
        """The hyperbolic cosine."""
        return self._op("cosh")

    def asin(self) -> "Tensor":
        """The arc sine in radians; NaN outside of [-1, 1]."""
        return self._op("asin")

    def acos(self) -> "Tensor":
        """The arc cosine in radians; NaN outside of [-1, 1]."""
        return self._op("acos")

    def atan(self) -> "Tensor":
        """The arc tangent in radians."""
        return self._op("atan")

    def asinh(self) -> "Tensor":
        """The inverse hyperbolic sine."""
        return self._op("asinh")

    def acosh(self) -> "Tensor":
        """The inverse hyperbolic cosine; NaN below 1."""
        return self._op("acosh")

    def atanh(self) -> "Tensor":
        """The inverse hyperbolic tangent; NaN outside of [-1, 1]."""
        return self._op("atanh")

    def erfc(self) -> "Tensor":
        """1 - erf(self), with all digits where that is small."""
        return self._op("erfc")

    def erfinv(self) -> "Tensor":
        """The inverse of erf; NaN outside of [-1, 1]."""
        return self._op("erfinv")

    def lgamma(self) -> "Tensor":
        """The logarithm of the gamma function's magnitude."""
        return self._op("lgamma")

    def digamma(self) -> "Tensor":
        """The derivative of lgamma."""
        return self._op("digamma")

    def signbit(self) -> "Tensor":
        """Whether the sign bit is set: below 0, or -0."""
        return self._op("signbit")

    def atan2(self, other: Any) -> "Tensor":
        """The angle of the point (other, self)."""
        return self._op("atan2", other)

    def hypot(self, other: Any) -> "Tensor":
        """sqrt(self² + other²), without overflow."""
        return self._op("hypot", other)

    def logaddexp(self, other: Any) -> "Tensor":
        """log(exp(self) + exp(other)), without overflow."""
        return self._op("logaddexp", other)

    def copysign(self, other: Any) -> "Tensor":
        """Self with other's sign."""
        return self._op("copysign", other)

    def nextafter(self, other: Any) -> "Tensor":
        """The next float after self towards other."""
        return self._op("nextafter", other)

    def fmod(self, other: Any) -> "Tensor":
        """The remainder of self / other with self's sign; remainder() has other's."""
        return self._tensor._numeric("fmod", other)

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> "Tensor":
        """The diagonal of two dimensions as a last one."""
        return self._op("diagonal", offset=int(offset), axis1=int(dim1), axis2=int(dim2))
