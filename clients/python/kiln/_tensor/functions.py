"""Methods of Tensor for functions beyond plain arithmetic; `kiln` has the same as functions."""

from typing import TYPE_CHECKING, Any

from kiln._tensor.base import TensorBase

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Functions(TensorBase):
    """Elementwise functions. Floats keep their dtype; integers and bools become float32."""

    __slots__ = ()

    def expm1(self) -> "Tensor":
        """E to the power of self, less 1, with all digits near 0.

        >>> print(kiln.tensor([0.5, 1.0]).expm1())
        tensor([0.6487, 1.7183], dtype=float32)
        """
        return self._op("expm1")

    def log1p(self) -> "Tensor":
        """The natural logarithm of 1 + self, with all digits near 0.

        >>> print(kiln.tensor([0.5, 1.0]).log1p())
        tensor([0.4055, 0.6931], dtype=float32)
        """
        return self._op("log1p")

    def log10(self) -> "Tensor":
        """The decimal logarithm.

        >>> print(kiln.tensor([0.5, 1.0]).log10())
        tensor([-0.301,  0.   ], dtype=float32)
        """
        return self._op("log10")

    def sinh(self) -> "Tensor":
        """The hyperbolic sine.

        >>> print(kiln.tensor([0.5, 1.0]).sinh())
        tensor([0.5211, 1.1752], dtype=float32)
        """
        return self._op("sinh")

    def cosh(self) -> "Tensor":
        """The hyperbolic cosine.

        >>> print(kiln.tensor([0.5, 1.0]).cosh())
        tensor([1.1276, 1.5431], dtype=float32)
        """
        return self._op("cosh")

    def asin(self) -> "Tensor":
        """The arc sine in radians; NaN outside of [-1, 1].

        >>> print(kiln.tensor([0.5, 1.0]).asin())
        tensor([0.5236, 1.5708], dtype=float32)
        """
        return self._op("asin")

    def acos(self) -> "Tensor":
        """The arc cosine in radians; NaN outside of [-1, 1].

        >>> print(kiln.tensor([0.5, 1.0]).acos())
        tensor([1.0472, 0.    ], dtype=float32)
        """
        return self._op("acos")

    def atan(self) -> "Tensor":
        """The arc tangent in radians.

        >>> print(kiln.tensor([0.5, 1.0]).atan())
        tensor([0.4636, 0.7854], dtype=float32)
        """
        return self._op("atan")

    def asinh(self) -> "Tensor":
        """The inverse hyperbolic sine.

        >>> print(kiln.tensor([0.5, 1.0]).asinh())
        tensor([0.4812, 0.8814], dtype=float32)
        """
        return self._op("asinh")

    def acosh(self) -> "Tensor":
        """The inverse hyperbolic cosine; NaN below 1.

        >>> print(kiln.tensor([1.0, 2.0]).acosh())
        tensor([0.   , 1.317], dtype=float32)
        """
        return self._op("acosh")

    def atanh(self) -> "Tensor":
        """The inverse hyperbolic tangent; NaN outside of [-1, 1].

        >>> print(kiln.tensor([0.0, 0.5]).atanh())
        tensor([0.    , 0.5493], dtype=float32)
        """
        return self._op("atanh")

    def erfc(self) -> "Tensor":
        """1 - erf(self), with all digits where that is small.

        >>> print(kiln.tensor([0.5, 1.0]).erfc())
        tensor([0.4795, 0.1573], dtype=float32)
        """
        return self._op("erfc")

    def erfinv(self) -> "Tensor":
        """The inverse of erf; NaN outside of [-1, 1].

        >>> print(kiln.tensor([0.0, 0.5]).erfinv())
        tensor([0.    , 0.4769], dtype=float32)
        """
        return self._op("erfinv")

    def lgamma(self) -> "Tensor":
        """The logarithm of the gamma function's magnitude.

        >>> print(kiln.tensor([3.0, 5.0]).lgamma())
        tensor([0.6931, 3.1781], dtype=float32)
        """
        return self._op("lgamma")

    def digamma(self) -> "Tensor":
        """The derivative of lgamma.

        >>> print(kiln.tensor([1.0, 5.0]).digamma())
        tensor([-0.5772,  1.5061], dtype=float32)
        """
        return self._op("digamma")

    def signbit(self) -> "Tensor":
        """Whether the sign bit is set: below 0, or -0.

        >>> kiln.tensor([-0.0, 1.0]).signbit().tolist()
        [True, False]
        """
        return self._op("signbit")

    def atan2(self, other: Any) -> "Tensor":
        """The angle of the point (other, self).

        >>> print(kiln.tensor([3.0, 0.0]).atan2(kiln.tensor([4.0, 1.0])))
        tensor([0.6435, 0.    ], dtype=float32)
        """
        return self._op("atan2", other)

    def hypot(self, other: Any) -> "Tensor":
        """sqrt(self² + other²), without overflow.

        >>> print(kiln.tensor([3.0, 0.0]).hypot(kiln.tensor([4.0, 1.0])))
        tensor([5., 1.], dtype=float32)
        """
        return self._op("hypot", other)

    def logaddexp(self, other: Any) -> "Tensor":
        """log(exp(self) + exp(other)), without overflow.

        >>> print(kiln.tensor([3.0, 0.0]).logaddexp(kiln.tensor([4.0, 1.0])))
        tensor([4.3133, 1.3133], dtype=float32)
        """
        return self._op("logaddexp", other)

    def copysign(self, other: Any) -> "Tensor":
        """Self with other's sign.

        >>> kiln.tensor([3.0, 2.0]).copysign(kiln.tensor([-1.0, 1.0])).tolist()
        [-3.0, 2.0]
        """
        return self._op("copysign", other)

    def nextafter(self, other: Any) -> "Tensor":
        """The next float after self towards other.

        >>> kiln.tensor([1.0]).nextafter(kiln.tensor([2.0])).tolist()
        [1.0000001192092896]
        """
        return self._op("nextafter", other)

    def fmod(self, other: Any) -> "Tensor":
        """The remainder of self / other with self's sign; remainder() has other's.

        >>> kiln.tensor([7.0, -7.0]).fmod(kiln.tensor(3.0)).tolist()
        [1.0, -1.0]
        """
        return self._tensor._numeric("fmod", other)

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> "Tensor":
        """The diagonal of two dimensions as a last one.

        >>> kiln.tensor([[1, 2], [3, 4]]).diagonal().tolist()
        [1, 4]
        """
        return self._op("diagonal", offset=int(offset), axis1=int(dim1), axis2=int(dim2))
