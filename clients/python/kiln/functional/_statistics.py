"""What batch and instance normalisation know of a batch."""

from typing import Any, Tuple

from kiln.tensor import Tensor


def corrected(var: Tensor, x: Tensor, axes: Tuple[int, ...]) -> Tensor:
    """The variance of x along axes with correction 1, given the one without."""
    count: Any = 1
    for axis in axes:
        count = count * x.shape[axis]
    if isinstance(count, int):
        return var * (count / max(count - 1, 1))
    # With a variable among the sizes, how many there are is known when it runs.
    return x.var(axes, correction=1)
