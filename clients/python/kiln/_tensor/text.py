"""Formats tensors: their values (for large ones only the corners), or that they are lazy."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kiln._basics.errors import KilnError
from kiln._graph.gradient_mode import no_grad
from kiln._tensor.base import constant

if TYPE_CHECKING:
    from kiln.tensor import Tensor

# Larger tensors print only their corners: _EDGE elements at each end of a dimension.
_THRESHOLD = 1000
_EDGE = 3


def representation(tensor: Any, reads: bool) -> str:
    """Returns the text of a tensor; `reads` says whether its values may be read."""
    grad = ", requires_grad=True" if tensor._requires_grad else ""
    ending = f"dtype={tensor.dtype.name}{grad})"
    if not reads:
        return f"tensor(lazy, shape={tensor.shape}, {ending}"
    return f"tensor({_values(tensor)}, {ending}"


def safe_representation(tensor: Any, reads: bool) -> str:
    """The same, but does not raise, for debuggers: a tensor without a value shows the error."""
    try:
        return representation(tensor, reads)
    except KilnError as error:
        return f"tensor(no value: {error}, shape={tensor.shape}, dtype={tensor.dtype.name})"


def _values(tensor: "Tensor") -> str:
    prefix = "tensor("
    if tensor.numel() <= _THRESHOLD:
        return np.array2string(tensor.numpy(), separator=", ", prefix=prefix, precision=4,
                               threshold=_THRESHOLD)
    text = np.array2string(_corners(tensor).numpy(), separator=", ", prefix=prefix, precision=4,
                           threshold=0, edgeitems=_EDGE)
    return f"{text}, shape={tensor.shape}"


def _corners(tensor: "Tensor") -> "Tensor":
    """Returns both ends of each long dimension, and one element that the text leaves out."""
    with no_grad():
        for axis, size in enumerate(tensor.shape):
            if size > 2 * _EDGE + 1:
                ends = [*range(_EDGE + 1), *range(size - _EDGE, size)]
                tensor = tensor._op("gather", constant(np.array(ends)), axis=axis)
        return tensor.detach()
