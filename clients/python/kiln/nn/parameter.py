"""Parameter: a tensor that training changes."""

from typing import Any

from kiln.tensor import Tensor


class Parameter(Tensor):
    """A tensor that training changes. Requires a gradient by default.

    >>> kiln.nn.Parameter(kiln.zeros(2)).requires_grad
    True
    """

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        # Sets the other fields of a tensor; the node follows.
        super().__init__(0.0)
        self._node = (data if isinstance(data, Tensor) else Tensor(data)).detach()._node
        if requires_grad:
            self.requires_grad_()

    def __deepcopy__(self, memo: Any) -> "Parameter":
        copied = memo[id(self)] = Parameter(self, self._requires_grad)
        return copied

    def __reduce__(self) -> Any:
        return _rebuild, (self.numpy(), self.dtype.name, self._requires_grad)


def _rebuild(array: Any, dtype: str, requires_grad: bool) -> Parameter:
    return Parameter(Tensor(array, dtype), requires_grad)
