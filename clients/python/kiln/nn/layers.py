"""Layers and losses as modules."""

import math
from typing import Any, Optional, Sequence, Tuple, Union

from kiln import functional
from kiln.autograd import no_grad
from kiln.creation import ones, zeros
from kiln.functional import Pair, pair
from kiln.nn.module import Module, Parameter
from kiln.random import randn, uniform
from kiln.tensor import Tensor


def _uniform_parameter(shape: Tuple[int, ...], fan_in: int) -> Parameter:
    """U(-1 / sqrt(fan_in), 1 / sqrt(fan_in)): PyTorch's default for weights and biases."""
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    return Parameter(uniform(shape, low=-bound, high=bound).contiguous())


class Linear(Module):
    """x @ weight.T + bias, with weight (out_features, in_features)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = _uniform_parameter((out_features, in_features), in_features)
        self.bias = _uniform_parameter((out_features,), in_features) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(…, in_features) to (…, out_features)."""
        return functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes."""
        out_features, in_features = self.weight.shape
        return f"{in_features}, {out_features}, bias={self.bias is not None}"


class Conv2d(Module):
    """Convolution (cross-correlation) over the last two of four dimensions."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Pair, stride: Pair = 1,
                 padding: Pair = 0, dilation: Pair = 1, groups: int = 1,
                 bias: bool = True) -> None:
        super().__init__()
        height, width = pair(kernel_size)
        self.stride = pair(stride)
        self.padding = pair(padding)
        self.dilation = pair(dilation)
        self.groups = groups
        fan_in = in_channels // groups * height * width
        self.weight = _uniform_parameter(
            (out_channels, in_channels // groups, height, width), fan_in)
        self.bias = _uniform_parameter((out_channels,), fan_in) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, O, H', W')."""
        return functional.conv2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        """Sizes."""
        out, within, height, width = self.weight.shape
        return (f"{within * self.groups}, {out}, kernel_size=({height}, {width}), "
                f"stride={self.stride}, padding={self.padding}, bias={self.bias is not None}")


class _BatchNorm(Module):
    """Normalises each channel (dimension 1) over the batch; keeps running statistics for eval()."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1,
                 affine: bool = True, track_running_stats: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.momentum = momentum
        self.weight = Parameter(ones(num_features)) if affine else None
        self.bias = Parameter(zeros(num_features)) if affine else None
        self.running_mean = zeros(num_features) if track_running_stats else None
        self.running_var = ones(num_features) if track_running_stats else None

    def forward(self, x: Tensor) -> Tensor:
        """The same shape, normalised."""
        if not self.training and self.running_mean is not None:
            return self._normalize(x, self.running_mean, self.running_var)
        axes = (0, *range(2, x.ndim))
        mean, var = x.mean(axes), x.var(axes, correction=0)
        if self.training and self.running_mean is not None:
            self._track(x, mean, var)
        return self._normalize(x, mean, var)

    def _normalize(self, x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        return functional.batch_norm(x, mean, var, self.weight, self.bias, self.eps)

    def _track(self, x: Tensor, mean: Tensor, var: Tensor) -> None:
        count = x.numel() // x.shape[1]
        unbiased = count / max(count - 1, 1)
        with no_grad():
            self.running_mean.assign(
                self.running_mean * (1 - self.momentum) + mean * self.momentum)
            self.running_var.assign(
                self.running_var * (1 - self.momentum) + var * (self.momentum * unbiased))

    def extra_repr(self) -> str:
        """Sizes."""
        return f"eps={self.eps}, momentum={self.momentum}"


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L)."""


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W)."""


class LayerNorm(Module):
    """Normalises each element of the batch over its last dimensions."""

    def __init__(self, normalized_shape: Union[int, Sequence[int]], eps: float = 1e-5,
                 elementwise_affine: bool = True, bias: bool = True) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else (
            tuple(normalized_shape))
        self.normalized_shape = shape
        self.eps = eps
        self.weight = Parameter(ones(shape)) if elementwise_affine else None
        self.bias = Parameter(zeros(shape)) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        """The same shape, normalised."""
        return functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """Divides by the root of the mean square over the last dimension."""

    def __init__(self, size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = Parameter(ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape, normalised."""
        return functional.rms_norm(x, self.weight, self.eps)


class Embedding(Module):
    """A table of vectors, read at integers; an integer outside reads zeros."""

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        super().__init__()
        self.weight = Parameter(randn(num_embeddings, embedding_dim).contiguous())

    def forward(self, index: Tensor) -> Tensor:
        """Any shape to the same shape and a last dimension of embedding_dim."""
        return functional.embedding(index, self.weight)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"


class Dropout(Module):
    """Zeroes elements with probability p in training and scales the rest by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return functional.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """Probability."""
        return f"p={self.p}"


class Flatten(Module):
    """Dimensions start_dim to end_dim as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, x: Tensor) -> Tensor:
        """Flattened."""
        return x.flatten(self.start_dim, self.end_dim)


class MaxPool2d(Module):
    """The largest of each window."""

    def __init__(self, kernel_size: Pair, stride: Optional[Pair] = None,
                 padding: Pair = 0) -> None:
        super().__init__()
        self.kernel_size = pair(kernel_size)
        self.stride = self.kernel_size if stride is None else pair(stride)
        self.padding = pair(padding)

    def forward(self, x: Tensor) -> Tensor:
        """Over the last two dimensions."""
        return functional.max_pool2d(x, self.kernel_size, self.stride, self.padding)


class AvgPool2d(MaxPool2d):
    """The mean of each window."""

    def forward(self, x: Tensor) -> Tensor:
        """Over the last two dimensions."""
        return functional.avg_pool2d(x, self.kernel_size, self.stride, self.padding)


class Identity(Module):
    """Returns its argument."""

    def forward(self, x: Any) -> Any:
        """The argument."""
        return x


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return x.relu()


class LeakyReLU(Module):
    """x above 0, negative_slope * x elsewhere."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.leaky_relu(x, self.negative_slope)


class GELU(Module):
    """x times the normal distribution's cumulative function."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.gelu(x, self.approximate)


class SiLU(Module):
    """x * sigmoid(x)."""

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return functional.silu(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return x.sigmoid()


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return x.tanh()


class Softmax(Module):
    """exp(x), scaled so that it sums to 1 along dim."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return x.softmax(self.dim)


class CrossEntropyLoss(Module):
    """The mean of -log softmax(logits) at the labels."""

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """A scalar."""
        return functional.cross_entropy(logits, labels)


class MSELoss(Module):
    """The mean of the squared differences."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """A scalar."""
        return functional.mse_loss(x, target)
