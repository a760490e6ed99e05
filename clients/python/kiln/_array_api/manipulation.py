"""Moving, joining and repeating tensors, as in the Python array API standard."""

from typing import List, Optional, Sequence, Tuple, Union

from kiln import _rules
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import also, torch_names
from kiln._tensor.constructors import concat
from kiln._tensor.shapes import Axes, axes_tuple
from kiln.tensor import Tensor


def broadcast_shapes(*shapes: Sequence[int]) -> Tuple[int, ...]:
    """Returns the shape to which these broadcast. Raises InvalidArgument if they do not.

    >>> kiln.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return _rules.broadcast([tuple(shape) for shape in shapes])


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """Expands x to a shape, without a copy.

    >>> kiln.broadcast_to(kiln.tensor([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return x.expand(tuple(shape))


def broadcast_arrays(*arrays: Tensor) -> Tuple[Tensor, ...]:
    """Expands all to the shape to which they broadcast.

    >>> [x.shape for x in kiln.broadcast_arrays(kiln.ones(2, 1), kiln.ones(3))]
    [(2, 3), (2, 3)]
    """
    shape = _rules.broadcast([array.shape for array in arrays])
    return tuple(array.expand(shape) for array in arrays)


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenates tensors along a dimension; see concat.

    >>> kiln.cat([kiln.ones(1, 2), kiln.zeros(1, 2)]).shape
    (2, 2)
    """
    return concat(tensors, dim)


@torch_names
def unstack(x: Tensor, /, axis: int = 0) -> Tuple[Tensor, ...]:
    """Returns the entries along an axis, each without that axis.

    >>> [part.tolist() for part in kiln.unstack(kiln.tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    return x.unbind(axis)


def split(x: Tensor, size: Union[int, Sequence[int]], dim: int = 0) -> List[Tensor]:
    """Splits a dimension into parts of a size (the last one may be smaller), or of given sizes.

    >>> [part.tolist() for part in kiln.split(kiln.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    return x.split(size, dim)


def chunk(x: Tensor, chunks: int, dim: int = 0) -> List[Tensor]:
    """Returns up to that many parts along a dimension; the last one may be smaller.

    >>> [part.tolist() for part in kiln.chunk(kiln.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    return x.chunk(chunks, dim)


@torch_names
def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    """Adds an axis of size 1 to x.

    >>> kiln.expand_dims(kiln.ones(3), -1).shape
    (3, 1)
    """
    return x.unsqueeze(axis)


@torch_names
def squeeze(x: Tensor, /, axis: Optional[Axes] = None) -> Tensor:
    """Removes axes of size 1: these (others raise InvalidArgument), or all.

    >>> kiln.squeeze(kiln.ones(1, 3, 1), 0).shape
    (3, 1)
    """
    if axis is None:
        return x.squeeze()
    axes = axes_tuple(axis)
    axes = _rules.normalize_axes(axes, x.ndim) if axes else ()
    for place in axes:
        if x.shape[place] != 1:
            raise InvalidArgument(
                f"squeeze of axis {place} of shape {x.shape}; its size must be 1")
    return x.reshape(tuple(size for i, size in enumerate(x.shape) if i not in axes))


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: Optional[bool] = None) -> Tensor:
    """Returns the same elements, row-major, in another shape; one size may be -1.

    The result never shares memory with x.

    >>> kiln.reshape(kiln.arange(6), (2, -1)).shape
    (2, 3)
    """
    result = x.reshape(tuple(shape))
    return result.__copy__() if copy and result is x else result


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """Reorders axes: the result's axis i is axes[i].

    >>> kiln.permute_dims(kiln.ones(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return x.permute(tuple(axes))


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """Moves axes to other positions; the others keep their order.

    >>> kiln.moveaxis(kiln.ones(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    return x.moveaxis(source, destination)


def swapaxes(x: Tensor, axis1: int, axis2: int) -> Tensor:
    """Exchanges two axes.

    >>> kiln.swapaxes(kiln.ones(2, 3, 4), 0, 2).shape
    (4, 3, 2)
    """
    return x.transpose(axis1, axis2)


@also(dims="axis", dim="axis")
@also(dims="axis", dim="axis")
def flip(x: Tensor, /, axis: Optional[Axes] = None) -> Tensor:
    """Reverses x along axes, or along all.

    >>> kiln.flip(kiln.arange(3)).tolist()
    [2, 1, 0]
    """
    return x.flip(*(range(x.ndim) if axis is None else axes_tuple(axis)))


@also(shifts="shift", dims="axis", dim="axis")
def roll(x: Tensor, /, shift: Axes, axis: Optional[Axes] = None) -> Tensor:
    """Moves elements along axes; elements moved past the end continue at the beginning.

    Without an axis, it rolls the flattened tensor.

    >>> kiln.roll(kiln.arange(5), 2).tolist()
    [3, 4, 0, 1, 2]
    """
    return x.roll(shift, axis)


@torch_names
def repeat(x: Tensor, repeats: Union[int, Tensor], /, *, axis: Optional[int] = None) -> Tensor:
    """Repeats each element along an axis or, without one, of the flattened tensor.

    A tensor of counts gives a shape that depends on its values, so they are read first (a
    TraceError within kiln.jit).

    >>> kiln.repeat(kiln.tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    >>> kiln.repeat(kiln.tensor([1, 2]), kiln.tensor([1, 3])).tolist()
    [1, 2, 2, 2]
    """
    return x.repeat_interleave(repeats, axis)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """Returns copies of x side by side: repetitions[i] along axis i.

    >>> kiln.tile(kiln.tensor([1, 2]), (2,)).tolist()
    [1, 2, 1, 2]
    """
    return x.tile(*axes_tuple(repetitions))
