"""The dtype of a module's floats."""

from typing import Any, TypeVar

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph import realize
from kiln._graph.gradient_mode import no_grad
from kiln._graph.node import alias
from kiln.nn._tree import Tree
from kiln.tensor import Tensor

Self = TypeVar("Self", bound="Precision")


class Precision(Tree):
    """The part of a module that casts its floats."""

    def to(self: Self, dtype: Any) -> Self:
        """Casts Parameters and buffers of floats to a dtype, in place; gradients are forgotten.

        An optimizer is made afterwards, since its state has the dtype of its parameters.

        >>> kiln.nn.Linear(2, 1).to("float16").weight.dtype
        kiln.float16
        """
        wanted = dtypes.as_dtype(dtype)
        if not wanted.is_float:
            raise InvalidArgument(f"a module in {wanted.name}; it needs a float dtype")
        # Each once, though modules may share tensors.
        for tensor in {id(tensor): tensor for _, tensor in self._named_tensors()}.values():
            if tensor.dtype.is_float and tensor.dtype is not wanted:
                _recast(tensor, wanted)
        return self

    def float(self: Self) -> Self:
        """In float32.

        >>> kiln.nn.Linear(2, 1).half().float().weight.dtype
        kiln.float32
        """
        return self.to(dtypes.float32)

    def double(self: Self) -> Self:
        """In float64.

        >>> kiln.nn.Linear(2, 1).double().weight.dtype
        kiln.float64
        """
        return self.to(dtypes.float64)

    def half(self: Self) -> Self:
        """In float16.

        >>> kiln.nn.Linear(2, 1).half().weight.dtype
        kiln.float16
        """
        return self.to(dtypes.float16)

    def bfloat16(self: Self) -> Self:
        """In bfloat16.

        >>> kiln.nn.Linear(2, 1).bfloat16().weight.dtype
        kiln.bfloat16
        """
        return self.to(dtypes.bfloat16)


def _recast(tensor: Tensor, dtype: dtypes.DType) -> None:
    with no_grad():
        # The object stays the same, since optimizers and other modules may hold it.
        tensor._node = alias(tensor.cast(dtype)._node)
    tensor._grad = None
    tensor._mark_leaf()
    realize.assigned(tensor)
