"""Shapes of sums of products: matmul, linear, attention."""

from typing import Dict, Sequence

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.shapes import Attributes, Shape, ShapeRule, broadcast


def _matmul(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    a, b = shapes
    if not a or not b:
        raise InvalidArgument(
            f"matmul of {a} and {b}; scalars have no dimension to sum over, use mul")
    row, column = len(a) == 1, len(b) == 1
    left = (1, *a) if row else a
    right = (*b, 1) if column else b
    if left[-1] != right[-2]:
        raise InvalidArgument(
            f"matmul of {a} and {b}: the first's last dimension ({left[-1]}) must equal the "
            f"second's {'only' if column else 'second to last'} dimension ({right[-2]})")
    try:
        batch = broadcast((left[:-2], right[:-2]))
    except InvalidArgument as error:
        raise InvalidArgument(f"matmul of {a} and {b}: {error}") from None
    return batch + (() if row else left[-2:-1]) + (() if column else right[-1:])


def _linear(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x, weight = shapes[0], shapes[1]
    if not x or len(weight) != 2 or x[-1] != weight[1]:
        raise InvalidArgument(
            f"linear of x {x} and weight {weight}; x must be (…, in), weight (out, in)")
    if len(shapes) == 3 and shapes[2] != weight[:1]:
        raise InvalidArgument(f"linear's bias has shape {shapes[2]}; it must be {weight[:1]}")
    return x[:-1] + weight[:1]


def _grouped_leading(shapes: Sequence[Shape]) -> Shape:
    q, k, v = (shape[-3] for shape in shapes)
    if k < 1 or k != v or q % k:
        raise InvalidArgument(
            f"attention in groups with {q} heads of query, {k} of key and {v} of value; the last "
            "two must be equal and divide the first")
    return (*broadcast([shape[:-3] for shape in shapes]), q)


def _attention(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    q, k, v = shapes[:3]
    grouped = attributes["grouped"]
    if min(len(q), len(k), len(v)) < 2 + grouped or q[-1] != k[-1] or k[-2] != v[-2]:
        raise InvalidArgument(
            f"attention of query {q}, key {k} and value {v}; they must be (…, L, E), (…, S, E) "
            f"and (…, S, V){', with heads before' if grouped else ''}")
    ungrouped = [shape[:-2] for shape in shapes[:3]]
    leading = _grouped_leading(shapes[:3]) if grouped else broadcast(ungrouped)
    if len(shapes) == 4:
        scores = (*leading, q[-2], k[-2])
        mask = shapes[3]
        skipped = len(scores) - len(mask)
        if skipped < 0 or any(
            size not in (1, scores[skipped + i]) for i, size in enumerate(mask)
        ):
            raise InvalidArgument(
                f"attention's mask has shape {mask}; it must broadcast to {scores}")
    return (*leading, q[-2], v[-1])


RULES: Dict[str, ShapeRule] = {
    "matmul": _matmul,
    "linear": _linear,
    "attention": _attention,
}
