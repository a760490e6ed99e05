"""Softmax and variants as modules."""

from typing import Optional

from kiln import functional
from kiln.nn.module import Module
from kiln.tensor import Tensor


class _AlongDimension(Module):
    """A function along `dim`; None stands for -1."""

    def __init__(self, dim: Optional[int] = None) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def extra_repr(self) -> str:
        """Returns the dimension for repr()."""
        return f"dim={self.dim}"


class Softmax(_AlongDimension):
    """exp(x), scaled to sum to 1 along dim.

    >>> print(kiln.nn.Softmax(dim=0)(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0.0391, 0.1753, 0.7856], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Keeps the shape."""
        return functional.softmax(x, self.dim)


class Softmin(_AlongDimension):
    """The softmax of -x.

    >>> print(kiln.nn.Softmin(dim=0)(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0.7856, 0.1753, 0.0391], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Keeps the shape."""
        return functional.softmin(x, self.dim)


class LogSoftmax(_AlongDimension):
    """The logarithm of softmax.

    >>> print(kiln.nn.LogSoftmax(dim=0)(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-3.2413, -1.7413, -0.2413], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Keeps the shape."""
        return functional.log_softmax(x, self.dim)


class Softmax2d(Module):
    """The softmax over the channels of (N, C, H, W) or (C, H, W).

    >>> kiln.nn.Softmax2d()(kiln.ones(1, 2, 1, 1)).flatten().tolist()
    [0.5, 0.5]
    """

    def forward(self, x: Tensor) -> Tensor:
        """Keeps the shape."""
        return functional.softmax(x, -3)
