"""Moving, joining and repeating tensors, as the Python array API standard has it."""

from typing import List, Optional, Sequence, Tuple, Union

import numpy as np

from kiln import _rules
from kiln._array_api.operands import tensor_of
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import also, torch_names
from kiln._rules import normalize_axis
from kiln._tensor.movement import whole
from kiln.tensor import Tensor, apply

Axes = Union[int, Sequence[int]]


def axes_tuple(axis: Axes) -> Tuple[int, ...]:
    """One axis or several, as a tuple."""
    axes = axis if isinstance(axis, (tuple, list, range)) else (axis,)
    return tuple(whole(place, "axis") for place in axes)


def broadcast_shapes(*shapes: Sequence[int]) -> Tuple[int, ...]:
    """The shape to which these broadcast. Raises InvalidArgument if they do not.

    >>> kiln.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return _rules.broadcast([tuple(shape) for shape in shapes])


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """x expanded to a shape, without a copy.

    >>> kiln.broadcast_to(kiln.tensor([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return x.expand(tuple(shape))


def broadcast_arrays(*arrays: Tensor) -> Tuple[Tensor, ...]:
    """All expanded to the shape to which they broadcast.

    >>> [x.shape for x in kiln.broadcast_arrays(kiln.ones(2, 1), kiln.ones(3))]
    [(2, 3), (2, 3)]
    """
    shape = _rules.broadcast([array.shape for array in arrays])
    return tuple(array.expand(shape) for array in arrays)


@torch_names
def concat(arrays: Sequence[Tensor], /, axis: Optional[int] = 0) -> Tensor:
    """Tensors one after another along an axis, or, axis None, flattened. Their dtypes promote.

    >>> kiln.concat([kiln.ones(2), kiln.zeros(1)]).tolist()
    [1.0, 1.0, 0.0]
    """
    parts = list(arrays)
    if not parts:
        raise InvalidArgument("concat of no tensors")
    if axis is None:
        return apply("concat", [tensor_of(part).flatten() for part in parts], axis=0)
    return apply("concat", parts, axis=axis)


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one after another along a dimension, as concat.

    >>> kiln.cat([kiln.ones(1, 2), kiln.zeros(1, 2)]).shape
    (2, 2)
    """
    return concat(tensors, dim)


@torch_names
def stack(arrays: Sequence[Tensor], /, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis.

    >>> kiln.stack([kiln.tensor([1, 2]), kiln.tensor([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    parts = [tensor_of(part) for part in arrays]
    if not parts:
        raise InvalidArgument("stack of no tensors")
    place = normalize_axis(axis, parts[0].ndim + 1)
    for part in parts[1:]:
        if part.shape != parts[0].shape:
            raise InvalidArgument(
                f"stack of shapes {parts[0].shape} and {part.shape}; they must agree")
    return concat([part.unsqueeze(place) for part in parts], place)


@torch_names
def unstack(x: Tensor, /, axis: int = 0) -> Tuple[Tensor, ...]:
    """The parts along an axis, without it.

    >>> [part.tolist() for part in kiln.unstack(kiln.tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    return x.unbind(axis)


def split(x: Tensor, size: Union[int, Sequence[int]], dim: int = 0) -> List[Tensor]:
    """Parts of a size (the last one smaller), or of the given sizes, along a dimension.

    >>> [part.tolist() for part in kiln.split(kiln.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    return x.split(size, dim)


def chunk(x: Tensor, chunks: int, dim: int = 0) -> List[Tensor]:
    """Up to so many parts along a dimension, the last one smaller.

    >>> [part.tolist() for part in kiln.chunk(kiln.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    return x.chunk(chunks, dim)


@torch_names
def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    """x with a new axis of size 1.

    >>> kiln.expand_dims(kiln.ones(3), -1).shape
    (3, 1)
    """
    return x.unsqueeze(axis)


@torch_names
def squeeze(x: Tensor, /, axis: Optional[Axes] = None) -> Tensor:
    """x without axes of size 1: these (others raise InvalidArgument), or all.

    >>> kiln.squeeze(kiln.ones(1, 3, 1), 0).shape
    (3, 1)
    """
    if axis is None:
        return x.squeeze()
    axes = _rules.normalize_axes(axes_tuple(axis), x.ndim) if axis != () else ()
    for place in axes:
        if x.shape[place] != 1:
            raise InvalidArgument(
                f"squeeze of axis {place} of shape {x.shape}; its size must be 1")
    return x.reshape(tuple(size for i, size in enumerate(x.shape) if i not in axes))


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: Optional[bool] = None) -> Tensor:
    """The same elements, row-major, in another shape; one size may be -1. Never shares memory.

    >>> kiln.reshape(kiln.arange(6), (2, -1)).shape
    (2, 3)
    """
    result = x.reshape(tuple(shape))
    return result.__copy__() if copy and result is x else result


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """Axes in another order: the result's axis i is axes[i].

    >>> kiln.permute_dims(kiln.ones(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return x.permute(tuple(axes))


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """Axes moved to other places, the rest in their order.

    >>> kiln.moveaxis(kiln.ones(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    sources = [normalize_axis(axis, x.ndim) for axis in axes_tuple(source)]
    places = [normalize_axis(axis, x.ndim) for axis in axes_tuple(destination)]
    if len(sources) != len(places) or len({*sources}) < len(sources) or (
        len({*places}) < len(places)
    ):
        raise InvalidArgument(
            f"moveaxis from {source} to {destination}; those must be as many, all different")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return x.permute(order)


def swapaxes(x: Tensor, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged.

    >>> kiln.swapaxes(kiln.ones(2, 3, 4), 0, 2).shape
    (4, 3, 2)
    """
    return x.transpose(axis1, axis2)


@also(dims="axis", dim="axis")
def flip(x: Tensor, /, axis: Optional[Axes] = None) -> Tensor:
    """x reversed along axes, or along all.

    >>> kiln.flip(kiln.arange(3)).tolist()
    [2, 1, 0]
    """
    return x.flip(*(range(x.ndim) if axis is None else axes_tuple(axis)))


@also(shifts="shift", dims="axis", dim="axis")
def roll(x: Tensor, /, shift: Axes, axis: Optional[Axes] = None) -> Tensor:
    """Elements moved along axes, those that leave at the end coming in at the beginning.

    Without an axis, of the flattened tensor.

    >>> kiln.roll(kiln.arange(5), 2).tolist()
    [3, 4, 0, 1, 2]
    """
    shifts = axes_tuple(shift)
    if axis is None:
        if len(shifts) != 1:
            raise InvalidArgument(f"roll by {shift} without an axis; give one axis for each shift")
        return roll(x.flatten(), shifts, axis=0).reshape(x.shape)
    axes = axes_tuple(axis)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise InvalidArgument(f"roll by {shift} along {axis}; give one shift for each axis")
    for amount, place in zip(shifts, axes):
        size = x.shape[normalize_axis(place, x.ndim)]
        left = -amount % size if size else 0
        if left:
            x = concat([x.narrow(place, left, size - left), x.narrow(place, 0, left)], place)
    return x


@torch_names
def repeat(x: Tensor, repeats: Union[int, Tensor], /, *, axis: Optional[int] = None) -> Tensor:
    """Each element so many times, along an axis or, without one, flattened.

    A tensor of counts gives a shape that depends on its values, so they are read first (a
    TraceError within kiln.jit).

    >>> kiln.repeat(kiln.tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    >>> kiln.repeat(kiln.tensor([1, 2]), kiln.tensor([1, 3])).tolist()
    [1, 2, 2, 2]
    """
    if axis is None:
        x, axis = x.flatten(), 0
    place = normalize_axis(axis, x.ndim)
    if isinstance(repeats, (int, np.integer)):
        before, after = x.shape[: place + 1], x.shape[place + 1 :]
        wide = x.unsqueeze(place + 1).expand((*before, int(repeats), *after))
        return wide.reshape((*before[:-1], before[-1] * int(repeats), *after))
    counts = np.asarray(repeats)
    if counts.size and counts.min() < 0:
        raise InvalidArgument(f"repeat {counts.min()} times; counts are at least 0")
    if counts.shape not in ((), (1,), (x.shape[place],)):
        raise InvalidArgument(
            f"repeat of axis {place} of shape {x.shape} with counts of shape {counts.shape}; "
            f"there must be {x.shape[place]}")
    index = np.repeat(np.arange(x.shape[place]), counts)
    return x._op("gather", Tensor(index.tolist(), "int64"), axis=place)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """Copies of x side by side: repetitions[i] along axis i.

    >>> kiln.tile(kiln.tensor([1, 2]), (2,)).tolist()
    [1, 2, 1, 2]
    """
    counts = axes_tuple(repetitions)
    return x.repeat((1,) * (x.ndim - len(counts)) + counts)


__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "cat", "chunk", "concat",
    "expand_dims", "flip", "moveaxis", "permute_dims", "repeat", "reshape", "roll", "split",
    "squeeze", "stack", "swapaxes", "tile", "unstack",
]  # fmt: skip
