"""Reading and writing at places given by tensors of integers, as in PyTorch."""

import math
from typing import TYPE_CHECKING, Sequence, Union

from kiln._basics.conversion import integer_range
from kiln._basics.dtypes import DType
from kiln._basics.errors import InvalidArgument
from kiln._rules import normalize_axis
from kiln._tensor.assignment import assigned
from kiln._tensor.selection import one_place

if TYPE_CHECKING:
    from kiln.tensor import Tensor

# PyTorch's names of reductions, as modes of the op.
_MODES = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max",
          "amin": "min"}  # fmt: skip


def mode_of(reduce: str) -> str:
    """Returns the op's mode for PyTorch's name of a reduction."""
    if reduce not in _MODES:
        raise InvalidArgument(f'reduce "{reduce}"; it must be one of {", ".join(_MODES)}')
    return _MODES[reduce]


def neutral(mode: str, dtype: DType) -> float:
    """Returns the identity of the mode."""
    if mode in ("add", "mul"):
        return int(mode == "mul")
    if dtype.is_float:
        return -math.inf if mode == "max" else math.inf
    return integer_range(dtype)[mode == "min"]


def gather_along(tensor: "Tensor", dim: int, places: "Tensor") -> "Tensor":
    """Implements PyTorch's gather."""
    axis = normalize_axis(dim, tensor.ndim)
    source = _beside(tensor, axis, places.shape, "gather of")
    place = one_place(places, source.shape[axis], "gather")
    return place.checked(source._op("gather_elements", place.tensor, axis=axis))


def scatter_along(tensor: "Tensor", dim: int, places: "Tensor", values: Union["Tensor", float],
                  mode: str, op: str) -> "Tensor":
    """Implements PyTorch's scatter, scatter_add and scatter_reduce; errors name `op`."""
    if isinstance(values, (bool, int, float)):
        values = tensor.new_full(places.shape, values)
    axis = normalize_axis(dim, tensor.ndim)
    part = _beside(tensor, axis, places.shape, "scatter into")
    if values.ndim != places.ndim or any(
        size < wanted for size, wanted in zip(values.shape, places.shape)
    ):
        raise InvalidArgument(
            f"scatter of values of shape {values.shape} with an index of shape {places.shape}; "
            "no dimension of the values may be smaller")
    fitting = values[tuple(slice(size) for size in places.shape)]
    place = one_place(places, part.shape[axis], op)
    written = place.checked(
        part._op("scatter_elements", place.tensor, fitting, axis=axis, mode=mode))
    if part.shape == tensor.shape:
        return written
    return assigned(tensor, tuple(slice(size) for size in part.shape), written)


def _beside(tensor: "Tensor", axis: int, places: Sequence[int], what: str) -> "Tensor":
    """Returns the part of a tensor with the index's sizes, except along the axis."""
    fits = len(places) == tensor.ndim and all(
        i == axis or size <= tensor.shape[i] for i, size in enumerate(places))
    if not fits:
        raise InvalidArgument(
            f"{what} shape {tensor.shape} with an index of shape {tuple(places)}; both must have "
            f"the same number of dimensions, and only dimension {axis} of the index may be larger")
    return tensor[tuple(
        slice(None) if i == axis else slice(size) for i, size in enumerate(places))]


def put_along(tensor: "Tensor", dim: int, index: "Tensor", values: "Tensor", mode: str,
              op: str) -> "Tensor":
    """Implements PyTorch's index_add, index_copy and index_reduce; errors name `op`."""
    axis = normalize_axis(dim, tensor.ndim)
    if index.ndim > 1:
        raise InvalidArgument(f"an index of shape {index.shape}; it must have one dimension")
    place = one_place(index.reshape((index.numel(),)), tensor.shape[axis], op)
    return place.checked(tensor._op("scatter", place.tensor, values, axis=axis, mode=mode))
