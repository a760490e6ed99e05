"""Shapes of what is read and written at indices that are data, and of one_hot."""

from typing import Dict, Sequence

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.shapes import Attributes, Shape, ShapeRule, broadcast, normalize_axis


def _check_values(shapes: Sequence[Shape], wanted: Shape) -> None:
    if shapes[2] != wanted:
        raise InvalidArgument(
            f"values of shape {shapes[2]} to scatter into {shapes[0]} at an index of shape "
            f"{shapes[1]}; they must have shape {wanted}")


def _check_broadcast(source: Shape, target: Shape, what: str) -> None:
    skipped = len(target) - len(source)
    if skipped < 0 or any(
        size not in (1, target[skipped + i]) for i, size in enumerate(source)
    ):
        raise InvalidArgument(f"{what} of shape {source} does not broadcast to {target}")


def _axis_of_twin(shapes: Sequence[Shape], attributes: Attributes) -> int:
    """The axis, where x and index must have as many dimensions."""
    x, index = shapes[0], shapes[1]
    if len(index) != len(x):
        raise InvalidArgument(
            f"an index of shape {index} for a tensor of shape {x}; both must have the same "
            "number of dimensions")
    return normalize_axis(attributes["axis"], len(x))


def _gather_elements(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    axis = _axis_of_twin(shapes, attributes)
    x, index = shapes[0], shapes[1]
    result = (*x[:axis], index[axis], *x[axis + 1 :])
    _check_broadcast(index, result, "an index")
    return result


def _scatter_elements(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    _check_values(shapes, _gather_elements(op, shapes, attributes))
    return shapes[0]


def _gather(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x, index = shapes[0], shapes[1]
    axis = normalize_axis(attributes["axis"], len(x))
    return x[:axis] + index + x[axis + 1 :]


def _scatter(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    _check_values(shapes, _gather(op, shapes, attributes))
    return shapes[0]


def _take_along_axis(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    axis = _axis_of_twin(shapes, attributes)
    x, index = shapes[0], shapes[1]
    return broadcast(((*x[:axis], index[axis], *x[axis + 1 :]), index))


def _put_along_axis(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    _check_broadcast(shapes[2], _gather_elements(op, shapes, attributes), "values")
    return shapes[0]


def _indexed(x: Shape, indices: Sequence[Shape], attributes: Attributes) -> Shape:
    axis = normalize_axis(attributes["axis"], len(x))
    if axis + len(indices) > len(x):
        raise InvalidArgument(
            f"{len(indices)} indices from axis {axis} on, of a tensor with {len(x)} dimensions")
    return x[:axis] + broadcast(indices) + x[axis + len(indices) :]


def _index(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return _indexed(shapes[0], shapes[1:], attributes)


def _index_put(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    _check_broadcast(shapes[1], _indexed(shapes[0], shapes[2:], attributes), "values")
    return shapes[0]


def _one_hot(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    classes = attributes["classes"]
    if classes < 1:
        raise InvalidArgument(f"one_hot of {classes} classes; at least 1 is needed")
    return (*shapes[0], classes)


RULES: Dict[str, ShapeRule] = {
    "gather_elements": _gather_elements,
    "scatter_elements": _scatter_elements,
    "gather": _gather,
    "scatter": _scatter,
    "take_along_axis": _take_along_axis,
    "put_along_axis": _put_along_axis,
    "index": _index,
    "index_put": _index_put,
    "one_hot": _one_hot,
}
