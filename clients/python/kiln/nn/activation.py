"""Activations as modules.

`inplace` is taken for the sake of PyTorch's signatures; results are always new.
"""

from kiln import functional
from kiln.creation import full
from kiln.nn.module import Module
from kiln.nn.parameter import Parameter
from kiln.tensor import Tensor


class _Activation(Module):
    """Elementwise, without parameters."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class ReLU(_Activation):
    """max(x, 0).

    >>> print(kiln.nn.ReLU()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0. , 0.5, 2. ], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.relu(x)


class ReLU6(_Activation):
    """x between 0 and 6.

    >>> print(kiln.nn.ReLU6()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0. , 0.5, 2. ], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.relu6(x)


class Sigmoid(_Activation):
    """1 / (1 + exp(-x)).

    >>> print(kiln.nn.Sigmoid()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0.2689, 0.6225, 0.8808], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.sigmoid(x)


class Hardsigmoid(_Activation):
    """x / 6 + 1 / 2 between 0 and 1.

    >>> print(kiln.nn.Hardsigmoid()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([0.3333, 0.5833, 0.8333], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.hardsigmoid(x)


class LogSigmoid(_Activation):
    """The logarithm of the sigmoid.

    >>> print(kiln.nn.LogSigmoid()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-1.3133, -0.4741, -0.1269], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.logsigmoid(x)


class Tanh(_Activation):
    """The hyperbolic tangent.

    >>> print(kiln.nn.Tanh()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.7616,  0.4621,  0.964 ], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.tanh(x)


class Tanhshrink(_Activation):
    """x - tanh(x).

    >>> print(kiln.nn.Tanhshrink()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.2384,  0.0379,  1.036 ], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.tanhshrink(x)


class Hardtanh(Module):
    """x between min_val and max_val.

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


class SiLU(_Activation):
    """x * sigmoid(x).

    >>> print(kiln.nn.SiLU()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.2689,  0.3112,  1.7616], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.silu(x)


class Hardswish(_Activation):
    """x * hardsigmoid(x). (Howard et al., 2019.)

    >>> print(kiln.nn.Hardswish()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.3333,  0.2917,  1.6667], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.hardswish(x)


class Mish(_Activation):
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
    """x above 0; elsewhere x times a slope drawn in [lower, upper), their mean in eval().

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
        """(N, C, …), or any shape with one weight."""
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


class SELU(_Activation):
    """A scaled ELU that keeps mean and variance. (Klambauer et al., 2017.)

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


class Softsign(_Activation):
    """x / (1 + |x|).

    >>> print(kiln.nn.Softsign()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-0.5   ,  0.3333,  0.6667], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.softsign(x)


class Softshrink(Module):
    """x moved by lambd towards 0; 0 within lambd of it.

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
    """x; 0 within lambd of 0.

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


class GLU(Module):
    """The first half along dim times the sigmoid of the second. (Dauphin et al., 2017.)

    >>> print(kiln.nn.GLU()(kiln.tensor([1.0, 2.0, 0.0, 3.0])))
    tensor([0.5   , 1.9051], dtype=float32)
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """Half as long along dim."""
        return functional.glu(x, self.dim)
