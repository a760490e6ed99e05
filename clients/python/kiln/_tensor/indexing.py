"""tensor[key], as NumPy's, and PyTorch's gather and scatter."""

from math import prod
from typing import TYPE_CHECKING, Any, List, Sequence

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln._graph.node import mode
from kiln._rules import normalize_axis
from kiln._tensor.base import constant
from kiln._tensor.keys import Part, Span, is_mask, parse, without_masks
from kiln._tensor.selection import Selection, combined
from kiln.variables import Dim, has_dims

if TYPE_CHECKING:
    from kiln.tensor import Tensor


def index(tensor: "Tensor", key: Any) -> "Tensor":
    """tensor[key]. See Tensor.__getitem__."""
    parts, apart = parse(tensor.shape, key)
    new: List[int] = []
    if any(is_mask(part) for part in parts):
        parts, new = without_masks(parts)
    elif _is_eager(tensor):
        parts = _as_data(parts, tensor.shape)
    return read(tensor, Selection(tensor.shape, parts, new, apart))


# Rows of fewer elements than these are rather cut out by a program of their own.
_LEAST_ROW = 8


def _is_eager(tensor: "Tensor") -> bool:
    """Whether it is a value, which no graph reads but that of this key."""
    node = tensor._node
    return mode.trace is None and node.is_value and not (node.tracked and mode.gradients)


def _as_data(parts: Sequence[Part], shape: Sequence[int]) -> List[Part]:
    """Ints, or the begin of a slice of rows, as data, so that one program serves a loop's keys."""
    if has_dims(shape) or any(isinstance(part, (Dim, Span)) for part in parts):
        return list(parts)
    ints = [part for part in parts if isinstance(part, int)]
    if ints:
        return [constant(np.array(part)) if isinstance(part, int) else part for part in parts]
    first, rest = parts[0] if parts else None, parts[1:]
    whole = len(rest) == len(shape) - 1 and all(
        isinstance(part, range) and part == range(size) for part, size in zip(rest, shape[1:]))
    if not whole or prod(shape[1:]) < _LEAST_ROW or not (
        isinstance(first, range) and first.step == 1 and 0 < len(first) < shape[0]
    ):
        return list(parts)
    from kiln._array_api.creation import iota

    begin = constant(np.array(first.start, np.uint64))
    return [iota((len(first),), dtype="uint64") + begin, *rest]


def read(tensor: "Tensor", selection: Selection) -> "Tensor":
    """What a selection selects of a tensor."""
    source = selection.source(tensor)
    if not selection.indices:
        return source
    result = source._op("gather", selection.place(), axis=selection.axis)
    return result.reshape(selection.shape)


def gather_along(tensor: "Tensor", dim: int, places: "Tensor") -> "Tensor":
    """PyTorch's gather."""
    axis = normalize_axis(dim, tensor.ndim)
    source = _beside(tensor, axis, places.shape, "gather of")
    return source._op("gather_elements", combined([places], [source.shape[axis]]), axis=axis)


def scatter_along(tensor: "Tensor", dim: int, places: "Tensor", values: "Tensor",
                  mode: str) -> "Tensor":
    """PyTorch's scatter, scatter_add and scatter_reduce."""
    axis = normalize_axis(dim, tensor.ndim)
    part = _beside(tensor, axis, places.shape, "scatter into")
    if values.ndim != places.ndim or any(
        size < wanted for size, wanted in zip(values.shape, places.shape)
    ):
        raise InvalidArgument(
            f"scatter of values of shape {values.shape} with an index of shape {places.shape}; "
            "no dimension of the values may be smaller")
    fitting = values[tuple(slice(size) for size in places.shape)]
    place = combined([places], [part.shape[axis]])
    written = part._op("scatter_elements", place, fitting, axis=axis, mode=mode)
    if part.shape == tensor.shape:
        return written
    from kiln._tensor.assignment import assigned

    return assigned(tensor, tuple(slice(size) for size in part.shape), written)


def _beside(tensor: "Tensor", axis: int, places: Sequence[int], what: str) -> "Tensor":
    """The part of a tensor that has the index's sizes but for the axis."""
    fits = len(places) == tensor.ndim and all(
        i == axis or size <= tensor.shape[i] for i, size in enumerate(places))
    if not fits:
        raise InvalidArgument(
            f"{what} shape {tensor.shape} with an index of shape {tuple(places)}; both must have "
            f"the same number of dimensions, and none of the index's but {axis} may be larger")
    return tensor[tuple(
        slice(None) if i == axis else slice(size) for i, size in enumerate(places))]


def put_along(tensor: "Tensor", dim: int, index: "Tensor", values: "Tensor",
              mode: str) -> "Tensor":
    """PyTorch's index_add, index_copy and index_reduce."""
    axis = normalize_axis(dim, tensor.ndim)
    if index.ndim > 1:
        raise InvalidArgument(f"an index of shape {index.shape}; it must have one dimension")
    place = combined([index.reshape((index.numel(),))], [tensor.shape[axis]])
    return tensor._op("scatter", place, values, axis=axis, mode=mode)
