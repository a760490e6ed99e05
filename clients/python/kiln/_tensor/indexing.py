"""tensor[key], as NumPy's."""

from math import prod
from typing import TYPE_CHECKING, Any, List, Sequence

import numpy as np

from kiln._graph.node import mode
from kiln._tensor.base import constant
from kiln._tensor.keys import Part, Span, is_mask, parse, without_masks
from kiln._tensor.making import iota
from kiln._tensor.selection import Selection
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


# Shorter rows are cut out by a program of their own for each slice.
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
    begin = constant(np.array(first.start, np.uint64))
    return [iota((len(first),), dtype="uint64") + begin, *rest]


def read(tensor: "Tensor", selection: Selection) -> "Tensor":
    """What a selection selects of a tensor."""
    source = selection.source(tensor)
    if not selection.indices:
        return source
    result = source._op("gather", selection.place(), axis=selection.axis)
    return result.reshape(selection.shape)
