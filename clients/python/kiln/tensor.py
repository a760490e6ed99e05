"""The tensor: a name for a node of the lazy graph, or for a value on the device."""

from typing import Any, List

from kiln._basics import conversion, dtypes
from kiln._basics.errors import TraceError
from kiln._graph import node
from kiln._graph import realize as _realize
from kiln._tensor.arithmetic import Arithmetic
from kiln._tensor.attached import AttachedMethods
from kiln._tensor.base import apply, operand_node, register_tensor_class, wrap
from kiln._tensor.elementary import Elementary
from kiln._tensor.in_place import InPlace
from kiln._tensor.interop import Interop
from kiln._tensor.making import Making, stack
from kiln._tensor.ordering import Ordering
from kiln._tensor.parts import Parts
from kiln._tensor.rearranging import Rearranging
from kiln._tensor.scatter import GatherScatter
from kiln._tensor.state import State
from kiln._tensor.unary import Unary
from kiln._tensor.values import Number, Values


class Tensor(
    InPlace,
    Arithmetic,  # with comparisons and casts
    Unary,
    Elementary,
    Rearranging,  # with shapes
    Parts,
    Ordering,  # with reductions
    GatherScatter,
    Making,
    State,
    Values,
    Interop,
    AttachedMethods,
):
    """An n-dimensional array on the daemon's device.

    `data` is a number, nested lists (which may contain tensors), a NumPy array, which is copied, or
    a tensor, which is detached. Without a `dtype`, Python floats become float32 and Python ints
    int64.

    Lazy: an operation makes a node in this process and returns at once; its shape and dtype are
    known, its value is not. `numpy()`, `item()`, `tolist()` and printing read values; `realize()`
    computes the value and leaves it on the device.

    >>> x = kiln.Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> print(x @ x.T)
    tensor([[ 5., 11.],
            [11., 25.]], dtype=float32)
    """

    __slots__ = ()
    # NumPy arrays leave arithmetic with a Tensor to the Tensor.
    __array_priority__ = 1000

    def __init__(self, data: Any, dtype: Any = None, requires_grad: bool = False) -> None:
        self._grad = None
        self._requires_grad = False
        self._selected = False
        if _holds_tensors(data):
            data = _stacked(data)
        if isinstance(data, Tensor):
            wanted = data.dtype if dtype is None else dtypes.as_dtype(dtype)
            self._node = data.detach().cast(wanted)._node
        else:
            array, exact = conversion.to_array(data, dtype)
            self._node = node.host_value(array, exact)
            _realize.created(self._node, data)
        if requires_grad:
            self.requires_grad_()

    def __hash__(self) -> int:
        return id(self)


register_tensor_class(Tensor)


def _holds_tensors(data: Any) -> bool:
    """Returns whether data is nested lists that begin with a tensor."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
        if isinstance(data, Tensor):
            return True
    return False


def _stacked(data: Any) -> Tensor:
    """Stacks nested lists of tensors and numbers to one tensor, without reading values."""
    if isinstance(data, (list, tuple)):
        return stack([_stacked(part) for part in data])
    return data if isinstance(data, Tensor) else Tensor(data)


def realize(*tensors: Tensor) -> None:
    """Computes tensors in one program and leaves them on the device. Does not wait.

    >>> x = kiln.ones(3)
    >>> kiln.realize(x + 1, x * 2)
    """
    _realize.realize(tensors)


def find_tensors(structure: Any) -> List[Tensor]:
    """Returns all tensors in nested lists, tuples and dicts."""
    if isinstance(structure, Tensor):
        return [structure]
    if isinstance(structure, dict):
        structure = structure.values()
    elif not isinstance(structure, (list, tuple)):
        return []
    return [tensor for part in structure for tensor in find_tensors(part)]


__all__ = ["Number", "Tensor", "TraceError", "apply", "operand_node", "realize", "wrap"]
