"""Shapes of windows that slide: window, unwindow, convolution, pooling."""

from typing import Dict, Sequence, Tuple

from kiln._errors import InvalidArgument
from kiln._op_def import Op
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


def _pair(op: Op, attributes: Attributes, name: str) -> Tuple[int, int]:
    values = tuple(attributes[name])
    if len(values) != 2:
        raise InvalidArgument(
            f'"{name}" of "{op.name}" has {len(values)} entries; it needs 2, for height and width')
    return values


def _slide_plane(plane: Shape, size: Shape, stride: Shape, padding: Shape,
                 dilation: Shape) -> Shape:
    result = []
    for i in range(2):
        if padding[i] < 0:
            raise InvalidArgument(
                f"a padding of {padding[i]} on a dimension of size {plane[i]}")
        result.append(
            window_positions(plane[i] + 2 * padding[i], size[i], stride[i], dilation[i]))
    return tuple(result)


def _check_conv_operands(shapes: Sequence[Shape], groups: int) -> None:
    x, weight = shapes[0], shapes[1]
    if len(x) != 4 or len(weight) != 4:
        raise InvalidArgument(
            f"conv2d of x {x} and weight {weight}; x must be (N, C, H, W), weight "
            "(O, C / groups, KH, KW)")
    if groups < 1 or x[1] % groups or weight[0] % groups:
        raise InvalidArgument(
            f"conv2d in {groups} groups with {x[1]} channels in and {weight[0]} out; groups must "
            "divide both")
    if weight[1] != x[1] // groups:
        raise InvalidArgument(
            f"conv2d of x {x} and weight {weight} in {groups} groups: the weight's dimension 1 "
            f"must be {x[1] // groups}")
    if len(shapes) == 3 and shapes[2] != weight[:1]:
        raise InvalidArgument(f"conv2d's bias has shape {shapes[2]}; it must be {weight[:1]}")


def _conv2d(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    stride = _pair(op, attributes, "stride")
    padding = _pair(op, attributes, "padding")
    dilation = _pair(op, attributes, "dilation")
    _check_conv_operands(shapes, attributes["groups"])
    x, weight = shapes[0], shapes[1]
    return (x[0], weight[0], *_slide_plane(x[2:], weight[2:], stride, padding, dilation))


def _pool2d(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    if len(x) < 2:
        raise InvalidArgument(f'"{op.name}" of shape {x}; it must be (…, H, W)')
    kernel = _pair(op, attributes, "kernel")
    padding = _pair(op, attributes, "padding")
    stride = _pair(op, attributes, "stride") if attributes["stride"] else kernel
    for amount, size in zip(padding, kernel):
        if amount > size // 2:
            raise InvalidArgument(
                f"a padding of {amount} for a kernel of {size}; at most half the kernel makes "
                "sense")
    return x[:-2] + _slide_plane(x[-2:], kernel, stride, padding, (1, 1))


RULES: Dict[str, ShapeRule] = {
    "window": _window,
    "unwindow": _unwindow,
    "conv2d": _conv2d,
    "pool2d": _pool2d,
}
