"""Activations that are x, or nearly x, above 0 and small below."""

from kiln import functional
from kiln._array_api.creation import full
from kiln.nn.activation._base import Activation
from kiln.nn.module import Module
from kiln.nn.parameter import Parameter
from kiln.tensor import Tensor


class ReLU(Activation):
    """max(x, 0).

    >>> print(kiln.nn.ReLU()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0. , 0.5, 2. ], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.relu(x)


class ReLU6(Activation):
    """x limited to [0, 6].

    >>> print(kiln.nn.ReLU6()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0. , 0.5, 2. ], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.relu6(x)


class LeakyReLU(Module):
    """x above 0, negative_slope * x elsewhere.

    >>> print(kiln.nn.LeakyReLU()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.01,  0.5 ,  2.  ], dtype=float32)
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.leaky_relu(x, self.negative_slope)


class RReLU(Module):
    """x above 0; elsewhere x times a slope drawn from [lower, upper), or their mean in eval().

    >>> print(kiln.nn.RReLU().eval()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.2292,  0.5   ,  2.    ], dtype=float32)
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3,
                 inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.rrelu(x, self.lower, self.upper, self.training)


class PReLU(Module):
    """x above 0, weight * x elsewhere; one weight or one for each channel. (He et al., 2015.)

    >>> print(kiln.nn.PReLU()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.25,  0.5 ,  2.  ], dtype=float32)
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.weight = Parameter(full((num_parameters,), float(init)))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, C, …), or any shape with one weight, to the same shape."""
        return functional.prelu(x, self.weight)


class ELU(Module):
    """x above 0, alpha * (exp(x) - 1) elsewhere. (Clevert et al., 2016.)

    >>> print(kiln.nn.ELU()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.6321,  0.5   ,  2.    ], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.elu(x, self.alpha)


class CELU(Module):
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0). (Barron, 2017.)

    >>> print(kiln.nn.CELU()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.6321,  0.5   ,  2.    ], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.celu(x, self.alpha)


class SELU(Activation):
    """A scaled ELU that preserves mean and variance. (Klambauer et al., 2017.)

    >>> print(kiln.nn.SELU()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-1.1113,  0.5254,  2.1014], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.selu(x)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above threshold.

    >>> print(kiln.nn.Softplus()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0.3133, 0.9741, 2.1269], dtype=float32)
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.softplus(x, self.beta, self.threshold)
