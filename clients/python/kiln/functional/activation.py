"""Activation functions, elementwise unless stated otherwise; integers become float32."""

from kiln._array_api.creation import ones_like
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import numpy_names
from kiln._rules import whole
from kiln.random import rand
from kiln.tensor import Tensor


def relu(input: Tensor) -> Tensor:
    """max(x, 0); NaN stays NaN, and the gradient at 0 is 0.

    >>> F.relu(kiln.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return input._op("relu")


def relu6(input: Tensor) -> Tensor:
    """min(max(x, 0), 6).

    >>> F.relu6(kiln.tensor([-1.0, 2.0, 7.0])).tolist()
    [0.0, 2.0, 6.0]
    """
    return input._op("relu6")


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x above 0, negative_slope * x elsewhere.

    >>> F.leaky_relu(kiln.tensor([-2.0, 2.0]), 0.5).tolist()
    [-1.0, 2.0]
    """
    return input._op("leaky_relu", slope=float(negative_slope))


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above 0, weight * x elsewhere, with one weight, or one for each channel (dimension 1).

    >>> F.prelu(kiln.tensor([[-2.0, -2.0]]), kiln.tensor([0.5, 1.0])).tolist()
    [[-1.0, -2.0]]
    """
    return input._op("prelu", weight)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3,
          training: bool = False) -> Tensor:
    """leaky_relu with a slope drawn between the bounds in training, otherwise with their mean.

    >>> F.rrelu(kiln.tensor([-2.0, 2.0]), 0.25, 0.75).tolist()
    [-1.0, 2.0]
    """
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    slope = rand(input.shape, dtype=input.dtype) * (upper - lower) + lower
    return input.relu() - (-input).relu() * slope


def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """x above 0, alpha * (exp(x) - 1) elsewhere.

    >>> F.elu(kiln.tensor([-100.0, 2.0])).tolist()
    [-1.0, 2.0]
    """
    return input._op("elu", alpha=float(alpha))


def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """x above 0, alpha * (exp(x / alpha) - 1) elsewhere.

    >>> F.celu(kiln.tensor([-100.0, 2.0]), 2.0).tolist()
    [-2.0, 2.0]
    """
    return input._op("celu", alpha=float(alpha))


def selu(input: Tensor) -> Tensor:
    """The scaled elu that preserves mean 0 and variance 1 (Klambauer et al., 2017).

    >>> F.selu(kiln.tensor([0.0])).tolist()
    [0.0]
    """
    return input._op("selu")


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the cumulative distribution function of the normal distribution.

    `approximate` is "none" or "tanh".

    >>> F.gelu(kiln.tensor([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    return input._op("gelu", approximate=approximate)


def quick_gelu(input: Tensor) -> Tensor:
    """x * sigmoid(1.702 * x).

    >>> F.quick_gelu(kiln.tensor([0.0])).tolist()
    [0.0]
    """
    return input._op("quick_gelu")


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)).

    >>> F.sigmoid(kiln.tensor([0.0])).tolist()
    [0.5]
    """
    return input._op("sigmoid")


def hardsigmoid(input: Tensor) -> Tensor:
    """relu6(x + 3) / 6.

    >>> F.hardsigmoid(kiln.tensor([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return input._op("hardsigmoid")


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), also accurate for large negative x.

    >>> F.logsigmoid(kiln.tensor([-100.0])).tolist()
    [-100.0]
    """
    return input._op("logsigmoid")


def silu(input: Tensor) -> Tensor:
    """x * sigmoid(x).

    >>> F.silu(kiln.tensor([0.0])).tolist()
    [0.0]
    """
    return input._op("silu")


def hardswish(input: Tensor) -> Tensor:
    """x * relu6(x + 3) / 6.

    >>> F.hardswish(kiln.tensor([0.0, 3.0])).tolist()
    [0.0, 3.0]
    """
    return input._op("hardswish")


def mish(input: Tensor) -> Tensor:
    """x * tanh(softplus(x)).

    >>> F.mish(kiln.tensor([0.0, 30.0])).tolist()
    [0.0, 30.0]
    """
    return input._op("mish")


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent.

    >>> F.tanh(kiln.tensor([0.0])).tolist()
    [0.0]
    """
    return input._op("tanh")


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x limited to [min_val, max_val]; the gradient at both bounds is 0.

    >>> F.hardtanh(kiln.tensor([-3.0, 0.5, 3.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    return input._op("hardtanh", min=float(min_val), max=float(max_val))


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above threshold.

    >>> F.softplus(kiln.tensor([30.0])).tolist()
    [30.0]
    """
    return input._op("softplus", beta=float(beta), threshold=float(threshold))


def squareplus(input: Tensor, b: float = 4.0) -> Tensor:
    """(x + sqrt(x² + b)) / 2.

    >>> F.squareplus(kiln.tensor([0.0])).tolist()
    [1.0]
    """
    return input._op("squareplus", b=float(b))


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|).

    >>> F.softsign(kiln.tensor([-1.0, 3.0])).tolist()
    [-0.5, 0.75]
    """
    return input._op("softsign")


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    >>> F.tanhshrink(kiln.tensor([0.0])).tolist()
    [0.0]
    """
    return input._op("tanhshrink")


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd; 0 where |x| <= lambd.

    >>> F.softshrink(kiln.tensor([-1.0, 0.25, 2.0])).tolist()
    [-0.5, 0.0, 1.5]
    """
    return input._op("softshrink", lambd=float(lambd))


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x; 0 where |x| <= lambd.

    >>> F.hardshrink(kiln.tensor([-1.0, 0.25, 2.0])).tolist()
    [-1.0, 0.0, 2.0]
    """
    return input._op("hardshrink", lambd=float(lambd))


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """x above the threshold, value elsewhere.

    >>> F.threshold(kiln.tensor([1.0, 2.0]), 1.0, -5.0).tolist()
    [-5.0, 2.0]
    """
    return input._op("threshold", threshold=float(threshold), value=float(value))


@numpy_names
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along dim times the sigmoid of the second half; that size must be even.

    >>> F.glu(kiln.tensor([4.0, 0.0])).tolist()
    [2.0]
    """
    return input._op("glu", axis=whole(dim, "dim"))


@numpy_names
def softmax(input: Tensor, dim: int = -1) -> Tensor:
    """exp(x), scaled to sum to 1 along dim.

    >>> F.softmax(kiln.tensor([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    return input._op("softmax", axis=whole(dim, "dim"))


@numpy_names
def softmin(input: Tensor, dim: int = -1) -> Tensor:
    """The softmax of -x.

    >>> F.softmin(kiln.tensor([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    return (-input)._op("softmax", axis=whole(dim, "dim"))


@numpy_names
def log_softmax(input: Tensor, dim: int = -1) -> Tensor:
    """The logarithm of softmax.

    >>> F.log_softmax(kiln.tensor([1000.0, 0.0])).tolist()
    [0.0, -1000.0]
    """
    return input._op("log_softmax", axis=whole(dim, "dim"))


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    """Returns the softmax of logits plus Gumbel noise: a differentiable draw of a class.

    With `hard` the value is one-hot and the gradient is that of the soft result (Jang et al.,
    2016). Raises InvalidArgument unless the temperature `tau` is above 0.

    >>> (F.gumbel_softmax(kiln.zeros(3), hard=True) > 0.5).sum().item()
    1
    """
    if not tau > 0:
        raise InvalidArgument(f"gumbel_softmax at the temperature {tau}; it must be above 0")
    # Strictly between 0 and 1, where both logarithms are finite.
    uniform = rand(logits.shape) * (1 - 2.0**-23) + 2.0**-24
    noise = -(-uniform.log()).log()
    scores = (logits + noise.cast(logits.dtype)) * (1 / tau)
    soft = scores._op("softmax", axis=whole(dim, "dim"))
    if not hard:
        return soft
    chosen = soft.argmax(dim, keepdim=True)
    places = ones_like(chosen.expand(*soft.shape)).cumsum(dim) - 1
    one_hot = (places == chosen).cast(soft.dtype)
    straight: Tensor = one_hot + (soft - soft.detach())  # adds 0
    return straight
