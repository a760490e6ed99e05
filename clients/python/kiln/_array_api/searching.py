"""Finding elements and choosing between them, as in the Python array API standard."""

from typing import Any, Optional, Tuple

import numpy as np

from kiln._array_api.statistical import Axis, reduced
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import torch_names
from kiln._graph import realize
from kiln._rules import normalize_axis
from kiln._tensor.base import constant, tensor_of
from kiln._tensor.indexing import index
from kiln.tensor import Tensor


@torch_names
def argmax(x: Tensor, /, axis: Optional[int] = None, *, keepdims: bool = False) -> Tensor:
    """Returns the index of the largest element as int64, the first of equal ones.

    Without an axis it is the index in the flattened tensor. Raises InvalidArgument if there is no
    element.

    >>> kiln.argmax(kiln.tensor([[1, 4], [3, 2]]), axis=1).tolist()
    [1, 0]
    """
    return _extreme("argmax", x, axis, keepdims)


@torch_names
def argmin(x: Tensor, /, axis: Optional[int] = None, *, keepdims: bool = False) -> Tensor:
    """Returns the index of the smallest element as int64, the first of equal ones.

    Without an axis it is the index in the flattened tensor. Raises InvalidArgument if there is no
    element.

    >>> kiln.argmin(kiln.tensor([[1, 4], [3, 2]]), axis=1).tolist()
    [0, 1]
    """
    return _extreme("argmin", x, axis, keepdims)


def _extreme(name: str, x: Tensor, axis: Optional[int], keepdims: bool) -> Tensor:
    found: Tensor = getattr(x, name)(axis, keepdims)
    return found.reshape([1] * x.ndim) if axis is None and keepdims else found


@torch_names
def count_nonzero(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Returns how many elements are not 0, as int64.

    >>> kiln.count_nonzero(kiln.tensor([[1, 0], [3, 2]]), axis=1).tolist()
    [1, 2]
    """
    return reduced("count_nonzero", tensor_of(x), axis, keepdims)


def nonzero(x: Tensor, /) -> Tuple[Tensor, ...]:
    """Returns the indices of elements that are not 0, row-major: an int64 vector per dimension.

    Their number depends on the values, which are read; so it raises TraceError within kiln.jit.

    >>> [part.tolist() for part in kiln.nonzero(kiln.tensor([[1, 0], [3, 2]]))]
    [[0, 1, 1], [0, 0, 1]]
    """
    if x.ndim == 0:
        raise InvalidArgument("nonzero of a tensor without dimensions; reshape it to (1,) first")
    realize.refuse_in_trace("nonzero")
    return tuple(constant(places) for places in np.nonzero(x.numpy()))


@torch_names
def take(x: Tensor, indices: Any, /, *, axis: Optional[int] = None) -> Tensor:
    """Returns entries of x at integer indices along an axis, which is optional only for a vector.

    The dimensions of the indices replace the axis. Negative indices count from the end; for those
    out of range see Tensor.__getitem__.

    >>> kiln.take(kiln.tensor([[1, 2], [3, 4]]), kiln.tensor([1, 0, 1]), axis=1).tolist()
    [[2, 1, 2], [4, 3, 4]]
    """
    if axis is None and x.ndim != 1:
        raise InvalidArgument(f"take of shape {x.shape} without an axis; name one")
    place = normalize_axis(0 if axis is None else axis, x.ndim)
    return index(x, (*[slice(None)] * place, indices), "take")


@torch_names
def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Returns entries of x at indices along an axis, with separate indices for each other position.

    The other axes broadcast. Negative indices count from the end.

    >>> kiln.take_along_axis(kiln.tensor([[1, 2], [3, 4]]), kiln.tensor([[1], [0]])).tolist()
    [[2], [3]]
    """
    return x.take_along_dim(indices, axis)
