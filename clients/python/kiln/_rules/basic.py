"""Shapes that follow from the operands' by themselves: the same, broadcast, reduced, declared."""

from typing import Dict, Sequence

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.shapes import (
    Attributes,
    Shape,
    ShapeRule,
    broadcast,
    normalize_axes,
)


def _attribute(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return tuple(attributes["shape"])


def _same(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return shapes[0]


def _broadcast(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return broadcast(shapes)


def _reduce(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    axes = normalize_axes(attributes["axes"], len(shape))
    if attributes["keepdims"]:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def _gradient(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    y = shapes[0]
    if len(shapes) == 2 and y:
        raise InvalidArgument(
            f"the gradient's y has shape {y}; it must be a scalar, or an upstream of y's shape "
            "must be given")
    if len(shapes) == 3 and shapes[2] != y:
        raise InvalidArgument(
            f"the gradient's upstream has shape {shapes[2]}; it must be y's shape {y}")
    return shapes[1]


RULES: Dict[str, ShapeRule] = {
    "attribute": _attribute,
    "same": _same,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "gradient": _gradient,
}
