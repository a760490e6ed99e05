"""Elementwise arithmetic and its operators."""

from typing import TYPE_CHECKING, Any, Optional, Tuple

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph.node import make, scalar
from kiln._tensor.base import TensorBase, weak_or_tensor, wrap
from kiln._tensor.comparison import Comparison
from kiln._tensor.contractions import contracted
from kiln._tensor.making import filled

if TYPE_CHECKING:
    from kiln.tensor import Tensor


# Ops for the sum and the product of two bools, which are bools as in NumPy and PyTorch.
_OF_BOOLS = {"add": "or", "mul": "and"}


class Arithmetic(Comparison):
    """Elementwise arithmetic; operands broadcast, and Python numbers take the tensor's dtype."""

    __slots__ = ()

    # Arithmetic. A bool with a number counts as 0 or 1.

    def _numeric(self, name: str, other: Any, reflected: bool = False) -> "Tensor":
        node = self._node
        if node.dtype.is_float:  # a short path for the most common cases
            beside = None
            if type(other) is float:
                beside = scalar(other, node.dtype)
            elif isinstance(other, TensorBase) and other._node.dtype is node.dtype:
                beside = other._node
            if beside is not None:
                return wrap(make(name, (beside, node) if reflected else (node, beside)))
        mine = self._tensor
        other = weak_or_tensor(other)
        given = isinstance(other, TensorBase)
        is_bool = other.dtype is dtypes.bool_ if given else isinstance(other, bool)
        if self.dtype is dtypes.bool_:
            if is_bool and name in _OF_BOOLS:
                return mine._op(_OF_BOOLS[name], other)
            if is_bool and name == "sub":
                raise InvalidArgument(
                    "the difference of two bools; it must be of numbers. Take a ^ b for where they "
                    "differ, ~b for the opposite, or cast them to an integer")
            if given and not is_bool:
                mine = self.cast(other.dtype)
            else:
                mine = self.cast(dtypes.float32 if isinstance(other, float) else dtypes.int64)
        if is_bool and given:
            other = other.cast(mine.dtype)
        return mine._reflected(name, other) if reflected else mine._op(name, other)

    def add(self, other: Any, alpha: Any = 1) -> "Tensor":
        """self + alpha * other; for two bools, whether either is true.

        >>> kiln.tensor([1.0, 4.0]).add(2, alpha=10).tolist()
        [21.0, 24.0]
        """
        if alpha != 1:
            other = other * alpha
        return self._numeric("add", other)

    def sub(self, other: Any, alpha: Any = 1) -> "Tensor":
        """self - alpha * other; raises InvalidArgument for two bools.

        >>> kiln.tensor([1.0, 4.0]).sub(kiln.tensor([1.0, 1.0])).tolist()
        [0.0, 3.0]
        """
        if alpha != 1:
            other = other * alpha
        return self._numeric("sub", other)

    def mul(self, other: Any) -> "Tensor":
        """self * other; for two bools, whether both are true.

        >>> kiln.tensor([1.0, 4.0]).mul(2).tolist()
        [2.0, 8.0]
        """
        return self._numeric("mul", other)

    def div(self, other: Any, *, rounding_mode: Optional[str] = None) -> "Tensor":
        """self / other; integers become float32 unless rounding_mode is "floor" or "trunc".

        Raises InvalidArgument for another rounding_mode.

        >>> kiln.tensor([1, 3]).div(2).tolist()
        [0.5, 1.5]
        >>> kiln.tensor([-7, 7]).div(2, rounding_mode="trunc").tolist()
        [-3, 3]
        """
        if rounding_mode is None:
            return self._op("div", other)
        if rounding_mode == "floor":
            return self.floor_divide(other)
        if rounding_mode != "trunc":
            raise InvalidArgument(
                f'rounding_mode {rounding_mode!r}; it must be "floor", "trunc" or None')
        floor = self.floor_divide(other)
        if floor.dtype.is_float:
            return self._op("div", other).trunc()
        # Exact for all integers: adds one to a quotient that is negative and was rounded.
        return floor.add(((floor < 0) & (floor * other != self)).cast(floor.dtype))

    def floor_divide(self, other: Any) -> "Tensor":
        """Returns the quotient rounded down, like Python's //.

        >>> kiln.tensor([7, -7]).floor_divide(2).tolist()
        [3, -4]
        """
        return self._numeric("floor_divide", other)

    def remainder(self, other: Any) -> "Tensor":
        """Returns the remainder with the divisor's sign, like Python's %.

        >>> kiln.tensor([7, -7]).remainder(3).tolist()
        [1, 2]
        """
        return self._numeric("remainder", other)

    def pow(self, exponent: Any) -> "Tensor":
        """Raises self to a power; integers stay integers and wrap.

        A negative Python int as the exponent of an integer tensor raises InvalidArgument.

        >>> kiln.tensor([1.0, 4.0]).pow(2).tolist()
        [1.0, 16.0]
        """
        if isinstance(exponent, int) and not isinstance(exponent, bool):
            if self.dtype is dtypes.bool_:
                return self.cast(dtypes.int64).pow(exponent)
            if exponent == 2:
                return self._tensor.square()
            if exponent == 1:
                return self._alias()
            if exponent == 3:
                return self * self._tensor.square()
            if exponent < 0 and not self.dtype.is_float:
                raise InvalidArgument(f"{self.dtype.name} to the power {exponent} is not an "
                                      "integer; "
                                      "cast the tensor to float32 first")
        if isinstance(exponent, float) and exponent == 0.5:
            return self._tensor.sqrt()
        return self._numeric("pow", exponent)

    def maximum(self, other: Any) -> "Tensor":
        """Returns the larger of two, elementwise.

        >>> kiln.tensor([1.0, 4.0]).maximum(2).tolist()
        [2.0, 4.0]
        """
        return self._op("maximum", other)

    def minimum(self, other: Any) -> "Tensor":
        """Returns the smaller of two, elementwise.

        >>> kiln.tensor([1.0, 4.0]).minimum(2).tolist()
        [1.0, 2.0]
        """
        return self._op("minimum", other)

    def fmod(self, other: Any) -> "Tensor":
        """Returns the remainder of self / other with self's sign; remainder() has other's.

        >>> kiln.tensor([7.0, -7.0]).fmod(kiln.tensor(3.0)).tolist()
        [1.0, -1.0]
        """
        return self._tensor._numeric("fmod", other)

    def atan2(self, other: Any) -> "Tensor":
        """Returns the angle of the point (other, self), in radians.

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
        """Returns self with the sign of other.

        >>> kiln.tensor([3.0, 2.0]).copysign(kiln.tensor([-1.0, 1.0])).tolist()
        [-3.0, 2.0]
        """
        return self._op("copysign", other)

    def nextafter(self, other: Any) -> "Tensor":
        """Returns the next float after self in the direction of other.

        >>> kiln.tensor([1.0]).nextafter(kiln.tensor([2.0])).tolist()
        [1.0000001192092896]
        """
        return self._op("nextafter", other)

    def lerp(self, end: Any, weight: Any) -> "Tensor":
        """self + weight * (end - self).

        >>> kiln.tensor([1.0, 4.0]).lerp(kiln.tensor([3.0, 8.0]), 0.5).tolist()
        [2.0, 6.0]
        """
        return self._tensor.add((end - self._tensor) * weight)

    def addcmul(self, a: "Tensor", b: "Tensor", value: Any = 1) -> "Tensor":
        """self + value * a * b.

        >>> kiln.ones(2).addcmul(kiln.ones(2), kiln.ones(2) * 3, value=2).tolist()
        [7.0, 7.0]
        """
        return self.add(a.mul(b), value)

    def addcdiv(self, a: "Tensor", b: "Tensor", value: Any = 1) -> "Tensor":
        """self + value * a / b.

        >>> kiln.ones(2).addcdiv(kiln.full((2,), 6.0), kiln.ones(2) * 3).tolist()
        [3.0, 3.0]
        """
        return self.add(a.div(b), value)

    def addmm(self, a: "Tensor", b: "Tensor", beta: Any = 1, alpha: Any = 1) -> "Tensor":
        """beta * self + alpha * (a @ b). If beta is 0, NaN and infinities of self are ignored.

        >>> kiln.zeros(2, 2).addmm(kiln.eye(2), kiln.ones(2, 2), alpha=3).tolist()
        [[3.0, 3.0], [3.0, 3.0]]
        """
        mine = self._tensor
        if beta == 0:
            mine = filled((), 0, self.dtype).where(filled((), True), mine)
        elif beta != 1:
            mine = self.mul(beta)
        return mine.add(a.matmul(b), alpha)

    baddbmm = addmm

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
    true_divide = div
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
        return self._numeric("pow", other, reflected=True)

    def __matmul__(self, other: Any) -> "Tensor":
        return self._tensor.matmul(other)

    def __rmatmul__(self, other: Any) -> "Tensor":
        return contracted("matmul", (other, self._tensor))

    def __divmod__(self, other: Any) -> Tuple["Tensor", "Tensor"]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Tuple["Tensor", "Tensor"]:
        return other // self, other % self
