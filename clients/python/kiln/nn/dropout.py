"""Dropout (Srivastava et al., 2014) and variants. In eval() they return their input."""

from kiln import functional
from kiln._basics.errors import InvalidArgument
from kiln.nn.module import Module
from kiln.tensor import Tensor


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise InvalidArgument(f"a dropout probability of {p}; it must be in [0, 1]")
        self.p = p

    def extra_repr(self) -> str:
        """Returns the probability for repr()."""
        return f"p={self.p}"


class Dropout(_Dropout):
    """Zeroes elements with probability p in training and scales the rest by 1 / (1 - p).

    `inplace` is accepted for PyTorch's signature; results are always new. Raises InvalidArgument
    unless p is in [0, 1].

    >>> kiln.nn.Dropout(0.5).eval()(kiln.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        """Keeps the shape."""
        return functional.dropout(x, self.p, self.training)


class Dropout1d(_Dropout):
    """Dropout of whole channels of (N, C, L) or (C, L).

    >>> kiln.nn.Dropout1d(0.5).eval()(kiln.ones(1, 3, 2)).shape
    (1, 3, 2)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Keeps the shape."""
        return functional.dropout1d(x, self.p, self.training)


class Dropout2d(_Dropout):
    """Dropout of whole channels of (N, C, H, W) or (C, H, W). (Tompson et al., 2015.)

    >>> kiln.nn.Dropout2d(0.5).eval()(kiln.ones(1, 3, 2, 2)).shape
    (1, 3, 2, 2)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Keeps the shape."""
        return functional.dropout2d(x, self.p, self.training)


class Dropout3d(_Dropout):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).

    >>> kiln.nn.Dropout3d(0.5).eval()(kiln.ones(1, 3, 2, 2, 2)).shape
    (1, 3, 2, 2, 2)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Keeps the shape."""
        return functional.dropout3d(x, self.p, self.training)


class AlphaDropout(_Dropout):
    """Dropout that preserves the mean and variance of SELU's results. (Klambauer et al., 2017.)

    >>> kiln.nn.AlphaDropout(0.5).eval()(kiln.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        """Keeps the shape."""
        return functional.alpha_dropout(x, self.p, self.training)
