"""Normalizations. Statistics of half types are computed in float32."""

from typing import Any, Optional, Sequence, Tuple, Union

from kiln._array_api.creation import ones_like
from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import no_grad
from kiln._rules import NUMBER, whole
from kiln.functional._arguments import with_optional
from kiln.functional._statistics import corrected
from kiln.tensor import Tensor, apply


def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor],
               weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel (dimension 1).

    In training, mean and variance are the batch's, and the running ones, if given, move towards
    them (the variance towards the unbiased one) by momentum. Otherwise the running ones are used.
    Raises InvalidArgument if these are missing, and in training for fewer than two values per
    channel.

    >>> x = kiln.tensor([[1.0], [3.0]])
    >>> F.batch_norm(x, None, None, training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    """
    if not isinstance(training, bool):
        raise InvalidArgument(
            f"batch_norm: training is {training!r}; it must be a bool (eps comes after momentum)")
    if training:
        mean, var = _batch_statistics(input, running_mean, running_var, momentum)
    elif running_mean is None or running_var is None:
        raise InvalidArgument("batch_norm without training needs running_mean and running_var")
    else:
        mean, var = running_mean, running_var
    operands = with_optional((input, mean, var), weight, bias)
    if weight is None and bias is not None:
        operands[3] = ones_like(bias)
    return apply("batch_norm", operands, epsilon=float(eps))


def _batch_statistics(x: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor],
                      momentum: float) -> Tuple[Tensor, Tensor]:
    if x.ndim < 2:
        raise InvalidArgument(f"batch_norm of shape {x.shape}; it must be (N, C, …)")
    axes = (0, *range(2, x.ndim))
    wide = x.float() if x.dtype.itemsize < 4 else x
    mean, var = wide.mean(axes), wide.var(axes, correction=0)
    _require_several("batch_norm", x)
    with no_grad():
        for running, now in ((running_mean, mean), (running_var, corrected(var, wide, axes))):
            if running is not None:
                moved = running * (1 - momentum) + now.cast(running.dtype) * momentum
                running.assign(moved)
    return mean.cast(x.dtype), var.cast(x.dtype)


def _require_several(name: str, x: Tensor) -> None:
    """Raises InvalidArgument if x has fewer than two values per channel (dimension 1)."""
    count = x.numel() // max(x.shape[1], 1)
    if isinstance(count, int) and count < 2:
        raise InvalidArgument(
            f"{name} in training of shape {tuple(x.shape)}; it needs more than one value a channel")


def _affine(name: str, x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor],
            **attributes: Any) -> Tensor:
    if weight is None and bias is not None:
        weight = ones_like(bias)
    return apply(name, with_optional((x,), weight, bias), **attributes)


def layer_norm(input: Tensor, normalized_shape: Union[int, Sequence[int]],
               weight: Optional[Tensor] = None,
               bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    """Subtracts the mean and divides by the standard deviation, over the last dimensions.

    Their sizes are normalized_shape, which is also the shape of weight and bias. Raises
    InvalidArgument if input's last dimensions differ.

    >>> F.layer_norm(kiln.tensor([[1.0, 3.0]]), (2,), eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    shape = _last_shape("layer_norm", input, normalized_shape)
    return _affine("layer_norm", input, weight, bias, axes=len(shape), epsilon=float(eps))


def _last_shape(name: str, x: Tensor,
                normalized_shape: Union[int, Sequence[int]]) -> Tuple[int, ...]:
    given = (normalized_shape,) if isinstance(normalized_shape, NUMBER) else normalized_shape
    shape = tuple(whole(size, "normalized_shape") for size in given)
    if not shape or x.shape[max(0, x.ndim - len(shape)) :] != shape:
        raise InvalidArgument(
            f"{name} over {shape} of a tensor of shape {x.shape}; its last dimensions must be "
            "those")
    return shape


def rms_norm(input: Tensor, normalized_shape: Union[Sequence[int], Tensor, None] = None,
             weight: Optional[Tensor] = None, eps: Optional[float] = 1e-6) -> Tensor:
    """Divides by the root of the mean square plus eps, over the last dimensions.

    Then multiplies by weight. These dimensions are normalized_shape; None stands for the last one.
    An eps of None is the distance from 1 to the dtype's next number.

    >>> F.rms_norm(kiln.tensor([[3.0, 3.0]]), (2,), eps=0.0).tolist()
    [[1.0, 1.0]]
    """
    if isinstance(normalized_shape, Tensor):
        raise InvalidArgument("rms_norm: normalized_shape comes before weight; it may be None")
    shape = _last_shape("rms_norm", input, normalized_shape or input.shape[-1:])
    if eps is None:
        eps = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10}.get(
            input.dtype.name, 2.0**-7)
    return _affine("rms_norm", input, weight, None, axes=len(shape), epsilon=float(eps))


def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None,
               bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    """Normalizes each group of channels of x (N, C, …) by its mean and standard deviation.

    weight and bias have one element per channel; num_groups divides the channels.

    >>> F.group_norm(kiln.tensor([[1.0, 3.0, 5.0, 7.0]]), 2, eps=0.0).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    return _affine("group_norm", input, weight, bias, groups=whole(num_groups, "num_groups"),
                   epsilon=float(eps))


def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None,
                  running_var: Optional[Tensor] = None, weight: Optional[Tensor] = None,
                  bias: Optional[Tensor] = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalizes each channel of each image (N, C, spatial…) by its mean and standard deviation.

    Running statistics, if given, move by momentum towards the batch's mean of them; without
    use_input_stats they are used, as in batch_norm.

    >>> F.instance_norm(kiln.tensor([[[1.0, 3.0]]]), eps=0.0).tolist()
    [[[-1.0, 1.0]]]
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    _track_instances(input, running_mean, running_var, momentum)
    return _affine("instance_norm", input, weight, bias, epsilon=float(eps))


def _track_instances(x: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor],
                     momentum: float) -> None:
    if running_mean is None and running_var is None:
        return
    axes = tuple(range(2, x.ndim))
    with no_grad():
        for running, now in ((running_mean, x.mean(axes)), (running_var, x.var(axes))):
            if running is not None:
                running.assign(running * (1 - momentum) + now.mean(0) * momentum)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Tensor:
    """x / (k + alpha * the mean of x² over size neighbouring channels) to the power beta.

    >>> F.local_response_norm(kiln.ones(1, 1, 2), 1, alpha=3.0, beta=1.0).tolist()
    [[[0.25, 0.25]]]
    """
    return input._op("local_response_norm", size=whole(size, "size"), alpha=float(alpha),
                     beta=float(beta), k=float(k))
