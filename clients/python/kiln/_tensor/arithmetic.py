"""Elementwise arithmetic, comparisons, logic and bits of Tensor, and products of matrices."""

from typing import TYPE_CHECKING, Any, Optional, Tuple

from kiln._basics import conversion, dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph.node import make, scalar
from kiln._rules import flag
from kiln._tensor.base import TensorBase, operand_node, tensor_of, weak_or_tensor, wrap
from kiln._tensor.constructors import filled
from kiln._tensor.contractions import contracted
from kiln._tensor.math import Math

if TYPE_CHECKING:
    from kiln.tensor import Tensor


# Ops for the sum and the product of two bools, which are bools as in NumPy and PyTorch.
_OF_BOOLS = {"add": "or", "mul": "and"}

# The results of comparisons with an integer below, and with one above, the dtype's range.
_ANSWERS = {
    "cmpeq": (False, False), "cmpne": (True, True), "cmplt": (False, True),
    "less_equal": (False, True), "greater": (True, False), "greater_equal": (True, False),
}  # fmt: skip


class Arithmetic(Math):
    """Operators and their methods.

    Operands broadcast, and Python numbers take the tensor's dtype.
    """

    __slots__ = ()

    # Arithmetic. A bool with a number counts as 0 or 1.

    def _numeric(self, name: str, other: Any, reflected: bool = False) -> "Tensor":
        node = self._node
        if node.dtype.is_float:  # a short path for the most common cases
            beside = None
            if type(other) is float:
                beside = scalar(other, node.dtype) if node.dialect is None else (
                    operand_node(other, node, name))
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
                return self.square()
            if exponent == 1:
                return self._alias()
            if exponent == 3:
                return self * self.square()
            if exponent < 0 and not self.dtype.is_float:
                raise InvalidArgument(f"{self.dtype.name} to the power {exponent} is not an "
                                      "integer; "
                                      "cast the tensor to float32 first")
        if isinstance(exponent, float) and exponent == 0.5:
            return self.sqrt()
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
        return self._numeric("fmod", other)

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
        return self.add((end - self) * weight)

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
    multiply = mul
    divide = div
    true_divide = div
    subtract = sub

    def __add__(self, other: Any) -> "Tensor":
        return self._numeric("add", other)

    def __sub__(self, other: Any) -> "Tensor":
        return self._numeric("sub", other)

    def __mul__(self, other: Any) -> "Tensor":
        return self._numeric("mul", other)

    def __truediv__(self, other: Any) -> "Tensor":
        return self._op("div", other)

    def __floordiv__(self, other: Any) -> "Tensor":
        return self._numeric("floor_divide", other)

    def __mod__(self, other: Any) -> "Tensor":
        return self._numeric("remainder", other)

    def __pow__(self, exponent: Any) -> "Tensor":
        return self.pow(exponent)

    __radd__ = __add__
    __rmul__ = __mul__

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
        return self.matmul(other)

    def __rmatmul__(self, other: Any) -> "Tensor":
        return contracted("matmul", (other, self._tensor))

    def __divmod__(self, other: Any) -> Tuple["Tensor", "Tensor"]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Tuple["Tensor", "Tensor"]:
        return other // self, other % self

    def __round__(self, digits: int = 0) -> "Tensor":
        scale = 10.0**digits
        return self.round() if digits == 0 else (self * scale).round() / scale

    def frac(self) -> "Tensor":
        """Returns the fraction, with the number's sign.

        >>> kiln.tensor([1.5, -2.25]).frac().tolist()
        [0.5, -0.25]
        """
        return self.sub(self.trunc())

    # Products of matrices and vectors.

    def matmul(self, other: Any) -> "Tensor":
        """Returns the matrix product, as in NumPy; for bools, whether any product is true.

        >>> kiln.tensor([[1, 2], [3, 4]]).matmul(kiln.tensor([[1, 2], [3, 4]])).tolist()
        [[7, 10], [15, 22]]
        """
        return contracted("matmul", (self._tensor, other))

    mm = bmm = matmul

    def dot(self, other: "Tensor") -> "Tensor":
        """Returns the inner product of two vectors. Raises InvalidArgument for other shapes.

        >>> kiln.tensor([1.0, 4.0]).dot(kiln.tensor([1.0, 4.0])).item()
        17.0
        """
        if self.ndim != 1 or other.ndim != 1:
            raise InvalidArgument(
                f"dot of shapes {self.shape} and {other.shape}; both must be vectors")
        return self.matmul(other)

    # Comparisons return bools.

    def _compared(self, name: str, other: Any) -> "Tensor":
        if isinstance(other, int) and self.dtype.is_integer and not isinstance(other, bool):
            low, high = conversion.integer_range(self.dtype)
            if not low <= other <= high:  # the answer is the same for all elements
                return filled(self.shape, _ANSWERS[name][other > high])
        return self._op(name, other)

    def eq(self, other: Any) -> "Tensor":
        """self == other.

        >>> kiln.tensor([[1, 2], [3, 4]]).eq(2).tolist()
        [[False, True], [False, False]]
        """
        return self._compared("cmpeq", other)

    def ne(self, other: Any) -> "Tensor":
        """self != other.

        >>> kiln.tensor([[1, 2], [3, 4]]).ne(2).tolist()
        [[True, False], [True, True]]
        """
        return self._compared("cmpne", other)

    def lt(self, other: Any) -> "Tensor":
        """self < other.

        >>> kiln.tensor([[1, 2], [3, 4]]).lt(2).tolist()
        [[True, False], [False, False]]
        """
        return self._compared("cmplt", other)

    def gt(self, other: Any) -> "Tensor":
        """self > other.

        >>> kiln.tensor([[1, 2], [3, 4]]).gt(2).tolist()
        [[False, False], [True, True]]
        """
        return self._compared("greater", other)

    def le(self, other: Any) -> "Tensor":
        """self <= other; false where either is NaN.

        >>> kiln.tensor([[1, 2], [3, 4]]).le(2).tolist()
        [[True, True], [False, False]]
        """
        return self._compared("less_equal", other)

    def ge(self, other: Any) -> "Tensor":
        """self >= other; false where either is NaN.

        >>> kiln.tensor([[1, 2], [3, 4]]).ge(2).tolist()
        [[False, True], [True, True]]
        """
        return self._compared("greater_equal", other)

    __lt__ = lt
    __gt__ = gt
    __le__ = le
    __ge__ = ge
    less = lt
    less_equal = le
    greater = gt
    greater_equal = ge
    not_equal = ne

    def __eq__(self, other: Any) -> Any:
        return NotImplemented if _is_no_operand(other) else self.eq(other)

    def __ne__(self, other: Any) -> Any:
        return NotImplemented if _is_no_operand(other) else self.ne(other)

    # Comparisons of whole tensors: also allclose() and equal(), which reduce.

    def isclose(self, other: "Tensor", rtol: float = 1e-5, atol: float = 1e-8,
                equal_nan: bool = False) -> "Tensor":
        """Returns where elements are close: |self - other| <= atol + rtol * |other|, or equal. NaN
        is close to NaN only with `equal_nan`.

        >>> kiln.tensor([1.0, 4.0]).isclose(kiln.tensor([1.0, 5.0])).tolist()
        [True, False]
        """
        return self._op("isclose", other, rtol=float(rtol), atol=float(atol),
                        equal_nan=flag(equal_nan, "equal_nan"))

    def is_same_size(self, other: "Tensor") -> bool:
        """Returns whether both have the same shape.

        >>> kiln.tensor([1.0, 4.0]).is_same_size(kiln.tensor([1.0, 4.0]))
        True
        """
        return self.shape == other.shape

    # Logic and bits.

    def logical_and(self, other: Any) -> "Tensor":
        """Returns whether both are true.

        >>> kiln.tensor([True, False]).logical_and(True).tolist()
        [True, False]
        """
        return self._op("logical_and", other)

    def logical_or(self, other: Any) -> "Tensor":
        """Returns whether either is true.

        >>> kiln.tensor([True, False]).logical_or(True).tolist()
        [True, True]
        """
        return self._op("logical_or", other)

    def logical_not(self) -> "Tensor":
        """Returns whether it is false.

        >>> kiln.tensor([True, False]).logical_not().tolist()
        [False, True]
        """
        return self._op("logical_not")

    def logical_xor(self, other: Any) -> "Tensor":
        """Returns whether exactly one of the two is true (not 0).

        >>> kiln.tensor([True, False]).logical_xor(True).tolist()
        [False, True]
        """
        return self.bool()._op("cmpne", tensor_of(other).bool())

    def bitwise_and(self, other: Any) -> "Tensor":
        """Returns the bits that are set in both.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_and(2).tolist()
        [[0, 2], [2, 0]]
        """
        return self._op("and", other)

    def bitwise_or(self, other: Any) -> "Tensor":
        """Returns the bits that are set in either.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_or(4).tolist()
        [[5, 6], [7, 4]]
        """
        return self._op("or", other)

    def bitwise_xor(self, other: Any) -> "Tensor":
        """Returns the bits that are set in exactly one of the two.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_xor(1).tolist()
        [[0, 3], [2, 5]]
        """
        return self._op("xor", other)

    def bitwise_not(self) -> "Tensor":
        """Inverts every bit.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_not().tolist()
        [[-2, -3], [-4, -5]]
        """
        return self._op("not")

    def bitwise_left_shift(self, other: Any) -> "Tensor":
        """Shifts bits left.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_left_shift(1).tolist()
        [[2, 4], [6, 8]]
        """
        return self._op("shl", other)

    def bitwise_right_shift(self, other: Any) -> "Tensor":
        """Shifts bits right, keeping the sign.

        >>> kiln.tensor([[1, 2], [3, 4]]).bitwise_right_shift(1).tolist()
        [[0, 1], [1, 2]]
        """
        return self._op("shr", other)

    def __and__(self, other: Any) -> "Tensor":
        return self._op("and", other)

    def __or__(self, other: Any) -> "Tensor":
        return self._op("or", other)

    def __xor__(self, other: Any) -> "Tensor":
        return self._op("xor", other)

    def __lshift__(self, other: Any) -> "Tensor":
        return self._op("shl", other)

    def __rshift__(self, other: Any) -> "Tensor":
        return self._op("shr", other)

    __rand__ = __and__
    __ror__ = __or__
    __rxor__ = __xor__

    def __rlshift__(self, other: Any) -> "Tensor":
        return self._reflected("shl", other)

    def __rrshift__(self, other: Any) -> "Tensor":
        return self._reflected("shr", other)

    def __invert__(self) -> "Tensor":
        return self._op("not")


def _is_no_operand(other: Any) -> bool:
    """Returns whether == and != with `other` are left to Python, as with None."""
    return other is None or isinstance(other, (str, bytes, dict, set, type))
