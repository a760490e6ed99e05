"""Functions that rules call in addition to Python's own; the daemon's are in rule_functions.cc."""

from math import prod
from typing import Any, List, Sequence

from kiln._ops.definition import Op
from kiln._rules.einsum import einsum_shape
from kiln._rules.shapes import (
    Shape,
    broadcast,
    broadcasts_to,
    check_axes,
    check_shape,
    do_broadcast,
    normalize_axes,
    normalize_axis,
)
from kiln._rules.windows import (
    convolution_positions,
    pool_positions,
    spatial_rank,
    transposed_sizes,
    window_positions,
)
from kiln.variables import bounds

__all__ = [
    "broadcast",
    "broadcasts_to",
    "check_axes",
    "check_shape",
    "convolution_positions",
    "described",
    "do_broadcast",
    "einsum_shape",
    "given",
    "is_optional",
    "is_spec",
    "largest",
    "normalize_axes",
    "normalize_axis",
    "operand_named",
    "pool_positions",
    "prod",
    "spatial_rank",
    "surely_more",
    "transposed_sizes",
    "window_positions",
]


def given(operand: Any) -> bool:
    """Returns whether this optional operand is present."""
    return operand is not None


def is_optional(op: Op, place: int) -> bool:
    """Returns whether the operand at a place may be left out."""
    return op.operands[place].endswith("?")


def described(op: Op, shapes: Sequence[Shape], place: int) -> str:
    """Returns an operand as text for messages."""
    return f"{op.operands[place].rstrip('?')} {shapes[place]}"


def operand_named(op: Op, shapes: Sequence[Shape], name: str) -> Shape:
    """Returns the shape of the operand with this name."""
    return shapes[op.operands.index(name)]


def surely_more(a: Any, b: Any) -> bool:
    """Returns whether a > b for all values of variables; the daemon checks other cases."""
    return bool(bounds(a - b)[0] > 0)


def largest(number: Any) -> int:
    """Returns the greatest possible value."""
    return bounds(number)[1]


def is_spec(numbers: Sequence[Any], rank: int) -> bool:
    """Returns whether they are, per dimension, a count of axes and then these; each axis once."""
    axes: List[Any] = []
    place = 0
    for _ in range(rank):
        if place >= len(numbers) or not isinstance(numbers[place], int):
            return False
        end = place + 1 + numbers[place]
        if not place < end <= len(numbers):
            return False
        axes += numbers[place + 1 : end]
        place = end
    known = all(isinstance(axis, int) and 0 <= axis < 1 << 31 for axis in axes)
    return place == len(numbers) and known and len(set(axes)) == len(axes)
