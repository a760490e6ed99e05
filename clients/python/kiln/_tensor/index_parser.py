"""Parses a key: what `tensor[key]` selects in each dimension.

A key becomes a list of parts: a range or an int for one dimension, None for a new one, a tensor of
integers for one dimension, a tensor of bools (a mask) for as many dimensions as it has.
"""

from typing import TYPE_CHECKING, Any, List, NamedTuple, Sequence, Tuple, Union

import numpy as np

from kiln._basics import dtypes
from kiln._basics.errors import InvalidIndex, OutOfRange
from kiln._graph import realize
from kiln._tensor.base import TensorBase, constant, construct
from kiln.variables import Dim, bounds, has_dims

if TYPE_CHECKING:
    from kiln.tensor import Tensor

Part = Union[None, int, Dim, range, "Span", "Tensor"]


class Span(NamedTuple):
    """A range of step 1 whose ends depend on variables."""

    begin: Any
    end: Any


def is_range(part: Part) -> bool:
    """Returns whether a part is a range of places of one dimension."""
    return isinstance(part, (range, Span))


class Key(NamedTuple):
    """A parsed key."""

    parts: List[Part]
    # Whether an ellipsis that takes up no dimension is between ints and index tensors: as in NumPy
    # they then count as separated.
    apart: bool


def parse(shape: Sequence[int], key: Any) -> Key:
    """Parses a key into a tensor of this shape."""
    written = [_part(part) for part in (key if isinstance(key, tuple) else (key,))]
    given = _with_ellipsis(written, shape)
    parts: List[Part] = []
    axis = 0
    for part in given:
        if part is None:
            parts.append(None)
        elif isinstance(part, slice):
            parts.append(_range(part, shape[axis]))
            axis += 1
        elif isinstance(part, (int, Dim)):
            parts.append(_place(part, axis, shape))
            axis += 1
        else:
            _check_mask(part, axis, shape)
            parts.append(part)
            axis += dimensions(part)
    return Key(parts, _keeps_apart(written))


def _keeps_apart(written: List[Any]) -> bool:
    places = [i for i, part in enumerate(written) if part is Ellipsis]
    if not places:
        return False
    advanced = [part is not None and part is not Ellipsis and not isinstance(part, slice)
                for part in written]
    return any(advanced[: places[0]]) and any(advanced[places[0] :])


def is_mask(part: Any) -> bool:
    """Returns whether a part is a tensor of bools."""
    return getattr(part, "dtype", None) is dtypes.bool_


def dimensions(part: Any) -> int:
    """Returns how many of the tensor's dimensions a part (or a slice) takes up."""
    if part is None or part is Ellipsis:
        return 0
    return len(part.shape) if is_mask(part) else 1


def _part(part: Any) -> Any:
    """Returns an int, a slice, None, an ellipsis or a tensor; raises InvalidIndex otherwise."""
    if part is None or part is Ellipsis or isinstance(part, (slice, Dim)):
        return part
    if isinstance(part, (list, tuple)):
        array = np.asarray(part)
        if array.dtype.kind in "biuf":
            # NumPy gives [] a float dtype.
            part = constant(array if array.size else array.astype(np.int64))
    if isinstance(part, (bool, np.bool_, np.ndarray)):
        part = construct(part)
    if not isinstance(part, TensorBase):
        try:
            return part.__index__()
        except AttributeError:
            raise InvalidIndex(
                f"{part!r:.80} is not an index; use an integer, a slice, None, ... or a "
                "tensor, array or list of integers or bools") from None
    if part.dtype.is_float:
        raise InvalidIndex(
            f"an index of {part.dtype.name}; it must be of integers or bool. Cast it first")
    return part


def _with_ellipsis(parts: List[Any], shape: Sequence[int]) -> List[Any]:
    """Returns the parts with whole dimensions in place of the ellipsis, or at the end."""
    used = sum(dimensions(part) for part in parts)
    if used > len(shape):
        raise InvalidIndex(f"{used} indices for a tensor of shape {tuple(shape)}")
    rest = [slice(None)] * (len(shape) - used)
    places = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(places) > 1:
        raise InvalidIndex("an index can have one ellipsis (...)")
    if places:
        return parts[: places[0]] + rest + parts[places[0] + 1 :]
    return parts + rest


def _range(part: slice, size: int) -> Any:
    if has_dims((part.start, part.stop, size)):
        return _span(part, size)
    try:
        return range(*part.indices(size))
    except ValueError:
        raise InvalidIndex("a slice with a step of 0; the step must not be 0") from None
    except TypeError:
        raise InvalidIndex(f"{part} is not a slice of integers") from None


def _span(part: slice, size: Any) -> Span:
    """Returns a slice with variables; unlike other slices it must be within the dimension."""
    if part.step not in (None, 1):
        raise InvalidIndex(
            f"a slice with a step of {part.step} that depends on variables; only a step of 1 can")
    begin = 0 if part.start is None else part.start
    end = size if part.stop is None else part.stop
    begin = begin + size if begin < 0 else begin
    end = end + size if end < 0 else end
    low, _ = bounds(begin)
    length_min, _ = bounds(end - begin)
    rest, _ = bounds(size - end)
    if min(low, length_min, rest) < 0:
        raise OutOfRange(
            f"the slice [{begin}:{end}] of a dimension of size {size}; 0 <= {begin} <= {end} <= "
            f"{size} must hold for all values of the variables")
    return Span(begin, end)


def _place(place: Any, axis: int, shape: Sequence[int]) -> Any:
    size = shape[axis]
    if has_dims((place, size)):
        place = place + size if place < 0 else place
        if bounds(place)[0] < 0 or bounds(size - 1 - place)[0] < 0:
            raise OutOfRange(
                f"index {place} of dimension {axis} of shape {tuple(shape)}; it must be in "
                f"[0, {size}) for all values of the variables")
        return place
    if not -size <= place < size:
        raise OutOfRange(
            f"index {place} of dimension {axis} of shape {tuple(shape)}; it must be in "
            f"[{-size}, {size})")
    return place % size


def _check_mask(part: "Tensor", axis: int, shape: Sequence[int]) -> None:
    if not is_mask(part):
        return
    end = axis + part.ndim
    if part.shape != tuple(shape[axis:end]):
        raise InvalidIndex(
            f"a mask of shape {part.shape} for dimensions {axis} to {end - 1} of shape "
            f"{tuple(shape)}; it must have the shape {tuple(shape[axis:end])}")


def without_masks(parts: Sequence[Part]) -> Tuple[List[Part], List[int]]:
    """Replaces each mask by the places where it is true, one tensor for each dimension.

    A mask without dimensions (True, False) selects along a new dimension of size 1. Also returns
    the positions in the result of these masks. Reads the masks' values.
    """
    result: List[Part] = []
    new: List[int] = []
    for part in parts:
        if part is None or isinstance(part, (int, Dim, range, Span)) or not is_mask(part):
            result.append(part)
            continue
        realize.refuse_in_trace("a mask, whose count is the result's size")
        flags = part.numpy()
        if part.ndim == 0:
            new.append(len(result))
            result.append(constant(np.zeros(int(flags), np.int64)))
        else:
            result.extend(constant(places) for places in np.nonzero(flags))
    return result, new
