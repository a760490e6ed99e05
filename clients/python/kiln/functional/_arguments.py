"""Converts arguments in PyTorch's form to that of the op table."""

from typing import Any, List, Optional, Sequence, Tuple, Union

from kiln._basics.errors import InvalidArgument
from kiln._rules import NUMBER, whole
from kiln.tensor import Tensor, apply

# One number for all spatial dimensions, or one for each.
Sizes = Union[int, Sequence[int]]


def spread(value: Sizes, rank: int, name: str) -> Tuple[int, ...]:
    """Returns `value` for each of `rank` spatial dimensions, or raises InvalidArgument."""
    if isinstance(value, NUMBER):
        return (whole(value, name),) * rank
    values = tuple(whole(part, name) for part in value)
    if len(values) == 1:
        return values * rank
    if len(values) != rank:
        raise InvalidArgument(
            f"{name} {values} has {len(values)} entries; it needs one, or {rank}, one for each "
            "spatial dimension")
    return values


def with_optional(operands: Sequence[Tensor], *optional: Optional[Tensor],
                  neutral: float = 1.0) -> List[Any]:
    """Returns the operands, followed by the optional ones that are given. A missing one before a
    given one becomes `neutral`."""
    count = max((i + 1 for i, part in enumerate(optional) if part is not None), default=0)
    filled = [neutral if part is None else part for part in optional[:count]]
    return [*operands, *filled]


def batched(x: Tensor, rank: int, name: str) -> Tuple[Tensor, bool]:
    """Returns x with a batch dimension before channels, and whether it was added."""
    if x.ndim == rank + 1:
        return x.unsqueeze(0), True
    if x.ndim != rank + 2:
        raise InvalidArgument(
            f"{name} of shape {x.shape}; it must have {rank + 2} dimensions, batch, channels and "
            f"{rank} spatial ones, or {rank + 1} without the batch")
    return x, False


def reduction_of(name: str, reduction: str) -> str:
    """Returns `reduction`; raises InvalidArgument if it is not one."""
    if reduction not in ("mean", "sum", "none"):
        raise InvalidArgument(
            f'{name}: reduction is "{reduction}"; it must be "mean", "sum" or "none"')
    return reduction


__all__ = ["Sizes", "apply", "batched", "reduction_of", "spread", "with_optional"]
