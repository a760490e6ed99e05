"""Makes tensors of numbers and of other tensors, for methods and as functions of `kiln`."""

from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple

import numpy as np

from kiln._basics import conversion, dtypes
from kiln._basics.dtypes import DType
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import torch_names
from kiln._graph.node import make, scalar
from kiln._rules import normalize_axis
from kiln._tensor.base import TensorBase, apply, operand_node, tensor_of, wrap

if TYPE_CHECKING:
    from kiln.tensor import Tensor


def filled(shape: Tuple[int, ...], value: Any, dtype: Any = None) -> "Tensor":
    """Returns a tensor filled with a Python number or a tensor's; see kiln.full."""
    if isinstance(value, np.generic):
        dtype, value = value.dtype if dtype is None else dtype, value.item()
    if isinstance(value, TensorBase):
        return value._tensor.cast(value.dtype if dtype is None else dtype).expand(shape)
    kind = dtypes.as_dtype(type(value) if dtype is None else dtype)
    return wrap(make("expand", (scalar(value, kind),), (("shape", shape),)))


def iota(shape: Sequence[int], axis: int = 0, dtype: Any = None) -> "Tensor":
    """Returns each element's index along an axis; int64 by default.

    >>> kiln.iota((2, 3), 1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    kind = dtypes.as_dtype(dtype or dtypes.int64)
    return wrap(make("iota", (), (("shape", tuple(shape)), ("axis", axis)), kind))


def where(condition: Any, x1: Any, x2: Any, /) -> "Tensor":
    """Returns x1 where the condition is true (or not 0), x2 elsewhere.

    Shapes broadcast, and the dtypes of x1 and x2 promote. No gradient flows to elements that were
    not chosen.

    >>> kiln.where(kiln.tensor([True, False]), kiln.tensor([1, 2]), -1).tolist()
    [1, -1]
    """
    chosen = tensor_of(condition)
    like = x1 if isinstance(x1, TensorBase) else tensor_of(x2 if isinstance(x2, TensorBase) else x1)
    nodes = (chosen.bool()._node, operand_node(x1, like._node), operand_node(x2, like._node))
    return wrap(make("where", nodes))


@torch_names
def concat(arrays: Sequence["Tensor"], /, axis: Optional[int] = 0) -> "Tensor":
    """Concatenates tensors along an axis, or flattened if `axis` is None. Their dtypes promote.

    Raises InvalidArgument if there are none.

    >>> kiln.concat([kiln.ones(2), kiln.zeros(1)]).tolist()
    [1.0, 1.0, 0.0]
    """
    parts = list(arrays)
    if not parts:
        raise InvalidArgument("concat of no tensors; give at least one")
    if axis is None:
        return apply("concat", [tensor_of(part).flatten() for part in parts], axis=0)
    return apply("concat", parts, axis=axis)


@torch_names
def stack(arrays: Sequence["Tensor"], /, axis: int = 0) -> "Tensor":
    """Stacks tensors of one shape along a new axis.

    Raises InvalidArgument if there are none, or if their shapes differ.

    >>> kiln.stack([kiln.tensor([1, 2]), kiln.tensor([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    parts = [tensor_of(part) for part in arrays]
    if not parts:
        raise InvalidArgument("stack of no tensors; give at least one")
    place = normalize_axis(axis, parts[0].ndim + 1)
    for part in parts[1:]:
        if part.shape != parts[0].shape:
            raise InvalidArgument(
                f"stack of shapes {parts[0].shape} and {part.shape}; they must agree")
    return concat([part.unsqueeze(place) for part in parts], place)


def in_dtype(value: Any, dtype: DType) -> "Tensor":
    """Returns a value in the tensor's dtype; raises InvalidArgument if it is of a wider kind."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return wrap(scalar(value, dtype))
    value = tensor_of(value)
    if not conversion.is_same_kind(value.dtype, dtype):
        raise InvalidArgument(
            f"cannot assign {value.dtype.name} to elements of a tensor of {dtype.name}; cast it "
            f"with .cast(kiln.{dtype.name}) first")
    cast: Tensor = value.cast(dtype)
    return cast
