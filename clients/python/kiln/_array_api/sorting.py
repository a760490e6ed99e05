"""Sorting, the largest and smallest few elements, and search in sorted sequences.

Ascending order has NaN last, as in NumPy; descending order is the opposite, NaN first, as in
PyTorch. Sorts are stable. The daemon sorts by a network of compare-exchange steps, log²(n) / 2 of
them over the whole tensor, whatever the values are.
"""

from typing import Optional, Tuple, Union

from kiln._array_api.operands import Operand
from kiln._array_api.searching import take
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import torch_names
from kiln._rules import flag, normalize_axis, whole
from kiln._tensor.base import tensor_of
from kiln._tensor.constructors import where
from kiln._tensor.reductions import ValuesAndIndices
from kiln.tensor import Tensor, apply


@torch_names
def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Returns x sorted along an axis. Any dtype; gradients flow to the elements' original places.

    >>> kiln.sort(kiln.tensor([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    return x._op("sort", axis=whole(axis, "axis"), descending=flag(descending, "descending"))


@torch_names
def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False,
            stable: bool = True) -> Tensor:
    """Returns the int64 indices of the sorted elements. The sort is stable.

    >>> kiln.argsort(kiln.tensor([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    return x._op("argsort", axis=whole(axis, "axis"), descending=flag(descending, "descending"))


@torch_names
def topk(x: Tensor, /, k: int, axis: int = -1, *, largest: bool = True) -> ValuesAndIndices:
    """Returns the k largest (or smallest) elements along an axis in order, and their int64 indices.

    NaN counts as larger than all. Equal elements are in the order of their indices.

    >>> [part.tolist() for part in kiln.topk(kiln.tensor([3, 1, 5, 2]), 2)]
    [[5, 3], [2, 0]]
    """
    return x.topk(k, axis, largest=largest)


@torch_names
def kthvalue(x: Tensor, /, k: int, axis: int = -1, *,
             keepdims: bool = False) -> ValuesAndIndices:
    """Returns the k-th smallest element along an axis, counted from 1, and its index as int64.

    Raises InvalidArgument unless k is in [1, the axis' size].

    >>> [part.item() for part in kiln.kthvalue(kiln.tensor([3, 1, 5, 2]), 2)]
    [2, 3]
    """
    place, keepdims = normalize_axis(axis, x.ndim), flag(keepdims, "keepdims")
    if not 1 <= whole(k, "k") <= x.shape[place]:
        raise InvalidArgument(
            f"kthvalue {k} along a dimension of size {x.shape[place]}; k must be in "
            f"[1, {x.shape[place]}]")
    found = topk(x, k, place, largest=False)
    parts = [part._op("shrink", bounds=_from(part, place, k - 1)) for part in found]
    return ValuesAndIndices(*[part if keepdims else part.squeeze(place) for part in parts])


def _from(x: Tensor, axis: int, begin: int) -> Tuple[int, ...]:
    bounds = [(0, size) for size in x.shape]
    bounds[axis] = (begin, x.shape[axis])
    return tuple(bound for pair in bounds for bound in pair)


def searchsorted(x1: Tensor, x2: Operand, /, *, side: str = "left",
                 sorter: Optional[Tensor] = None, right: bool = False) -> Tensor:
    """Returns how many elements of the sorted vector x1 are less than each of x2, as int64.

    With side "right", or right, equal elements are counted, too. sorter is x1's argsort, if x1 is
    not sorted. The two promote.

    >>> kiln.searchsorted(kiln.tensor([1, 3, 5]), kiln.tensor([3, 4, 9])).tolist()
    [1, 2, 3]
    """
    if side not in ("left", "right"):
        raise InvalidArgument(f'searchsorted\'s side "{side}"; it must be "left" or "right"')
    if x1.ndim != 1:
        raise InvalidArgument(
            f"searchsorted in a sequence of shape {x1.shape}; it must have one dimension")
    ordered = x1 if sorter is None else take(x1, sorter)
    return apply("searchsorted", (x2, ordered), right=flag(right, "right") or side == "right")


def bucketize(x: Operand, boundaries: Tensor, /, *, right: bool = False) -> Tensor:
    """Returns the bucket between sorted boundaries that each element is in, as int64.

    Element e is in bucket i if boundaries[i-1] < e <= boundaries[i], or with right if
    boundaries[i-1] <= e < boundaries[i].

    >>> kiln.bucketize(kiln.tensor([0, 2, 9]), kiln.tensor([1, 2, 5])).tolist()
    [0, 1, 3]
    """
    return searchsorted(boundaries, x, side="right" if right else "left")


@torch_names
def quantile(x: Tensor, q: Union[float, Tensor], /, *, axis: Optional[int] = None,
             keepdims: bool = False) -> Tensor:
    """Returns the q-quantile of x along an axis or, without one, of the flattened tensor.

    q is a number or a vector in [0, 1]; a vector adds a first dimension. Between two elements it
    interpolates linearly, as NumPy does by default; NaN if any element is NaN. Integers become
    float32. Raises InvalidArgument if there is no element.

    >>> kiln.quantile(kiln.tensor([1.0, 2.0, 3.0, 4.0]), 0.5).item()
    2.5
    """
    rank, keepdims = x.ndim, flag(keepdims, "keepdims")
    source = x if x.dtype.is_float else x.cast(dtypes.float32)
    source = source.flatten() if axis is None else source
    place = 0 if axis is None else normalize_axis(axis, rank)
    length = source.shape[place]
    if length == 0:
        raise InvalidArgument(f"quantile of no elements of a tensor of shape {x.shape}")
    ordered = sort(source, axis=place)
    ratio = tensor_of(q).cast(source.dtype)
    position = ratio * float(length - 1)
    below = position.floor()
    first = below.cast(dtypes.int64).reshape(-1)
    low, high = [ordered._op("take", index, axis=place)
                 for index in (first, (first + 1).clip(0, length - 1))]
    weight = (position - below).reshape([-1] + [1] * (source.ndim - 1 - place))
    difference = high - low
    # Between infinities, or beyond the dtype's range, the difference is no number or infinite.
    weighted = where(weight == 0, low, low * (1 - weight) + high * weight)
    result = where(difference.isfinite(), low + difference * weight,
                   where(low == high, low, weighted))
    # NaN is last, so checking one element suffices.
    last = ordered._op("shrink", bounds=_from(ordered, place, length - 1))
    result = where(last.isnan(), last, result).moveaxis(place, 0)
    if keepdims:
        shape = [1] * rank if axis is None else [
            1 if i == place else size for i, size in enumerate(x.shape)]
        result = result.reshape([result.shape[0], *shape])
    return result if ratio.ndim else result.squeeze(0)


@torch_names
def median(x: Tensor, /, *, axis: Optional[int] = None, keepdims: bool = False) -> Tensor:
    """Returns the median along an axis or, without one, of the flattened tensor.

    For an even number of elements it is the mean of the middle two, as in NumPy; NaN if any element
    is NaN. Tensor.median() is PyTorch's.

    >>> kiln.median(kiln.tensor([3.0, 1.0, 2.0, 10.0])).item()
    2.5
    """
    return quantile(x, 0.5, axis=axis, keepdims=keepdims)
