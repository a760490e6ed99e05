"""What must hold of the operands and attributes of neural networks' layers and losses."""

from typing import Dict

from kiln._basics.errors import InvalidArgument
from kiln._rules.query import Constraint, Query, described, surely_more
from kiln._rules.shapes import Shape, broadcast


def _others(query: Query, wanted: Shape) -> None:
    """All operands after the first have one shape."""
    for place, shape in enumerate(query.shapes):
        if place and shape != wanted:
            raise InvalidArgument(
                f'"{query.op.name}" of {described(query, 0)} with {described(query, place)}; '
                f"it must have shape {wanted}")


def _last_axes(query: Query) -> None:
    x, axes = query.shapes[0], query.attributes["axes"]
    if not 1 <= axes <= len(x):
        raise InvalidArgument(
            f'"axes" is {axes} for a tensor of shape {x}; it must be 1 to {len(x)}')
    _others(query, x[len(x) - axes :])


def _channels(query: Query) -> None:
    if len(query.shapes[0]) < 2:
        raise InvalidArgument(
            f'"{query.op.name}" of shape {query.shapes[0]}; it must be (N, C, …)')
    _others(query, (query.shapes[0][1],))


def _spatial(query: Query) -> None:
    if len(query.shapes[0]) < 3:
        raise InvalidArgument(
            f'"{query.op.name}" of shape {query.shapes[0]}; it must be (N, C, spatial)')


def _groups(query: Query) -> None:
    channels, groups = query.shapes[0][1], query.attributes["groups"]
    if groups < 1 or channels % groups:
        raise InvalidArgument(
            f'"{query.op.name}" of {channels} channels in {groups} groups; groups must divide the '
            "channels")


def _slopes(query: Query) -> None:
    x, weight = query.shapes
    channels = x[1] if len(x) > 1 else 1
    if weight not in ((), (1,), (channels,)):
        raise InvalidArgument(
            f'"{query.op.name}" of {channels} channels with {described(query, 1)}; it takes one '
            "slope, or one for each channel")


def _ordered_bounds(query: Query) -> None:
    low, high = query.attributes["min"], query.attributes["max"]
    if not low < high:
        raise InvalidArgument(
            f'"{query.op.name}" between {low} and {high}; "min" must be less than "max"')


def _rotary(query: Query) -> None:
    x, cos, sin = query.shapes
    fits = bool(x) and bool(cos) and cos == sin and not surely_more(2 * cos[-1], x[-1])
    if fits:
        angles = (*x[:-1], cos[-1])
        try:
            fits = broadcast((angles, cos)) == angles
        except InvalidArgument:
            fits = False
    if not fits:
        raise InvalidArgument(
            f'"{query.op.name}" of {described(query, 0)} with {described(query, 1)} and '
            f"{described(query, 2)}; both must broadcast to x with at most half its features")


# Losses.


def _labels(may_be_floats: bool) -> Constraint:
    def check(query: Query) -> None:
        scores, labels, dtype = query.shapes[0], query.shapes[1], query.dtypes[1]
        if dtype.is_integer and len(labels) + 1 == len(scores):
            return
        if may_be_floats and dtype.is_float and labels == scores:
            return
        raise InvalidArgument(
            f"labels of {dtype.name}{labels} for scores of shape {scores}; labels are integers "
            f"without the class dimension{', probabilities floats with it' * may_be_floats}")

    return check


def _label_for_each_row(query: Query) -> None:
    if len(query.shapes[2]) + 1 != len(query.shapes[0]):
        raise InvalidArgument(
            f'"{query.op.name}" of {described(query, 0)} with {described(query, 2)}; it must '
            "have one element for each row")


CONSTRAINTS: Dict[str, Constraint] = {
    "last_axes": _last_axes,
    "channels": _channels,
    "spatial": _spatial,
    "groups": _groups,
    "slopes": _slopes,
    "ordered_bounds": _ordered_bounds,
    "rotary": _rotary,
    "index_labels": _labels(may_be_floats=False),
    "labels": _labels(may_be_floats=True),
    "label_for_each_row": _label_for_each_row,
    "equal_shapes": lambda query: _others(query, query.shapes[0]),
}
