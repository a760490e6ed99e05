"""Shapes of losses and of what else neural networks reduce or halve."""

from typing import Dict, Sequence

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.shapes import Attributes, Shape, ShapeRule, broadcast, normalize_axis


def _reduced(attributes: Attributes, elementwise: Shape) -> Shape:
    """`elementwise`, the shape of single losses, or a scalar."""
    return elementwise if attributes["reduction"] == "none" else ()


def _loss(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    first = shapes[0]
    for name, other in zip(op.operands[1:], shapes[1:]):
        if not name.endswith("?") and other != first:
            raise InvalidArgument(
                f'"{op.name}" of {op.operands[0]} {first} and {name} {other}; they must agree')
        if len(other) > len(first) or broadcast((first, other)) != first:
            raise InvalidArgument(
                f'"{op.name}" of {op.operands[0]} {first} with {name} {other}, which must '
                "broadcast to it")
    return _reduced(attributes, first)


def _label_loss(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    scores, labels = shapes[0], shapes[1]
    if not scores:
        raise InvalidArgument(f'"{op.name}" of scores without a class dimension')
    axis = 1 if len(scores) > 1 else 0
    wanted = scores[:axis] + scores[axis + 1 :]
    if labels not in (wanted, scores):
        raise InvalidArgument(
            f"labels of shape {labels} for scores of shape {scores}; they must have shape {wanted}")
    if len(shapes) == 3 and shapes[2] != (scores[axis],):
        raise InvalidArgument(
            f"class weights of shape {shapes[2]} for scores of shape {scores}; they must have "
            f"shape {(scores[axis],)}")
    return _reduced(attributes, wanted)


def _row_loss(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    first = shapes[0]
    if not first:
        raise InvalidArgument(f'"{op.name}" of scalars; its operands must be (…, features)')
    for i, other in enumerate(shapes[1:], 1):
        if other != first and (i == 1 or other != first[:-1]):
            raise InvalidArgument(
                f'"{op.name}" of {op.operands[0]} {first} and {op.operands[i]} {other}; they must '
                "agree")
    return _reduced(attributes, first[:-1])


def _pairwise(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = broadcast(shapes)
    axis = normalize_axis(attributes["axis"], len(shape))
    kept = (1,) if attributes["keepdims"] else ()
    return shape[:axis] + kept + shape[axis + 1 :]


def _half(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    axis = normalize_axis(attributes["axis"], len(shape))
    if shape[axis] % 2:
        raise InvalidArgument(
            f'"{op.name}" halves dimension {axis} of shape {shape}; its size must be even')
    return (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])


RULES: Dict[str, ShapeRule] = {
    "loss": _loss,
    "label_loss": _label_loss,
    "row_loss": _row_loss,
    "pairwise": _pairwise,
    "half": _half,
}
