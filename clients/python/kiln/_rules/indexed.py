"""Shapes of gather, scatter and one_hot."""

from typing import Dict, Sequence

from kiln._errors import InvalidArgument
from kiln._op_def import Op
from kiln._rules.shapes import Attributes, Shape, ShapeRule, normalize_axis


def _gather(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x, index = shapes[0], shapes[1]
    axis = normalize_axis(attributes["axis"], len(x))
    return x[:axis] + index + x[axis + 1 :]


def _scatter(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    gathered = _gather(op, shapes, attributes)
    if gathered != shapes[2]:
        raise InvalidArgument(
            f"values of shape {shapes[2]} to scatter into {shapes[0]} at an index of shape "
            f"{shapes[1]}; they must have shape {gathered}")
    return shapes[0]


def _one_hot(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    classes = attributes["classes"]
    if classes < 1:
        raise InvalidArgument(f"one_hot of {classes} classes; at least 1 is needed")
    return (*shapes[0], classes)


RULES: Dict[str, ShapeRule] = {
    "gather": _gather,
    "scatter": _scatter,
    "one_hot": _one_hot,
}
