"""S-shaped activations."""

from kiln import functional
from kiln.nn.activation._base import Activation
from kiln.nn.module import Module
from kiln.tensor import Tensor


class Sigmoid(Activation):
    """1 / (1 + exp(-x)).

    >>> print(kiln.nn.Sigmoid()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0.2689, 0.6225, 0.8808], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.sigmoid(x)


class Hardsigmoid(Activation):
    """x / 6 + 1 / 2, limited to [0, 1].

    >>> print(kiln.nn.Hardsigmoid()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0.3333, 0.5833, 0.8333], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.hardsigmoid(x)


class LogSigmoid(Activation):
    """The logarithm of the sigmoid.

    >>> print(kiln.nn.LogSigmoid()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-1.3133, -0.4741, -0.1269], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.logsigmoid(x)


class Tanh(Activation):
    """The hyperbolic tangent.

    >>> print(kiln.nn.Tanh()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.7616,  0.4621,  0.964 ], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.tanh(x)


class Hardtanh(Module):
    """x limited to [min_val, max_val].

    >>> print(kiln.nn.Hardtanh()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-1. ,  0.5,  1. ], dtype=float32)
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.hardtanh(x, self.min_val, self.max_val)


class Softsign(Activation):
    """x / (1 + |x|).

    >>> print(kiln.nn.Softsign()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.5   ,  0.3333,  0.6667], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.softsign(x)
