"""Gated activations: x times a factor that depends on x."""

from kiln import functional
from kiln.nn.activation._base import Activation
from kiln.nn.module import Module
from kiln.tensor import Tensor


class SiLU(Activation):
    """x * sigmoid(x).

    >>> print(kiln.nn.SiLU()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.2689,  0.3112,  1.7616], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.silu(x)


class Hardswish(Activation):
    """x * hardsigmoid(x). (Howard et al., 2019.)

    >>> print(kiln.nn.Hardswish()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.3333,  0.2917,  1.6667], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.hardswish(x)


class Mish(Activation):
    """x * tanh(softplus(x)). (Misra, 2019.)

    >>> print(kiln.nn.Mish()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.3034,  0.3752,  1.944 ], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.mish(x)


class GELU(Module):
    """x times the normal distribution's cumulative function. (Hendrycks and Gimpel, 2016.)

    >>> print(kiln.nn.GELU()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.1587,  0.3457,  1.9545], dtype=float32)
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.gelu(x, self.approximate)


class GLU(Module):
    """The first half along dim times the sigmoid of the second. (Dauphin et al., 2017.)

    >>> print(kiln.nn.GLU()(kiln.tensor([1.0, 2.0, 0.0, 3.0])))
    tensor([0.5   , 1.9051], dtype=float32)
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """Halves the size along dim."""
        return functional.glu(x, self.dim)
