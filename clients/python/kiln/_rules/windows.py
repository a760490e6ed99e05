"""Shapes of the two window movements."""

from typing import Dict, Sequence

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.shapes import Attributes, Shape, ShapeRule, normalize_axis


def window_positions(length: int, size: int, stride: int, dilation: int) -> int:
    """Positions of a window of `size` elements, `dilation` apart, moving by `stride`."""
    if size < 1 or stride < 1 or dilation < 1:
        raise InvalidArgument(
            f"a window of size {size}, stride {stride} and dilation {dilation}; each must be at "
            "least 1")
    reach = (size - 1) * dilation
    if reach >= length:
        raise InvalidArgument(
            f"a window of size {size} and dilation {dilation} does not fit into a dimension of "
            f"size {length}")
    return (length - reach - 1) // stride + 1


def _window(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = list(shapes[0])
    axis = normalize_axis(attributes["axis"], len(shape))
    size = attributes["size"]
    shape[axis] = window_positions(
        shape[axis], size, attributes["stride"], attributes["dilation"])
    return (*shape, size)


def _unwindow(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = list(shapes[0])
    if len(shape) < 2:
        raise InvalidArgument(
            f"unwindow of shape {shapes[0]}; it needs an axis and a last dimension, the window's")
    axis = normalize_axis(attributes["axis"], len(shape) - 1)
    length = attributes["length"]
    positions = window_positions(
        length, shape[-1], attributes["stride"], attributes["dilation"])
    if positions != shape[axis]:
        raise InvalidArgument(
            f"unwindow of axis {axis} of shape {shapes[0]} to length {length}: that length has "
            f"{positions} windows, not {shape[axis]}")
    shape[axis] = length
    return tuple(shape)


RULES: Dict[str, ShapeRule] = {
    "window": _window,
    "unwindow": _unwindow,
}
