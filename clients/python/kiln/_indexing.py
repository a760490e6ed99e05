"""tensor[key], as NumPy's, and PyTorch's gather."""

from typing import TYPE_CHECKING, Any, List

from kiln._errors import InvalidArgument
from kiln._keys import is_mask, parse, without_masks
from kiln._rules import normalize_axis
from kiln._selection import Selection

if TYPE_CHECKING:
    from kiln.tensor import Tensor


def index(tensor: "Tensor", key: Any) -> "Tensor":
    """tensor[key]. See Tensor.__getitem__."""
    parts, apart = parse(tensor.shape, key)
    new: List[int] = []
    if any(is_mask(part) for part in parts):
        parts, new = without_masks(parts)
    return read(tensor, Selection(tensor.shape, parts, new, apart))


def read(tensor: "Tensor", selection: Selection) -> "Tensor":
    """What a selection selects of a tensor."""
    source = selection.source(tensor)
    if not selection.indices:
        return source
    result = source._op("gather", selection.place(), axis=selection.axis)
    return result.reshape(selection.shape)


def gather_along(tensor: "Tensor", dim: int, places: "Tensor") -> "Tensor":
    """PyTorch's gather."""
    from kiln.creation import arange

    axis = normalize_axis(dim, tensor.ndim)
    if places.ndim != tensor.ndim:
        raise InvalidArgument(
            f"gather of shape {tensor.shape} with an index of shape {places.shape}; both must "
            "have the same number of dimensions")
    parts: List[Any] = []
    for i, size in enumerate(places.shape):
        ones = [1] * tensor.ndim
        ones[i] = size
        parts.append(places if i == axis else arange(size).reshape(tuple(ones)))
    return read(tensor, Selection(tensor.shape, parts))
