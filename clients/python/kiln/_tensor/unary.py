"""Elementwise functions of one tensor."""

from typing import TYPE_CHECKING, Any

from kiln._tensor.comparison import Comparison

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Unary(Comparison):
    """Of one operand, but for bounds and choices."""

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

    def __abs__(self) -> "Tensor":
        return self.abs()

    def reciprocal(self) -> "Tensor":
        """1 / self.

        >>> kiln.tensor([1.0, 4.0]).reciprocal().tolist()
        [1.0, 0.25]
        """
        return self._op("reciprocal")

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

    def square(self) -> "Tensor":
        """Self * self.

        >>> kiln.tensor([1.0, 4.0]).square().tolist()
        [1.0, 16.0]
        """
        return self._op("square")

    def exp(self) -> "Tensor":
        """E to the power of self.

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

    def sin(self) -> "Tensor":
        """The sine of radians.

        >>> print(kiln.tensor([1.0, 4.0]).sin())
        tensor([ 0.8415, -0.7568], dtype=float32)
        """
        return self._op("sin")

    def cos(self) -> "Tensor":
        """The cosine of radians.

        >>> print(kiln.tensor([1.0, 4.0]).cos())
        tensor([ 0.5403, -0.6536], dtype=float32)
        """
        return self._op("cos")

    def tan(self) -> "Tensor":
        """The tangent of radians.

        >>> print(kiln.tensor([1.0, 4.0]).tan())
        tensor([1.5574, 1.1578], dtype=float32)
        """
        return self._op("tan")

    def tanh(self) -> "Tensor":
        """The hyperbolic tangent.

        >>> print(kiln.tensor([1.0, 4.0]).tanh())
        tensor([0.7616, 0.9993], dtype=float32)
        """
        return self._op("tanh")

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

    def relu(self) -> "Tensor":
        """max(self, 0).

        >>> kiln.tensor([-1.0, 2.0]).relu().tolist()
        [0.0, 2.0]
        """
        return self._op("relu")

    def abs(self) -> "Tensor":
        """The absolute value.

        >>> kiln.tensor([7, -7]).abs().tolist()
        [7, 7]
        """
        return self._op("abs")

    def sign(self) -> "Tensor":
        """-1, 0 or 1.

        >>> kiln.tensor([7, -7]).sign().tolist()
        [1, -1]
        """
        return self._op("sign")

    def trunc(self) -> "Tensor":
        """Without the fraction.

        >>> kiln.tensor([1.7, -1.7]).trunc().tolist()
        [1.0, -1.0]
        """
        return self._op("trunc") if self.dtype.is_float else self._alias()

    def floor(self) -> "Tensor":
        """Rounded down.

        >>> kiln.tensor([1.7, -1.7]).floor().tolist()
        [1.0, -2.0]
        """
        return self._op("floor") if self.dtype.is_float else self._alias()

    def ceil(self) -> "Tensor":
        """Rounded up.

        >>> kiln.tensor([1.7, -1.7]).ceil().tolist()
        [2.0, -1.0]
        """
        return self._op("ceil") if self.dtype.is_float else self._alias()

    def round(self) -> "Tensor":
        """Rounded to the nearest integer, ties to even.

        >>> kiln.tensor([1.7, 2.5]).round().tolist()
        [2.0, 2.0]
        """
        return self._op("round") if self.dtype.is_float else self._alias()

    def __round__(self, digits: int = 0) -> "Tensor":
        scale = 10.0**digits
        return self.round() if digits == 0 else (self._tensor * scale).round() / scale

    def isnan(self) -> "Tensor":
        """Whether it is not a number.

        >>> kiln.tensor([1.0, kiln.nan]).isnan().tolist()
        [False, True]
        """
        return self._op("isnan") if self.dtype.is_float else self._op("cmpne", self)

    def isinf(self) -> "Tensor":
        """Whether it is infinite.

        >>> kiln.tensor([1.0, kiln.inf]).isinf().tolist()
        [False, True]
        """
        return self._op("isinf") if self.dtype.is_float else self._op("cmpne", self)

    def isfinite(self) -> "Tensor":
        """Whether it is a number and not infinite.

        >>> kiln.tensor([1.0, kiln.inf]).isfinite().tolist()
        [True, False]
        """
        return self._op("isfinite") if self.dtype.is_float else self._op("cmpeq", self)

    def clamp(self, min: Any = None, max: Any = None) -> "Tensor":
        """Held between `min` and `max`, numbers or tensors, of which one may be None.

        Where min is above max it is max. The gradient is 1 from min to max, both included.

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

    def where(self, condition: Any, other: Any) -> "Tensor":
        """Self where `condition` is true, else `other`.

        >>> kiln.tensor([1.0, 4.0]).where(kiln.tensor([True, False]), 0).tolist()
        [1.0, 0.0]
        """
        from kiln._array_api.searching import where

        return where(condition, self._tensor, other)

    def masked_fill(self, mask: "Tensor", value: Any) -> "Tensor":
        """`value` where `mask` is true, else self.

        >>> kiln.tensor([1.0, 4.0]).masked_fill(kiln.tensor([True, False]), -1).tolist()
        [-1.0, 4.0]
        """
        from kiln._array_api.searching import where

        return where(mask, value, self._tensor)

    def lerp(self, end: Any, weight: Any) -> "Tensor":
        """Self + weight * (end - self).

        >>> kiln.tensor([1.0, 4.0]).lerp(kiln.tensor([3.0, 8.0]), 0.5).tolist()
        [2.0, 6.0]
        """
        return self._tensor.add((end - self._tensor) * weight)
