"""Methods of Tensor for each element by itself; `kiln` has the same functions."""

from typing import TYPE_CHECKING, Any

from kiln._basics import dtypes
from kiln._tensor.constructors import in_dtype, where
from kiln._tensor.host_values import HostValues

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Math(HostValues):
    """Elementary and special functions, signs, rounding, bounds and choices.

    Functions such as exp keep the dtype of floats; integers and bools become float32.
    """

    __slots__ = ()

    def neg(self) -> "Tensor":
        """-self.

        >>> kiln.tensor([1.0, 4.0]).neg().tolist()
        [-1.0, -4.0]
        """
        return self._op("neg")

    __neg__ = neg

    def __pos__(self) -> "Tensor":
        return self._tensor

    def positive(self) -> "Tensor":
        """Returns the tensor itself.

        >>> kiln.tensor([[1, 2], [3, 4]]).positive().tolist()
        [[1, 2], [3, 4]]
        """
        return self._tensor

    def abs(self) -> "Tensor":
        """Returns the absolute value.

        >>> kiln.tensor([7, -7]).abs().tolist()
        [7, 7]
        """
        return self._op("abs")

    def __abs__(self) -> "Tensor":
        return self.abs()

    def sign(self) -> "Tensor":
        """-1, 0 or 1.

        >>> kiln.tensor([7, -7]).sign().tolist()
        [1, -1]
        """
        return self._op("sign")

    def signbit(self) -> "Tensor":
        """Returns whether the sign bit is set: true below 0 and for -0.

        >>> kiln.tensor([-0.0, 1.0]).signbit().tolist()
        [True, False]
        """
        return self._op("signbit")

    def reciprocal(self) -> "Tensor":
        """1 / self.

        >>> kiln.tensor([1.0, 4.0]).reciprocal().tolist()
        [1.0, 0.25]
        """
        return self._op("reciprocal")

    def square(self) -> "Tensor":
        """self * self; bools become int64.

        >>> kiln.tensor([1.0, 4.0]).square().tolist()
        [1.0, 16.0]
        """
        x = self._tensor
        return (x.cast(dtypes.int64) if x.dtype is dtypes.bool_ else x)._op("square")

    def relu(self) -> "Tensor":
        """max(self, 0).

        >>> kiln.tensor([-1.0, 2.0]).relu().tolist()
        [0.0, 2.0]
        """
        return self._op("relu")

    def trunc(self) -> "Tensor":
        """Rounds towards zero.

        >>> kiln.tensor([1.7, -1.7]).trunc().tolist()
        [1.0, -1.0]
        """
        return self._op("trunc") if self.dtype.is_float else self._alias()

    def floor(self) -> "Tensor":
        """Rounds down.

        >>> kiln.tensor([1.7, -1.7]).floor().tolist()
        [1.0, -2.0]
        """
        return self._op("floor") if self.dtype.is_float else self._alias()

    def ceil(self) -> "Tensor":
        """Rounds up.

        >>> kiln.tensor([1.7, -1.7]).ceil().tolist()
        [2.0, -1.0]
        """
        return self._op("ceil") if self.dtype.is_float else self._alias()

    def round(self) -> "Tensor":
        """Rounds to the nearest integer, ties to even.

        >>> kiln.tensor([1.7, 2.5]).round().tolist()
        [2.0, 2.0]
        """
        return self._op("round") if self.dtype.is_float else self._alias()

    def isnan(self) -> "Tensor":
        """Returns whether it is NaN.

        >>> kiln.tensor([1.0, kiln.nan]).isnan().tolist()
        [False, True]
        """
        # The op is for floats; an integer equals itself, so the result is False everywhere.
        return self._op("isnan") if self.dtype.is_float else self._op("cmpne", self)

    def isinf(self) -> "Tensor":
        """Returns whether it is infinite.

        >>> kiln.tensor([1.0, kiln.inf]).isinf().tolist()
        [False, True]
        """
        return self._op("isinf") if self.dtype.is_float else self._op("cmpne", self)

    def isfinite(self) -> "Tensor":
        """Returns whether it is neither NaN nor infinite.

        >>> kiln.tensor([1.0, kiln.inf]).isfinite().tolist()
        [True, False]
        """
        return self._op("isfinite") if self.dtype.is_float else self._op("cmpeq", self)

    def clamp(self, min: Any = None, max: Any = None) -> "Tensor":
        """Limits the values to [min, max]; both are numbers or tensors, and one may be None.

        If min is above max the result is max. The gradient is 1 from min to max inclusive, 0
        elsewhere.

        >>> kiln.tensor([1.0, 5.0]).clamp(max=2).tolist()
        [1.0, 2.0]
        """
        result = self._tensor
        if min is not None:
            result = result._op("clamp_min", min)
        if max is not None:
            result = result._op("clamp_max", max)
        return result

    clip = clamp

    def clamp_min(self, min: Any) -> "Tensor":
        """Limits the values to at least `min`.

        >>> kiln.tensor([[1, 2], [3, 4]]).clamp_min(2).tolist()
        [[2, 2], [3, 4]]
        """
        return self._op("clamp_min", min)

    def clamp_max(self, max: Any) -> "Tensor":
        """Limits the values to at most `max`.

        >>> kiln.tensor([[1, 2], [3, 4]]).clamp_max(2).tolist()
        [[1, 2], [2, 2]]
        """
        return self._op("clamp_max", max)

    def where(self, condition: Any, other: Any) -> "Tensor":
        """Returns self where `condition` is true, else `other`.

        >>> kiln.tensor([1.0, 4.0]).where(kiln.tensor([True, False]), 0).tolist()
        [1.0, 0.0]
        """
        return where(condition, self._tensor, other)

    def masked_fill(self, mask: "Tensor", value: Any) -> "Tensor":
        """Returns `value` where `mask` is true, else self, in self's dtype.

        >>> kiln.tensor([1.0, 4.0]).masked_fill(kiln.tensor([True, False]), -1).tolist()
        [-1.0, 4.0]
        """
        return where(mask, in_dtype(value, self.dtype), self._tensor)

    absolute = abs
    negative = neg
    fix = trunc

    def sqrt(self) -> "Tensor":
        """The square root.

        >>> kiln.tensor([1.0, 4.0]).sqrt().tolist()
        [1.0, 2.0]
        """
        return self._op("sqrt")

    def rsqrt(self) -> "Tensor":
        """1 / sqrt(self).

        >>> print(kiln.tensor([1.0, 4.0]).rsqrt())
        tensor([1. , 0.5], dtype=float32)
        """
        return self._op("rsqrt")

    def exp(self) -> "Tensor":
        """e to the power of self.

        >>> print(kiln.tensor([1.0, 4.0]).exp())
        tensor([ 2.7183, 54.5982], dtype=float32)
        """
        return self._op("exp")

    def exp2(self) -> "Tensor":
        """2 to the power of self.

        >>> kiln.tensor([1.0, 4.0]).exp2().tolist()
        [2.0, 16.0]
        """
        return self._op("exp2")

    def expm1(self) -> "Tensor":
        """exp(self) - 1, accurate near 0.

        >>> print(kiln.tensor([0.5, 1.0]).expm1())
        tensor([0.6487, 1.7183], dtype=float32)
        """
        return self._op("expm1")

    def log(self) -> "Tensor":
        """The natural logarithm.

        >>> print(kiln.tensor([1.0, 4.0]).log())
        tensor([0.    , 1.3863], dtype=float32)
        """
        return self._op("log")

    def log2(self) -> "Tensor":
        """The binary logarithm.

        >>> kiln.tensor([1.0, 4.0]).log2().tolist()
        [0.0, 2.0]
        """
        return self._op("log2")

    def log10(self) -> "Tensor":
        """The decimal logarithm.

        >>> print(kiln.tensor([0.5, 1.0]).log10())
        tensor([-0.301,  0.   ], dtype=float32)
        """
        return self._op("log10")

    def log1p(self) -> "Tensor":
        """The natural logarithm of 1 + self, accurate near 0.

        >>> print(kiln.tensor([0.5, 1.0]).log1p())
        tensor([0.4055, 0.6931], dtype=float32)
        """
        return self._op("log1p")

    def sin(self) -> "Tensor":
        """The sine of an angle in radians.

        >>> print(kiln.tensor([1.0, 4.0]).sin())
        tensor([ 0.8415, -0.7568], dtype=float32)
        """
        return self._op("sin")

    def cos(self) -> "Tensor":
        """The cosine of an angle in radians.

        >>> print(kiln.tensor([1.0, 4.0]).cos())
        tensor([ 0.5403, -0.6536], dtype=float32)
        """
        return self._op("cos")

    def tan(self) -> "Tensor":
        """The tangent of an angle in radians.

        >>> print(kiln.tensor([1.0, 4.0]).tan())
        tensor([1.5574, 1.1578], dtype=float32)
        """
        return self._op("tan")

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

    def tanh(self) -> "Tensor":
        """The hyperbolic tangent.

        >>> print(kiln.tensor([1.0, 4.0]).tanh())
        tensor([0.7616, 0.9993], dtype=float32)
        """
        return self._op("tanh")

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

    def sigmoid(self) -> "Tensor":
        """1 / (1 + exp(-self)).

        >>> print(kiln.tensor([1.0, 4.0]).sigmoid())
        tensor([0.7311, 0.982 ], dtype=float32)
        """
        return self._op("sigmoid")

    def erf(self) -> "Tensor":
        """The error function.

        >>> print(kiln.tensor([1.0, 4.0]).erf())
        tensor([0.8427, 1.    ], dtype=float32)
        """
        return self._op("erf")

    def erfc(self) -> "Tensor":
        """1 - erf(self), accurate even if the result is small.

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
