"""Reductions that ignore NaN, with NumPy's names."""

from kiln._array_api.statistical import Axis, max, mean, min, sum
from kiln._basics.keywords import torch_names
from kiln._tensor.base import tensor_of
from kiln._tensor.constructors import where
from kiln.tensor import Tensor


def _without(x: Tensor, instead: float) -> Tensor:
    return where(x.isnan(), instead, x) if x.dtype.is_float else x


def _counted(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    kind = x.dtype if x.dtype.is_float else "float32"
    return sum(x.eq(x).cast(kind), axis=axis, keepdims=keepdims)


@torch_names
def nansum(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the sum of the elements that are not NaN, in the dtype of sum.

    >>> kiln.nansum(kiln.tensor([1.0, float("nan"), 2.0])).item()
    3.0
    """
    return sum(_without(tensor_of(x), 0.0), axis=axis, keepdims=keepdims)


@torch_names
def nanmean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the mean of the elements that are not NaN; NaN if there are none.

    >>> kiln.nanmean(kiln.tensor([1.0, float("nan"), 2.0])).item()
    1.5
    """
    source = tensor_of(x)
    if not source.dtype.is_float:
        return mean(source, axis=axis, keepdims=keepdims)
    return nansum(source, axis=axis, keepdims=keepdims) / _counted(source, axis, keepdims)


@torch_names
def nanvar(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0,
           keepdims: bool = False) -> Tensor:
    """Returns the variance of the elements that are not NaN; see var.

    >>> kiln.nanvar(kiln.tensor([1.0, float("nan"), 3.0])).item()
    1.0
    """
    source = tensor_of(x)
    far = source - nanmean(source, axis=axis, keepdims=True)
    count = _counted(source, axis, keepdims) - correction
    return nansum(far * far, axis=axis, keepdims=keepdims) / count


@torch_names
def nanstd(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0,
           keepdims: bool = False) -> Tensor:
    """Returns the square root of nanvar.

    >>> kiln.nanstd(kiln.tensor([1.0, float("nan"), 3.0])).item()
    1.0
    """
    return nanvar(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


@torch_names
def nanmax(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the largest of the elements that are not NaN; -inf if all are NaN.

    >>> kiln.nanmax(kiln.tensor([1.0, float("nan"), 3.0])).item()
    3.0
    """
    return max(_without(tensor_of(x), float("-inf")), axis=axis, keepdims=keepdims)


@torch_names
def nanmin(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the smallest of the elements that are not NaN; inf if all are NaN.

    >>> kiln.nanmin(kiln.tensor([1.0, float("nan"), 3.0])).item()
    1.0
    """
    return min(_without(tensor_of(x), float("inf")), axis=axis, keepdims=keepdims)
