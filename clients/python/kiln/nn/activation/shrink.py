"""Activations that set small values to 0."""

from kiln import functional
from kiln.nn.activation._base import Activation
from kiln.nn.module import Module
from kiln.tensor import Tensor


class Tanhshrink(Activation):
    """x - tanh(x).

    >>> print(kiln.nn.Tanhshrink()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.2384,  0.0379,  1.036 ], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.tanhshrink(x)


class Softshrink(Module):
    """x moved by lambd towards 0; 0 where |x| <= lambd.

    >>> print(kiln.nn.Softshrink()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.5,  0. ,  1.5], dtype=float32)
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.softshrink(x, self.lambd)


class Hardshrink(Module):
    """x; 0 where |x| <= lambd.

    >>> print(kiln.nn.Hardshrink()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-1.,  0.,  2.], dtype=float32)
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.hardshrink(x, self.lambd)


class Threshold(Module):
    """x above threshold, value elsewhere.

    >>> print(kiln.nn.Threshold(1.0, 0.0)(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0., 0., 2.], dtype=float32)
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.threshold(x, self.threshold, self.value)
