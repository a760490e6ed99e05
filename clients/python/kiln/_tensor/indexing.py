"""tensor[key], as in NumPy."""

from typing import TYPE_CHECKING, Any, List

from kiln._tensor.keys import is_mask, parse, without_masks
from kiln._tensor.selection import Selection

if TYPE_CHECKING:
    from kiln.tensor import Tensor


def index(tensor: "Tensor", key: Any, op: str = "tensor[...]") -> "Tensor":
    """Returns tensor[key]; see Tensor.__getitem__. Errors name `op`."""
    parts, apart = parse(tensor.shape, key)
    new: List[int] = []
    if any(is_mask(part) for part in parts):
        parts, new = without_masks(parts)
    return read(tensor, Selection(tensor.shape, parts, new, apart), op)


def read(tensor: "Tensor", selection: Selection, op: str) -> "Tensor":
    """Returns the selected elements of a tensor."""
    source = selection.source(tensor)
    if not selection.indices:
        return source
    places = selection.places(op)
    result = places.checked(source._op("gather", places.tensor, axis=selection.axis))
    return result.reshape(selection.shape)
