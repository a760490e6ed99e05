"""any(), all() and diff(), as in the Python array API standard."""

from typing import Optional

from kiln._array_api.statistical import Axis, reduced
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import torch_names
from kiln._rules import normalize_axis, whole
from kiln._tensor.base import tensor_of
from kiln._tensor.constructors import concat
from kiln.tensor import Tensor


@torch_names
def all(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Returns whether no element is 0; True without elements. Any dtype; the result is bool.

    >>> kiln.all(kiln.tensor([[1, 0], [3, 2]]), axis=1).tolist()
    [False, True]
    """
    return reduced("all", tensor_of(x), axis, keepdims)


@torch_names
def any(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Returns whether any element is not 0; False without elements. Any dtype; the result is bool.

    >>> kiln.any(kiln.tensor([[0, 0], [3, 2]]), axis=1).tolist()
    [False, True]
    """
    return reduced("any", tensor_of(x), axis, keepdims)


@torch_names
def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Optional[Tensor] = None,
         append: Optional[Tensor] = None) -> Tensor:
    """Returns differences of neighbours along an axis, n times; for bools, whether they differ.

    `prepend` and `append` are joined to x first. Raises InvalidArgument for negative n, and for a
    tensor without dimensions.

    >>> kiln.diff(kiln.tensor([1, 4, 9])).tolist()
    [3, 5]
    """
    if x.ndim == 0:
        raise InvalidArgument("diff of a tensor without dimensions; it needs at least one")
    if whole(n, "n") < 0:
        raise InvalidArgument(f"diff taken {n} times; n must be at least 0")
    place = normalize_axis(axis, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = concat(parts, place)
    for _ in range(n):
        length = x.shape[place]
        if length == 0:
            break
        later, earlier = x.narrow(place, 1, length - 1), x.narrow(place, 0, length - 1)
        x = later - earlier if x.dtype.is_float or x.dtype.is_integer else later != earlier
    return x
