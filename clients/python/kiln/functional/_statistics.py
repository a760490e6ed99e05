"""Statistics of a batch for batch and instance normalization."""

from typing import Any, Tuple

from kiln.tensor import Tensor


def corrected(var: Tensor, x: Tensor, axes: Tuple[int, ...]) -> Tensor:
    """Returns the variance of x along axes with correction 1, from the one without correction."""
    count: Any = 1
    for axis in axes:
        count = count * x.shape[axis]
    if isinstance(count, int):
        return var * (count / max(count - 1, 1))
    # With a variable among the sizes, the count is known only when it runs.
    return x.var(axes, correction=1)
