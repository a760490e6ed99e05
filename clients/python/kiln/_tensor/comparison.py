"""Comparisons, logic and bits of Tensor, elementwise."""

from typing import TYPE_CHECKING, Any

from kiln._basics import conversion
from kiln._rules import flag
from kiln._tensor.base import tensor_of
from kiln._tensor.casting import Casting
from kiln._tensor.making import filled

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Comparison(Casting):
    """Comparisons and logic; operands broadcast, and Python numbers take the tensor's dtype."""

    __slots__ = ()

    # Comparisons return bools.

    def _compared(self, name: str, other: Any) -> "Tensor":
        if isinstance(other, int) and self.dtype.is_integer and not isinstance(other, bool):
            low, high = conversion.integer_range(self.dtype)
            if not low <= other <= high:  # the answer is the same for all elements
                return filled(self.shape, _ANSWERS[name][other > high])
        return self._op(name, other)

    def __contains__(self, value: Any) -> bool:
        return bool(self.eq(value).any())

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

    # Comparisons of whole tensors.

    def isclose(self, other: "Tensor", rtol: float = 1e-5, atol: float = 1e-8,
                equal_nan: bool = False) -> "Tensor":
        """Returns where elements are close: |self - other| <= atol + rtol * |other|, or equal. NaN
        is close to NaN only with `equal_nan`.

        >>> kiln.tensor([1.0, 4.0]).isclose(kiln.tensor([1.0, 5.0])).tolist()
        [True, False]
        """
        return self._op("isclose", other, rtol=float(rtol), atol=float(atol),
                        equal_nan=flag(equal_nan, "equal_nan"))

    def allclose(self, other: "Tensor", rtol: float = 1e-5, atol: float = 1e-8,
                 equal_nan: bool = False) -> bool:
        """Returns whether all elements are close in the sense of isclose. Reads one value.

        >>> kiln.tensor([1.0, 4.0]).allclose(kiln.tensor([1.0, 4.0]) + 1e-9)
        True
        """
        return bool(self.isclose(other, rtol, atol, equal_nan).all())

    def equal(self, other: "Tensor") -> bool:
        """Returns whether shapes and all elements are equal. Reads one value.

        >>> kiln.tensor([[1, 2], [3, 4]]).equal(kiln.tensor([[1, 2], [3, 4]]) + 0)
        True
        """
        return self.shape == other.shape and bool(self.eq(other).all())

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


# The results of comparisons with an integer below, and with one above, the dtype's range.
_ANSWERS = {
    "cmpeq": (False, False), "cmpne": (True, True), "cmplt": (False, True),
    "less_equal": (False, True), "greater": (True, False), "greater_equal": (True, False),
}  # fmt: skip


def _is_no_operand(other: Any) -> bool:
    """Returns whether == and != with `other` are left to Python, as with None."""
    return other is None or isinstance(other, (str, bytes, dict, set, type))
