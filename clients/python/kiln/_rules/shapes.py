"""The base of all shape rules: legal sizes, axes, broadcasting."""

from typing import Any, Callable, List, Mapping, Sequence, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.arguments import whole
from kiln.variables import Dim

Shape = Tuple[int, ...]
Attributes = Mapping[str, Any]
ShapeRule = Callable[[Op, Sequence[Shape], Attributes], Shape]

RANK_MAX = 32
ELEMENTS_MAX = 1 << 56


def check_shape(shape: Shape) -> Shape:
    """Returns `shape`; raises InvalidArgument if its sizes are not legal."""
    if len(shape) > RANK_MAX:
        raise InvalidArgument(f"a shape with {len(shape)} dimensions; at most {RANK_MAX} are "
                              "allowed")
    elements = 1
    for size in shape:
        if isinstance(size, Dim):
            if size.low < 0:
                raise InvalidArgument(
                    f"the shape {shape} has a size that may be negative: {size} can be {size.low}")
            size = size.high
        if size < 0:
            raise InvalidArgument(f"the shape {shape} has a negative size")
        # A size of 0 must not hide that the others are too large.
        elements *= max(size, 1)
    if elements > ELEMENTS_MAX:
        raise InvalidArgument(
            f"the shape {shape} has too many elements; it can have at most {ELEMENTS_MAX}")
    return shape


def normalize_axis(axis: int, rank: int) -> int:
    """Returns the axis in [0, rank) for one in [-rank, rank); raises InvalidArgument for others."""
    axis = whole(axis, "the axis")
    if not -rank <= axis < rank:
        raise InvalidArgument(
            f"axis {axis} of a tensor with {rank} dimensions; it must be in [{-rank}, {rank})")
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Sequence[int], rank: int) -> Tuple[int, ...]:
    """Returns sorted, distinct axes; an empty list stands for all."""
    if not axes:
        return tuple(range(rank))
    result = sorted(normalize_axis(axis, rank) for axis in axes)
    for first, second in zip(result, result[1:]):
        if first == second:
            raise InvalidArgument(f"axis {first} is named twice")
    return tuple(result)


def check_axes(axes: Sequence[int], rank: int) -> None:
    """Raises InvalidArgument unless each is an axis of a tensor with `rank` dimensions."""
    for axis in axes:
        normalize_axis(axis, rank)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Returns the broadcast shape by NumPy's rules; raises InvalidArgument if there is none."""
    result: List[int] = []
    for shape in shapes:
        before = tuple(result)
        if len(shape) > len(result):
            result = [1] * (len(shape) - len(result)) + result
        skipped = len(result) - len(shape)
        for i, size in enumerate(shape):
            mine = result[skipped + i]
            if mine == size or size == 1:
                continue
            if mine != 1:
                raise InvalidArgument(
                    f"shapes {before} and {tuple(shape)} do not broadcast: from the last "
                    "dimension on, sizes must be equal or 1")
            result[skipped + i] = size
    return tuple(result)


def broadcasts_to(shape: Shape, target: Shape) -> bool:
    """Returns whether a tensor of this shape broadcasts to the target's shape."""
    skipped = len(target) - len(shape)
    return skipped >= 0 and all(
        size in (1, target[skipped + i]) for i, size in enumerate(shape))


def do_broadcast(first: Shape, second: Shape) -> bool:
    """Returns whether tensors of these shapes broadcast."""
    pairs = zip(reversed(first), reversed(second))
    return all(a == b or 1 in (a, b) for a, b in pairs)
