"""Operators and methods that change the tensor itself, as PyTorch's do.

What was built from a tensor before keeps the old value. Shape and dtype stay: a result that does
not fit raises InvalidArgument, as does a leaf that requires a gradient outside of kiln.no_grad().
"""

from typing import TYPE_CHECKING, Any

from kiln._base import TensorBase

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class InPlace(TensorBase):
    """`x += 1` and x.add_(1)."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _in_place(self, result: "Tensor") -> "Tensor": ...

    def __iadd__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor + other)

    def __isub__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor - other)

    def __imul__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor * other)

    def __itruediv__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor / other)

    def __ifloordiv__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor // other)

    def __imod__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor % other)

    def __ipow__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor ** other)

    def __iand__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor & other)

    def __ior__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor | other)

    def __ixor__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor ^ other)

    def __ilshift__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor << other)

    def __irshift__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor >> other)

    def __imatmul__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor @ other)

    def add_(self, other: Any, alpha: Any = 1) -> "Tensor":
        """Adds in place."""
        return self._in_place(self._tensor.add(other, alpha))

    def sub_(self, other: Any, alpha: Any = 1) -> "Tensor":
        """Subtracts in place."""
        return self._in_place(self._tensor.sub(other, alpha))

    def mul_(self, other: Any) -> "Tensor":
        """Multiplies in place."""
        return self._in_place(self._tensor._tensor * other)

    def div_(self, other: Any) -> "Tensor":
        """Divides in place."""
        return self._in_place(self._tensor._tensor / other)
