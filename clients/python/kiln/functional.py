"""Functions of tensors, by the names PyTorch uses."""

from typing import Any, Optional, Sequence, Tuple, Union

from kiln._errors import InvalidArgument
from kiln.creation import ones_like, zeros_like
from kiln.random import rand
from kiln.searching import where
from kiln.tensor import Tensor, apply

Pair = Union[int, Sequence[int]]


def pair(value: Pair) -> Tuple[int, int]:
    """One number for height and width, or two."""
    if isinstance(value, int):
        return value, value
    height, width = value
    return int(height), int(width)


# Layers.


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """x @ weight.T + bias."""
    return apply("linear", (x, weight) if bias is None else (x, weight, bias))


def conv2d(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Pair = 1,
           padding: Pair = 0, dilation: Pair = 1, groups: int = 1) -> Tensor:
    """Cross-correlation of x (N, C, H, W) with weight (O, C / groups, KH, KW)."""
    return apply(
        "conv2d", (x, weight) if bias is None else (x, weight, bias), stride=pair(stride),
        padding=pair(padding), dilation=pair(dilation), groups=groups)


def max_pool2d(x: Tensor, kernel_size: Pair, stride: Optional[Pair] = None,
               padding: Pair = 0) -> Tensor:
    """The largest of each window over the last two dimensions."""
    return _pool("max_pool2d", x, kernel_size, stride, padding)


def avg_pool2d(x: Tensor, kernel_size: Pair, stride: Optional[Pair] = None,
               padding: Pair = 0) -> Tensor:
    """The mean of each window over the last two dimensions; padding counts as zeros."""
    return _pool("avg_pool2d", x, kernel_size, stride, padding)


def _pool(name: str, x: Tensor, kernel_size: Pair, stride: Optional[Pair], padding: Pair) -> Tensor:
    kernel = pair(kernel_size)
    return apply(name, (x,), kernel=kernel, stride=kernel if stride is None else pair(stride),
                 padding=pair(padding))


def embedding(index: Tensor, weight: Tensor) -> Tensor:
    """The rows of weight that index names; an index outside gives zeros."""
    return weight._op("gather", index, axis=0)


def one_hot(index: Tensor, classes: int) -> Tensor:
    """1 at the place that each integer names, 0 elsewhere, along a new last dimension."""
    return index.one_hot(classes)


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zeroes elements with probability p and scales the rest by 1 / (1 - p)."""
    if not 0 <= p <= 1:
        raise InvalidArgument(f"a dropout probability of {p}; it must be in [0, 1]")
    if not training or p == 0:
        return x
    if p == 1:
        return zeros_like(x)
    return where(rand(x.shape) < p, 0, x * (1 / (1 - p)))


def layer_norm(x: Tensor, normalized_shape: Sequence[int], weight: Optional[Tensor] = None,
               bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    """x less its mean over its standard deviation, over the last dimensions."""
    axes = len(tuple(normalized_shape))
    shape = tuple(normalized_shape)
    if x.shape[x.ndim - axes :] != shape:
        raise InvalidArgument(
            f"layer_norm over {shape} of a tensor of shape {x.shape}; its last dimensions must be "
            "those")
    if bias is not None and weight is None:
        weight = ones_like(bias)
    operands = [part for part in (x, weight, bias) if part is not None]
    return apply("layer_norm", operands, axes=axes, epsilon=float(eps))


def rms_norm(x: Tensor, weight: Optional[Tensor] = None, eps: float = 1e-6) -> Tensor:
    """x over the root of its mean square, over the last dimension."""
    operands = (x,) if weight is None else (x, weight)
    return apply("rms_norm", operands, axes=1, epsilon=float(eps))


def batch_norm(x: Tensor, mean: Tensor, var: Tensor, weight: Optional[Tensor] = None,
               bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel (dimension 1)."""
    if bias is not None and weight is None:
        weight = ones_like(bias)
    operands = [part for part in (x, mean, var, weight, bias) if part is not None]
    return apply("batch_norm", operands, epsilon=float(eps))


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor,
                                 attn_mask: Optional[Tensor] = None, is_causal: bool = False,
                                 scale: Optional[float] = None) -> Tensor:
    """softmax(query key^T * scale) value; a bool mask keeps where it is true."""
    operands = [part for part in (query, key, value, attn_mask) if part is not None]
    return apply("scaled_dot_product_attention", operands, causal=bool(is_causal),
                 scale=float(scale or 0.0))


# Activations.


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return x.relu()


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x above 0, negative_slope * x elsewhere."""
    return x._op("leaky_relu", slope=float(negative_slope))


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution's cumulative function; approximate: "none" or "tanh"."""
    return x._op("gelu", approximate=approximate)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return x._op("silu")


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x))."""
    return x._op("softplus")


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return x.sigmoid()


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return x.tanh()


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """exp(x), scaled so that it sums to 1 along dim."""
    return x.softmax(dim)


def log_softmax(x: Tensor, dim: int = -1) -> Tensor:
    """The logarithm of softmax."""
    return x.log_softmax(dim)


# Losses.


def _check_labels(name: str, scores: Tensor, labels: Tensor) -> None:
    axis = 1 if scores.ndim > 1 else 0
    wanted = scores.shape[:axis] + scores.shape[axis + 1 :]
    if not scores.ndim or labels.shape != wanted:
        raise InvalidArgument(
            f"{name}: labels of shape {labels.shape} for scores of shape {scores.shape}; labels "
            f"must have shape {wanted}")


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean of -log softmax(logits) at the labels; classes are dimension 1."""
    _check_labels("cross_entropy", logits, labels)
    return apply("cross_entropy", (logits, labels))


def nll_loss(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """The mean of -log_probabilities at the labels; classes are dimension 1."""
    _check_labels("nll_loss", log_probabilities, labels)
    return apply("nll_loss", (log_probabilities, labels))


def _check_pair(name: str, x: Tensor, target: Tensor) -> None:
    if x.shape != target.shape:
        raise InvalidArgument(
            f"{name}: predictions of shape {x.shape} and targets of shape {target.shape}; they "
            "must agree")


def mse_loss(x: Tensor, target: Tensor) -> Tensor:
    """The mean of (x - target) squared."""
    _check_pair("mse_loss", x, target)
    return apply("mse_loss", (x, target))


def l1_loss(x: Tensor, target: Tensor) -> Tensor:
    """The mean of |x - target|."""
    _check_pair("l1_loss", x, target)
    return (x - target).abs().mean()


def binary_cross_entropy_with_logits(logits: Tensor, target: Tensor) -> Tensor:
    """The mean of -log of sigmoid(logits)'s probability of target."""
    _check_pair("binary_cross_entropy_with_logits", logits, target)
    return apply("binary_cross_entropy_with_logits", (logits, target))


def pad(x: Tensor, padding: Sequence[int], value: Any = 0) -> Tensor:
    """Padded as PyTorch's: (left, right) of the last dimension, then of the one before, …"""
    return x.pad(padding, value)


__all__ = [
    "avg_pool2d", "batch_norm", "binary_cross_entropy_with_logits", "conv2d", "cross_entropy",
    "dropout", "embedding", "gelu", "l1_loss", "layer_norm", "leaky_relu", "linear",
    "log_softmax", "max_pool2d", "mse_loss", "nll_loss", "one_hot", "pad", "relu", "rms_norm",
    "scaled_dot_product_attention", "sigmoid", "silu", "softmax", "softplus", "tanh",
]  # fmt: skip
