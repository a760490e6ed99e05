"""Softmax and its relatives as modules."""

from typing import Optional

from kiln import functional
from kiln.nn.module import Module
from kiln.tensor import Tensor


class _AlongDimension(Module):
    """`dim` None stands for -1."""

    def __init__(self, dim: Optional[int] = None) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def extra_repr(self) -> str:
        """Dimension."""
        return f"dim={self.dim}"


class Softmax(_AlongDimension):
    """exp(x), scaled so that it sums to 1 along dim."""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return functional.softmax(x, self.dim)


class Softmin(_AlongDimension):
    """The softmax of -x."""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return functional.softmin(x, self.dim)


class LogSoftmax(_AlongDimension):
    """The logarithm of softmax."""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return functional.log_softmax(x, self.dim)


class Softmax2d(Module):
    """The softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return functional.softmax(x, -3)
