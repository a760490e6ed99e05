"""Comparisons, logic and bits of Tensor, elementwise."""

from typing import TYPE_CHECKING, Any

from kiln._basics import conversion
from kiln._tensor.base import TensorBase

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Comparison(TensorBase):
    """Operands broadcast, and Python numbers take the tensor's dtype."""

    __slots__ = ()

    # Comparisons give bools.

    def _compared(self, name: str, other: Any) -> "Tensor":
        if isinstance(other, int) and self.dtype.is_integer and not isinstance(other, bool):
            low, high = conversion.integer_range(self.dtype)
            if not low <= other <= high:  # the answer is the same for all elements
                from kiln._array_api.creation import full

                return full(self.shape, _ANSWERS[name][other > high])
        return self._op(name, other)

    def __contains__(self, value: Any) -> bool:
        return bool(self.eq(value).any())

    def eq(self, other: Any) -> "Tensor":
        """Self == other.

        >>> kiln.tensor([[1, 2], [3, 4]]).eq(2).tolist()
        [[False, True], [False, False]]
        """
        return self._compared("cmpeq", other)

    def ne(self, other: Any) -> "Tensor":
        """Self != other.

        >>> kiln.tensor([[1, 2], [3, 4]]).ne(2).tolist()
        [[True, False], [True, True]]
        """
        return self._compared("cmpne", other)

    def lt(self, other: Any) -> "Tensor":
        """Self < other.

        >>> kiln.tensor([[1, 2], [3, 4]]).lt(2).tolist()
        [[True, False], [False, False]]
        """
        return self._compared("cmplt", other)

    def gt(self, other: Any) -> "Tensor":
        """Self > other.

        >>> kiln.tensor([[1, 2], [3, 4]]).gt(2).tolist()
        [[False, False], [True, True]]
        """
        return self._compared("greater", other)

    def le(self, other: Any) -> "Tensor":
        """Self <= other; false where either is NaN.

        >>> kiln.tensor([[1, 2], [3, 4]]).le(2).tolist()
        [[True, True], [False, False]]
        """
        return self._compared("less_equal", other)

    def ge(self, other: Any) -> "Tensor":
        """Self >= other; false where either is NaN.

        >>> kiln.tensor([[1, 2], [3, 4]]).ge(2).tolist()
        [[False, True], [True, True]]
        """
        return self._compared("greater_equal", other)

    __lt__ = lt
    __gt__ = gt
    __le__ = le
    __ge__ = ge

    def __eq__(self, other: Any) -> Any:
        return NotImplemented if _is_no_operand(other) else self.eq(other)

    def __ne__(self, other: Any) -> Any:
        return NotImplemented if _is_no_operand(other) else self.ne(other)

    # Bits and truth.

    def logical_and(self, other: Any) -> "Tensor":
        """Whether both are true.

        >>> kiln.tensor([True, False]).logical_and(True).tolist()
        [True, False]
        """
        return self._op("logical_and", other)

    def logical_or(self, other: Any) -> "Tensor":
        """Whether either is true.

        >>> kiln.tensor([True, False]).logical_or(True).tolist()
        [True, True]
        """
        return self._op("logical_or", other)

    def logical_not(self) -> "Tensor":
        """Whether it is false.

        >>> kiln.tensor([True, False]).logical_not().tolist()
        [False, True]
        """
        return self._op("logical_not")

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


# Of comparisons with an integer below, and above, all that the dtype has.
_ANSWERS = {
    "cmpeq": (False, False), "cmpne": (True, True), "cmplt": (False, True),
    "less_equal": (False, True), "greater": (True, False), "greater_equal": (True, False),
}  # fmt: skip


def _is_no_operand(other: Any) -> bool:
    """Whether equality with it is a plain False, as with None."""
    return other is None or isinstance(other, (str, bytes, dict, set, type))
