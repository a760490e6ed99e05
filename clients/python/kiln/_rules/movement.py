"""Shapes of movement: reshape, permute, expand, pad, shrink, flip, concat."""

from math import prod
from typing import Dict, Sequence

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.shapes import (
    Attributes,
    Shape,
    ShapeRule,
    check_shape,
    normalize_axes,
    normalize_axis,
)


def _reshape(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    source = shapes[0]
    target = check_shape(tuple(attributes["shape"]))
    if prod(source) != prod(target):
        raise InvalidArgument(
            f"cannot reshape {source} ({prod(source)} elements) to {target} "
            f"({prod(target)} elements)")
    return target


def _permute(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape, axes = shapes[0], tuple(attributes["axes"])
    if sorted(axes) != list(range(len(shape))):
        raise InvalidArgument(
            f'"axes" {axes} is not a permutation of the {len(shape)} dimensions of shape {shape}')
    return tuple(shape[axis] for axis in axes)


def _expand(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    source, target = shapes[0], tuple(attributes["shape"])
    skipped = len(target) - len(source)
    if skipped < 0 or any(
        size not in (1, target[skipped + i]) for i, size in enumerate(source)
    ):
        raise InvalidArgument(
            f"cannot expand {source} to {target}: from the last dimension on, sizes must be "
            "equal or 1")
    return target


def _check_pairs(values: Sequence[int], shape: Shape, name: str, meaning: str) -> None:
    if len(values) != 2 * len(shape):
        raise InvalidArgument(
            f'"{name}" has {len(values)} entries for shape {shape}; it needs {2 * len(shape)}: '
            f"{meaning}")


def _pad(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape, padding = shapes[0], tuple(attributes["padding"])
    _check_pairs(padding, shape, "padding", "before and after for each dimension")
    if any(amount < 0 for amount in padding):
        raise InvalidArgument(f'"padding" {padding} has a negative entry; shrink cuts')
    return tuple(size + padding[2 * i] + padding[2 * i + 1] for i, size in enumerate(shape))


def _shrink(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape, bounds = shapes[0], tuple(attributes["bounds"])
    _check_pairs(bounds, shape, "bounds", "begin and end for each dimension")
    for i, size in enumerate(shape):
        begin, end = bounds[2 * i], bounds[2 * i + 1]
        if not 0 <= begin <= end <= size:
            raise InvalidArgument(
                f"bounds [{begin}, {end}) of dimension {i} of shape {shape}; "
                f"0 <= begin <= end <= {size} must hold")
    return tuple(bounds[2 * i + 1] - bounds[2 * i] for i in range(len(shape)))


def _flip(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    normalize_axes(attributes["axes"], len(shapes[0]))
    return shapes[0]


def _concat(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    first = shapes[0]
    axis = normalize_axis(attributes["axis"], len(first))
    total = first[axis]
    for shape in shapes[1:]:
        if len(shape) != len(first) or shape[:axis] + shape[axis + 1 :] != (
            first[:axis] + first[axis + 1 :]
        ):
            raise InvalidArgument(
                f"cannot concat {first} and {shape} along axis {axis}: all other sizes must agree")
        total += shape[axis]
    return (*first[:axis], total, *first[axis + 1 :])


RULES: Dict[str, ShapeRule] = {
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "pad": _pad,
    "shrink": _shrink,
    "flip": _flip,
    "concat": _concat,
}
