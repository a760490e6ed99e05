"""The dtype of a module's floats."""

from typing import Any, TypeVar

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph import live, places
from kiln._graph.gradient_mode import no_grad
from kiln._graph.node import alias
from kiln._tensor.device_transfer import on_device, place
from kiln.nn._tree import Tree, unique
from kiln.tensor import Tensor

Self = TypeVar("Self", bound="Precision")


class Precision(Tree):
    """The part of a module that casts its floats."""

    def to(self: Self, dtype: Any) -> Self:
        """Casts float Parameters and buffers to a dtype, in place; drops their gradients.

        Returns self. Given the name of a device, moves all of them there. Make the optimizer
        afterwards, since its state has the dtype and placement of its parameters. Raises
        InvalidArgument for a dtype other than a float, or an unknown device.

        >>> kiln.nn.Linear(2, 1).to("float16").weight.dtype
        kiln.float16
        >>> kiln.nn.Linear(2, 1).to("cpu:0").weight.device
        'cpu:0'
        """
        if isinstance(dtype, str) and dtype not in dtypes.BY_NAME:
            placement = on_device(dtype)
            for _, tensor in unique(self._named_tensors()):
                place(tensor, placement)
            return self
        wanted = dtypes.as_dtype(dtype)
        if not wanted.is_float:
            raise InvalidArgument(f"a module in {wanted.name}; it needs a float dtype")
        for _, tensor in unique(self._named_tensors()):
            if tensor.dtype.is_float and tensor.dtype is not wanted:
                _recast(tensor, wanted)
        return self

    def float(self: Self) -> Self:
        """Casts to float32.

        >>> kiln.nn.Linear(2, 1).half().float().weight.dtype
        kiln.float32
        """
        return self.to(dtypes.float32)

    def double(self: Self) -> Self:
        """Casts to float64.

        >>> kiln.nn.Linear(2, 1).double().weight.dtype
        kiln.float64
        """
        return self.to(dtypes.float64)

    def half(self: Self) -> Self:
        """Casts to float16.

        >>> kiln.nn.Linear(2, 1).half().weight.dtype
        kiln.float16
        """
        return self.to(dtypes.float16)

    def bfloat16(self: Self) -> Self:
        """Casts to bfloat16.

        >>> kiln.nn.Linear(2, 1).bfloat16().weight.dtype
        kiln.bfloat16
        """
        return self.to(dtypes.bfloat16)


def _recast(tensor: Tensor, dtype: dtypes.DType) -> None:
    with no_grad():
        # The object stays the same, since optimizers and other modules may hold it.
        tensor._node = places.like(tensor._node, alias(tensor.cast(dtype)._node))
    tensor._grad = None
    tensor._mark_leaf()
    live.note_assigned(tensor)
