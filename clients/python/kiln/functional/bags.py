"""Rows of a table, combined in bags."""

from typing import Optional

from kiln._array_api.creation import arange, full, zeros
from kiln._array_api.sorting import searchsorted
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph.checks import Limit, check
from kiln._rules import flag, whole
from kiln._tensor.selection import with_checks
from kiln.tensor import Tensor, apply

MODES = ("sum", "mean", "max")


def embedding_bag(input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, *,
                  mode: str = "mean", per_sample_weights: Optional[Tensor] = None,
                  include_last_offset: bool = False,
                  padding_idx: Optional[int] = None) -> Tensor:
    """Returns the sum, mean or maximum of the rows of weight in each bag, as (bags, columns).

    The integers `input` are (bags, length), or a vector whose bags begin at `offsets`, a vector
    that rises from 0; with include_last_offset the last offset is the end of the last bag. An empty
    bag gives zeros. Rows at padding_idx are ignored. `per_sample_weights`, of input's shape,
    multiply the rows of a sum. The dtype is weight's. Raises InvalidArgument for other shapes and
    modes, and IndexError for integers out of range as embedding does.

    >>> table = kiln.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
    >>> F.embedding_bag(kiln.tensor([0, 1, 2]), table, kiln.tensor([0, 2]), mode="sum").tolist()
    [[4.0, 6.0], [5.0, 0.0]]
    """
    _check(input, weight, offsets, mode, per_sample_weights)
    if padding_idx is not None:
        size = weight.shape[0]
        if not -size <= whole(padding_idx, "padding_idx") < size:
            raise InvalidArgument(
                f"padding_idx {padding_idx} of a table of {size} rows; it must be one of them")
        padding_idx %= size
    if offsets is None:
        bags, length = input.shape
        bag = arange(bags).reshape(-1, 1).expand(bags, length).reshape(-1)
    else:
        bags = offsets.shape[0] - flag(include_last_offset, "include_last_offset")
        # The last bag that begins at this place or before it.
        bag = searchsorted(offsets, arange(input.shape[0]), side="right") - 1
    places = input.reshape(-1)
    rows = with_checks(weight._op("gather", places, axis=0),
                       check(places._node, Limit("embedding_bag", weight.shape[0], of="rows")))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    if padding_idx is not None:  # such a row goes to a bag that does not exist
        bag = apply("where", (places == padding_idx, bags, bag))
    return _put_together(rows, bag, bags, mode)


def _check(input: Tensor, weight: Tensor, offsets: Optional[Tensor], mode: str,
           per_sample_weights: Optional[Tensor]) -> None:
    if mode not in MODES:
        raise InvalidArgument(
            f'embedding_bag\'s mode is {mode!r}; it must be "sum", "mean" or "max"')
    if weight.ndim != 2:
        raise InvalidArgument(
            f"embedding_bag of a weight of shape {weight.shape}; it must be (rows, columns)")
    if input.ndim != (2 if offsets is None else 1):
        raise InvalidArgument(
            f"embedding_bag of input {input.shape}; it must be (bags, length), or a vector with "
            "offsets")
    if offsets is not None and offsets.ndim != 1:
        raise InvalidArgument(
            f"embedding_bag with offsets of shape {offsets.shape}; they must be a vector")
    if per_sample_weights is not None:
        if mode != "sum":
            raise InvalidArgument(
                f'per_sample_weights with mode "{mode}"; they are for mode "sum"')
        if per_sample_weights.shape != input.shape:
            raise InvalidArgument(
                f"per_sample_weights of shape {per_sample_weights.shape} for input {input.shape}; "
                "they must have its shape")


def _put_together(rows: Tensor, bag: Tensor, bags: int, mode: str) -> Tensor:
    shape = (bags, rows.shape[1])
    if mode == "max":
        lowest = full(shape, -float("inf"), dtype=rows.dtype)
        largest = lowest._op("scatter", bag, rows, axis=0, mode="max")
        if rows.requires_grad:
            largest = _first(rows, bag, largest.detach())
        return largest.where(_counts(bag, bags) > 0, 0.0)
    total = zeros(shape, dtype=rows.dtype)._op("scatter_add", bag, rows, axis=0)
    if mode == "sum":
        return total
    return total / _counts(bag, bags).maximum(1).cast(rows.dtype)


def _first(rows: Tensor, bag: Tensor, largest: Tensor) -> Tensor:
    """Returns the largest of each bag's rows; the first of equal ones gets the gradient."""
    wins = rows.eq(largest._op("gather", bag, axis=0)) | rows.isnan()
    count = rows.shape[0]
    place = arange(count).unsqueeze(1)
    nowhere = full(largest.shape, count, dtype=dtypes.int64)
    first = nowhere._op("scatter", bag, place.where(wins, count), axis=0, mode="min")
    chosen = rows.where(place.eq(first._op("gather", bag, axis=0)), 0.0)
    return zeros(largest.shape, dtype=rows.dtype)._op("scatter_add", bag, chosen, axis=0)


def _counts(bag: Tensor, bags: int) -> Tensor:
    """Returns how many rows are in each bag, as (bags, 1)."""
    ones = full(bag.shape, 1, dtype=dtypes.int64)
    nothing = full((bags,), 0, dtype=dtypes.int64)
    return nothing._op("scatter_add", bag, ones, axis=0).unsqueeze(-1)
