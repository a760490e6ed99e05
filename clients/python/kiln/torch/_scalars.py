"""Tensors without dimensions, of which many functions of PyTorch accept the dimensions 0 and -1."""

import functools
from typing import Any, Callable

from kiln.tensor import Tensor as KilnTensor
from kiln.torch._size import words
from kiln.torch._tensor import Tensor

# Methods that take a tensor without dimensions as a row of one element.
NAMES = words(
    "all amax amin aminmax any argmax argmin argsort count_nonzero cummax cummin cumprod cumsum "
    "flip gather index_add index_copy index_fill index_reduce index_select kthvalue "
    "logcumsumexp logsumexp mean median mode moveaxis movedim nanmean nanmedian "
    "nansum norm prod scatter scatter_add scatter_reduce sort std sum swapaxes swapdims "
    "topk transpose unfold var"
)


def as_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that takes a tensor without dimensions as a row of one element.

    Its tensors are its leading arguments. The row's dimension is removed from the results.
    """

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else None
        if not isinstance(first, Tensor) or first._node.shape:
            return function(*args, **kwargs)
        result = function(*map(_row, args), **{name: _row(arg) for name, arg in kwargs.items()})
        return _without_row(result)

    return wrapped


def _row(value: Any) -> Any:
    return value.reshape(1) if isinstance(value, KilnTensor) and not value.ndim else value


def _without_row(result: Any) -> Any:
    if isinstance(result, tuple):
        parts = [_without_row(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return result.reshape(result.shape[1:]) if result.ndim else result
