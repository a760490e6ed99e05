"""Normalization layers."""

from typing import Any, Optional, Sequence, Tuple, Union

from kiln import functional
from kiln._array_api.creation import ones, zeros
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import no_grad
from kiln._tensor.shapes import sizes
from kiln.functional._statistics import corrected
from kiln.functional.normalization import _require_several
from kiln.nn.module import Module
from kiln.nn.parameter import Parameter
from kiln.tensor import Tensor


class _ChannelNorm(Module):
    """The base of batch and instance norm: a scale and shift per channel, running statistics."""

    _ranks: Tuple[int, ...] = ()
    _counts = True  # whether num_batches_tracked is incremented

    def __init__(self, num_features: int, eps: float, momentum: Optional[float], affine: bool,
                 track_running_stats: bool) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.weight = Parameter(ones(num_features)) if affine else None
        self.bias = Parameter(zeros(num_features)) if affine else None
        # None if nothing is tracked.
        self.running_mean: Any = zeros(num_features) if track_running_stats else None
        self.running_var: Any = ones(num_features) if track_running_stats else None
        self.num_batches_tracked: Any = (
            zeros((), dtype=dtypes.int64) if track_running_stats else None)

    def _check(self, x: Tensor) -> None:
        if x.ndim not in self._ranks or x.shape[1] != self.num_features:
            raise InvalidArgument(
                f"{type(self).__name__}({self.num_features}) of a tensor of shape {x.shape}; it "
                f"needs {' or '.join(map(str, self._ranks))} dimensions, the second of size "
                f"{self.num_features}")

    def _track(self, mean: Tensor, var: Tensor) -> None:
        """Moves the running statistics towards a batch's.

        As in PyTorch, `var` is the variance with correction, though batches are normalized with the
        one without.
        """
        with no_grad():
            if self._counts:
                self.num_batches_tracked.assign(self.num_batches_tracked + 1)
            share: Any = self.momentum
            if share is None:  # the mean over all batches
                share = 1.0 / self.num_batches_tracked.cast(self.running_mean.dtype)
            for running, batch in ((self.running_mean, mean), (self.running_var, var)):
                running.assign(
                    running * (1 - share) + batch.cast(running.dtype) * share)

    def reset_running_stats(self) -> None:
        """Resets the running statistics."""
        if self.running_mean is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class _BatchNorm(_ChannelNorm):
    """Normalizes each channel (dimension 1) over the batch; keeps running statistics for eval().

    (Ioffe and Szegedy, 2015.) With a momentum of None they are the mean over all batches.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: Optional[float] = 0.1,
                 affine: bool = True, track_running_stats: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the normalized tensor, of the same shape."""
        self._check(x)
        if not self.training and self.running_mean is not None:
            return self._normalize(x, self.running_mean, self.running_var)
        if self.training:
            _require_several(type(self).__name__, x)
        axes = (0, *range(2, x.ndim))
        mean, var = x.mean(axes), x.var(axes, correction=0)
        if self.training and self.running_mean is not None:
            self._track(mean, corrected(var, x, axes))
        return self._normalize(x, mean, var)

    def _normalize(self, x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        return functional.batch_norm(x, mean, var, self.weight, self.bias, eps=self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (N, C) or (N, C, L).

    >>> kiln.nn.BatchNorm1d(3)(kiln.ones(2, 3, 4)).shape
    (2, 3, 4)
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of (N, C, H, W).

    >>> kiln.nn.BatchNorm2d(3)(kiln.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalization of (N, C, D, H, W).

    >>> kiln.nn.BatchNorm3d(3)(kiln.ones(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    _ranks = (5,)


class _InstanceNorm(_ChannelNorm):
    """Normalizes each channel of each element of the batch. (Ulyanov et al., 2016.)

    Without affine and track_running_stats it has no parameters and always uses the element's own
    statistics. num_batches_tracked stays 0, as in PyTorch.
    """

    _counts = False

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1,
                 affine: bool = False, track_running_stats: bool = False) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the normalized tensor, of the same shape; the batch dimension may be missing."""
        if x.ndim == self._ranks[0] - 1:
            return self.forward(x.unsqueeze(0)).squeeze(0)
        self._check(x)
        if not self.training and self.running_mean is not None:
            return functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        if self.training and self.running_mean is not None:
            axes = tuple(range(2, x.ndim))
            var = x.var(axes, correction=0)
            self._track(x.mean(axes).mean(0), corrected(var, x, axes).mean(0))
        return functional.instance_norm(x, weight=self.weight, bias=self.bias, eps=self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of (N, C, L).

    >>> kiln.nn.InstanceNorm1d(3)(kiln.ones(2, 3, 4)).shape
    (2, 3, 4)
    """

    _ranks = (3,)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of (N, C, H, W).

    >>> kiln.nn.InstanceNorm2d(3)(kiln.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    _ranks = (4,)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of (N, C, D, H, W).

    >>> kiln.nn.InstanceNorm3d(3)(kiln.ones(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    _ranks = (5,)


class GroupNorm(Module):
    """Normalizes groups of channels of each element of the batch. (Wu and He, 2018.)

    Raises InvalidArgument unless num_groups divides num_channels.

    >>> kiln.nn.GroupNorm(2, 4)(kiln.ones(1, 4, 5)).shape
    (1, 4, 5)
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5,
                 affine: bool = True) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise InvalidArgument(f"{num_channels} channels do not divide into {num_groups} groups")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.weight = Parameter(ones(num_channels)) if affine else None
        self.bias = Parameter(zeros(num_channels)) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, C, …) to the same shape."""
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise InvalidArgument(
                f"GroupNorm of a tensor of shape {x.shape}; its second dimension must be "
                f"{self.num_channels}")
        return functional.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class LayerNorm(Module):
    """Normalizes each element of the batch over its last dimensions. (Ba et al., 2016.)

    >>> print(kiln.nn.LayerNorm(2)(kiln.tensor([[1.0, 3.0]])))
    tensor([[-1.,  1.]], dtype=float32)
    """

    def __init__(self, normalized_shape: Union[int, Sequence[int]], eps: float = 1e-5,
                 elementwise_affine: bool = True, bias: bool = True) -> None:
        super().__init__()
        shape = sizes((normalized_shape,))
        self.normalized_shape = shape
        self.eps = eps
        self.weight = Parameter(ones(shape)) if elementwise_affine else None
        self.bias = Parameter(zeros(shape)) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Returns the normalized tensor, of the same shape."""
        return functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
    """Divides by the root of the mean square over the last dimension. (Zhang, Sennrich, 2019.)

    >>> print(kiln.nn.RMSNorm(2)(kiln.tensor([[1.0, 3.0]])))
    tensor([[0.4472, 1.3416]], dtype=float32)
    """

    def __init__(self, normalized_shape: Union[int, Sequence[int]], eps: float = 1e-6,
                 elementwise_affine: bool = True) -> None:
        super().__init__()
        shape = sizes((normalized_shape,))
        if len(shape) != 1:
            raise InvalidArgument(f"RMSNorm over {shape}; it normalises the last dimension")
        self.normalized_shape = shape
        self.eps = eps
        self.weight = Parameter(ones(shape)) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        """Returns the normalized tensor, of the same shape."""
        return functional.rms_norm(x, None, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        return f"{self.normalized_shape}, eps={self.eps}"


class LocalResponseNorm(Module):
    """Divides x by a power of the squares of neighbouring channels. (Krizhevsky et al., 2012.)

    >>> kiln.nn.LocalResponseNorm(2)(kiln.ones(1, 4, 5)).shape
    (1, 4, 5)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, C, …) to the same shape."""
        return functional.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
