"""tensor[key] = value: makes a new tensor with the values at the key."""

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._tensor.constructors import in_dtype
from kiln._tensor.index_parser import Part, dimensions, is_mask, is_range, parse, without_masks
from kiln._tensor.selection import Places, Selection

if TYPE_CHECKING:
    from kiln.tensor import Tensor


def assigned(tensor: "Tensor", key: Any, value: Any,
             op: str = "tensor[...] = value") -> "Tensor":
    """Returns `tensor` as it is after tensor[key] = value. Errors name `op`."""
    parts, apart = parse(tensor.shape, key)
    values = in_dtype(value, tensor.dtype)
    if any(is_mask(part) for part in parts):
        whole = _through_mask(tensor, parts, values)
        if whole is not None:
            return whole
        parts, new = without_masks(parts)
        return _assigned_at(tensor, Selection(tensor.shape, parts, new, apart), values, op)
    return _assigned_at(tensor, Selection(tensor.shape, parts, (), apart), values, op)


def _fit(values: "Tensor", shape: Tuple[int, ...], what: str) -> "Tensor":
    """Broadcasts the values to a shape; removes surplus leading sizes of 1, as NumPy does."""
    surplus = values.ndim - len(shape)
    if surplus > 0 and all(size == 1 for size in values.shape[:surplus]):
        values = values.reshape(values.shape[surplus:])
    try:
        return values.expand(shape)
    except InvalidArgument:
        raise InvalidArgument(
            f"cannot assign values of shape {values.shape} to {what} of shape {shape}") from None


def _assigned_at(tensor: "Tensor", selection: Selection, values: "Tensor",
                 op: str) -> "Tensor":
    fitting = _fit(values, selection.shape, "a selection")
    if not selection.indices:
        return selection.restore(tensor, fitting)
    source = selection.source(tensor)
    written = _written(source, selection.places(op), fitting, selection.axis)
    return selection.restore(tensor, written)


def _through_mask(tensor: "Tensor", parts: Sequence[Part],
                  values: "Tensor") -> Optional["Tensor"]:
    """Assigns without reading the mask; None if the values depend on the mask's count."""
    masks = [part for part in parts if is_mask(part)]
    others = [part for part in parts if not is_mask(part)]
    if len(masks) != 1 or not all(is_range(part) for part in others):
        return None
    mask: Any = masks[0]
    if mask.ndim == 0:
        return None
    at = next(i for i, part in enumerate(parts) if is_mask(part))
    after = len(parts) - at - 1
    if values.ndim > after and values.shape[values.ndim - after - 1] != 1:
        return None
    return _where(tensor, parts, at, values)


def _where(tensor: "Tensor", parts: Sequence[Part], at: int, values: "Tensor") -> "Tensor":
    mask: Any = parts[at]
    # The ranges next to the mask select a part first; the mask applies within it.
    ranges: List[Part] = []
    for part in parts:
        ranges += [range(size) for size in mask.shape] if is_mask(part) else [part]
    selection = Selection(tensor.shape, ranges)
    source = selection.source(tensor)
    before = dimensions_of(parts[:at])
    after = source.ndim - before - mask.ndim
    if values.ndim > after:  # the dimension that the mask's count would have
        leading = values.shape[: values.ndim - after - 1]
        values = values.reshape((*leading, *[1] * mask.ndim, *values.shape[values.ndim - after :]))
    fitting = _fit(values, source.shape, "a masked selection")
    aligned = mask.reshape((*mask.shape, *[1] * after))
    return selection.restore(tensor, fitting.where(aligned, source))


def dimensions_of(parts: Sequence[Part]) -> int:
    """Returns how many dimensions the parts take up together."""
    return sum(dimensions(part) for part in parts)


def _written(source: "Tensor", places: Places, values: "Tensor", axis: int) -> "Tensor":
    """Writes the values at places along an axis; of several for one place, the last one remains."""
    place = places.tensor
    fitting = values.reshape((*source.shape[:axis], *place.shape, *source.shape[axis + 1 :]))
    return places.checked(source._op("scatter", place, fitting, axis=axis))
