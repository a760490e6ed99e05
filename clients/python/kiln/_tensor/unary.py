"""Methods of Tensor for each element by itself: its sign, rounding, bounds, and choices."""

from typing import TYPE_CHECKING, Any

from kiln._basics import dtypes
from kiln._tensor.assignment import in_dtype
from kiln._tensor.base import TensorBase
from kiln._tensor.making import where

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Unary(TensorBase):
    """Methods of one operand, with bounds and choices."""

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

    def __round__(self, digits: int = 0) -> "Tensor":
        scale = 10.0**digits
        return self.round() if digits == 0 else (self._tensor * scale).round() / scale

    def frac(self) -> "Tensor":
        """Returns the fraction, with the number's sign.

        >>> kiln.tensor([1.5, -2.25]).frac().tolist()
        [0.5, -0.25]
        """
        return self._tensor.sub(self.trunc())

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
