"""torch.nn.parameter: tensors that training changes."""

from typing import Any

from kiln._basics import dtypes
from kiln._graph import node as _node
from kiln._tensor import gradients
from kiln.nn.parameter import Parameter as KilnParameter
from kiln.torch import _views
from kiln.torch._tensor import Tensor, convert


class Parameter(Tensor, KilnParameter):
    """A tensor that training changes: a leaf that requires a gradient by default.

    >>> torch.nn.Parameter(torch.zeros(2)).requires_grad
    True
    """

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        value = gradients.snapshot(convert([] if data is None else data))
        self._grad = None
        self._requires_grad = False
        self._selected = False
        self._node = _node.alias(value._node)
        if isinstance(data, Tensor) and not data.requires_grad and data._share is None:
            # As in PyTorch, the Parameter and the tensor share their value.
            _views.detached(self, data)
        if requires_grad and self.dtype.is_float:
            self.requires_grad_()

    def __deepcopy__(self, memo: Any) -> "Parameter":
        copied = memo[id(self)] = type(self)(gradients.snapshot(self).clone(), self._requires_grad)
        vars(copied).update({name: value for name, value in vars(self).items()
                             if name not in ("_share", "_steps", "_seen", "_hooks")})
        return copied

    def __repr__(self) -> str:
        return f"Parameter containing:\n{Tensor.__repr__(self)}"

    def __reduce__(self) -> Any:
        return _rebuilt, (self.numpy(), self.dtype.name, self._requires_grad)

    __hash__ = Tensor.__hash__


def _rebuilt(array: Any, dtype: str, requires_grad: bool) -> Parameter:
    return Parameter(convert(array, dtypes.BY_NAME[dtype]), requires_grad)


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned to an attribute."""

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        value = convert([] if data is None else data)
        self._grad = None
        self._requires_grad = False
        self._selected = False
        self._node = value._node
        self.persistent = persistent

    __hash__ = Tensor.__hash__
