"""Reductions over axes, such as sums and means, as in the Python array API standard.

`axis` is None for all axes, one axis or several; `keepdims` keeps them with size 1.
"""

from typing import Any, Optional, Sequence, Union

from kiln._array_api.creation import full
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import torch_names
from kiln._rules import flag, whole
from kiln._tensor.base import tensor_of
from kiln._tensor.constructors import concat
from kiln._tensor.reductions import require_elements, without_keepdim
from kiln._tensor.shapes import axes_tuple
from kiln.tensor import Tensor

Axis = Optional[Union[int, Sequence[int]]]


def reduced(name: str, x: Tensor, axis: Axis, keepdims: bool, **more: Any) -> Tensor:
    """Returns the op `name` over axes. An empty tuple means no axes, unlike in an op."""
    if axis is not None and axes_tuple(axis) == ():
        # To the op, an empty list means all axes. So it reduces a new one, of size 1.
        shape = x.shape
        single = x.unsqueeze(0)._op(name, axes=(0,), keepdims=False, **more)
        return single.reshape(shape)
    axes = () if axis is None else axes_tuple(axis)
    return x._op(name, axes=axes, keepdims=flag(keepdims, "keepdims"), **more)


@torch_names
def sum(x: Tensor, /, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Returns the sum. Without a dtype, floats keep theirs; integers and bools become 64 bits wide.

    float16 and bfloat16 are added up in float32; integers wrap.

    >>> kiln.sum(kiln.tensor([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    return reduced("sum", tensor_of(x)._summable(dtype), axis, keepdims)


@torch_names
def prod(x: Tensor, /, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Returns the product, in the dtype of sum.

    >>> kiln.prod(kiln.tensor([[1, 2], [3, 4]]), axis=0).tolist()
    [3, 8]
    """
    return reduced("prod", tensor_of(x)._summable(dtype), axis, keepdims)


@torch_names
def max(x: Tensor, /, axis: Union[Axis, Tensor] = None, *, keepdims: bool = False) -> Tensor:
    """Returns the largest element; NaN if any is NaN.

    Numeric. Raises InvalidArgument if there is no element.

    With a tensor in place of an axis, returns the larger of the two elementwise, as maximum().

    >>> kiln.max(kiln.tensor([[1, 4], [3, 2]]), axis=1).tolist()
    [4, 3]
    """
    return _extreme("max", x, axis, keepdims)


@torch_names
def min(x: Tensor, /, axis: Union[Axis, Tensor] = None, *, keepdims: bool = False) -> Tensor:
    """Returns the smallest element; NaN if any is NaN.

    Numeric. Raises InvalidArgument if there is no element.

    With a tensor in place of an axis, returns the smaller of the two elementwise, as minimum().

    >>> kiln.min(kiln.tensor([[1, 4], [3, 2]]), axis=1).tolist()
    [1, 2]
    """
    return _extreme("min", x, axis, keepdims)


def _extreme(name: str, x: Tensor, axis: Union[Axis, Tensor], keepdims: bool) -> Tensor:
    source = tensor_of(x)
    if isinstance(axis, Tensor):
        return source._op(f"{name}imum", without_keepdim(name, axis, keepdims))
    if axis is None or axes_tuple(axis):
        require_elements(name, source.shape, () if axis is None else axes_tuple(axis))
    return reduced(name, source, axis, keepdims)


@torch_names
def mean(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Returns the mean; NaN without elements. Floats keep their dtype; others become float32.

    >>> kiln.mean(kiln.tensor([1.0, 2.0, 6.0])).item()
    3.0
    """
    return reduced("mean", tensor_of(x), axis, keepdims)


@torch_names
def var(x: Tensor, /, axis: Axis = None, *, correction: float = 0.0,
        keepdims: bool = False) -> Tensor:
    """Returns the variance: the sum of squared distances from the mean over count - correction.

    `correction` is 0 here by default, and 1 in Tensor.var, as in PyTorch.

    >>> kiln.var(kiln.tensor([1.0, 3.0])).item()
    1.0
    """
    return reduced("var", tensor_of(x), axis, keepdims, correction=float(correction))


@torch_names
def std(x: Tensor, /, axis: Axis = None, *, correction: float = 0.0,
        keepdims: bool = False) -> Tensor:
    """Returns the standard deviation, the square root of var.

    >>> kiln.std(kiln.tensor([1.0, 3.0])).item()
    1.0
    """
    return reduced("std", tensor_of(x), axis, keepdims, correction=float(correction))


@torch_names
def cumulative_sum(x: Tensor, /, axis: Optional[int] = None, *, dtype: Any = None,
                   include_initial: bool = False) -> Tensor:
    """Returns running sums along an axis, which is optional only for a vector.

    With include_initial they begin with a 0. Dtypes are those of sum.

    >>> kiln.cumulative_sum(kiln.tensor([1, 2, 3]), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _cumulative("cumulative_sum", x, axis, dtype, 0 if include_initial else None)


@torch_names
def cumulative_prod(x: Tensor, /, *, axis: Optional[int] = None, dtype: Any = None,
                    include_initial: bool = False) -> Tensor:
    """Returns running products along an axis, which is optional only for a vector.

    With include_initial they begin with a 1. Dtypes are those of prod.

    >>> kiln.cumulative_prod(kiln.tensor([1, 2, 3]), include_initial=True).tolist()
    [1, 1, 2, 6]
    """
    return _cumulative("cumulative_prod", x, axis, dtype, 1 if include_initial else None)


def _cumulative(op: str, x: Tensor, axis: Optional[int], dtype: Any,
                initial: Optional[int]) -> Tensor:
    source = tensor_of(x)._summable(dtype)
    place = _only_axis(op, source, axis)
    result = source._op(op, axis=place)
    return result if initial is None else with_initial(result, initial, place)


def _only_axis(name: str, x: Tensor, axis: Optional[int]) -> int:
    if axis is None and x.ndim != 1:
        raise InvalidArgument(f"{name} of shape {x.shape} without an axis; name one")
    return 0 if axis is None else whole(axis, "axis")


def with_initial(x: Tensor, value: int, axis: int) -> Tensor:
    """Prepends one element along an axis."""
    shape = list(x.shape)
    shape[axis] = 1
    return concat([full(tuple(shape), value, x.dtype), x], axis)
