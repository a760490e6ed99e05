"""Dropout (Srivastava et al., 2014) and its relatives. In eval() they do nothing."""

import math

from kiln import functional
from kiln._errors import InvalidArgument
from kiln.creation import ones
from kiln.nn.module import Module
from kiln.random import rand
from kiln.tensor import Tensor


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise InvalidArgument(f"a dropout probability of {p}; it must be in [0, 1]")
        self.p = p

    def extra_repr(self) -> str:
        """Probability."""
        return f"p={self.p}"


class Dropout(_Dropout):
    """Zeroes elements with probability p in training and scales the rest by 1 / (1 - p).

    `inplace` is taken for the sake of PyTorch's signature; results are always new.
    """

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return functional.dropout(x, self.p, self.training)


class _ChannelDropout(_Dropout):
    """Zeroes whole channels (dimension 1) with probability p and scales the rest."""

    _dimensions = 2

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, …) to the same shape."""
        if x.ndim != self._dimensions + 2:
            raise InvalidArgument(
                f"{type(self).__name__} of a tensor of shape {x.shape}; it needs "
                f"{self._dimensions + 2} dimensions (N, C, …)")
        if not self.training or self.p == 0:
            return x
        shape = (*x.shape[:2], *[1] * self._dimensions)
        return x * functional.dropout(ones(shape, dtype=x.dtype), self.p, True)


class Dropout1d(_ChannelDropout):
    """Dropout of the channels of (N, C, L)."""

    _dimensions = 1


class Dropout2d(_ChannelDropout):
    """Dropout of the channels of (N, C, H, W). (Tompson et al., 2015.)"""


class Dropout3d(_ChannelDropout):
    """Dropout of the channels of (N, C, D, H, W)."""

    _dimensions = 3


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance behind SELU. (Klambauer et al., 2017.)"""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        if not self.training or self.p == 0:
            return x
        low = -1.7580993408473766  # -scale * alpha of SELU
        keep = 1 - self.p
        slope = 1 / math.sqrt(keep * (1 + self.p * low**2)) if keep else 0.0
        offset = -slope * low * self.p
        return x.where(rand(x.shape) < keep, low) * slope + offset
