"""Convolutions and their transposes, folds and pixel shuffles."""

from typing import Optional, Tuple, Union

from kiln._basics.errors import InvalidArgument
from kiln._rules import NUMBER, whole
from kiln.functional._arguments import Sizes, batched, spread
from kiln.tensor import Tensor, apply

Padding = Union[Sizes, str]


def conv1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Sizes = 1,
           padding: Padding = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """Cross-correlation of input (N, C, L) or (C, L) with weight (O, C / groups, K), plus bias (O).

    Padding is a number of zeros on both sides, "valid" for none, or "same" to keep the length (with
    stride 1). Raises InvalidArgument for shapes that do not fit.

    >>> F.conv1d(kiln.ones(1, 1, 5), kiln.ones(1, 1, 3), padding=1).tolist()
    [[[2.0, 3.0, 3.0, 3.0, 2.0]]]
    """
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Sizes = 1,
           padding: Padding = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """Cross-correlation of input (N, C, H, W), or (C, H, W), with weight (O, C / groups, KH, KW).

    Stride, padding and dilation are one number, or one for height and one for width; for padding
    see conv1d.

    >>> F.conv2d(kiln.ones(1, 1, 3, 3), kiln.ones(1, 1, 2, 2)).tolist()
    [[[[4.0, 4.0], [4.0, 4.0]]]]
    """
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Sizes = 1,
           padding: Padding = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """Cross-correlation of input (N, C, D, H, W), or (C, D, H, W), with weight (O, C / groups, …).

    For stride, padding and dilation see conv2d.

    >>> F.conv3d(kiln.ones(1, 1, 2, 2, 2), kiln.ones(1, 1, 2, 2, 2)).item()
    8.0
    """
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


def _convolve(rank: int, x: Tensor, weight: Tensor, bias: Optional[Tensor], stride: Sizes,
              padding: Padding, dilation: Sizes, groups: int) -> Tensor:
    name = f"conv{rank}d"
    x, single = batched(x, rank, name)
    steps, spacing = spread(stride, rank, "stride"), spread(dilation, rank, "dilation")
    operands = (x, weight) if bias is None else (x, weight, bias)
    result = apply(
        name, operands, stride=steps, padding=_padding(padding, weight, steps, spacing, rank),
        dilation=spacing, groups=whole(groups, "groups"))
    return result.squeeze(0) if single else result


def _padding(padding: Padding, weight: Tensor, stride: Tuple[int, ...], dilation: Tuple[int, ...],
             rank: int) -> Tuple[int, ...]:
    if not isinstance(padding, str):
        return spread(padding, rank, "padding")
    if padding == "valid":
        return (0,) * rank
    if padding != "same":
        raise InvalidArgument(
            f'padding is "{padding}"; it must be numbers, "valid" or "same"')
    if any(step != 1 for step in stride):
        raise InvalidArgument(f'padding "same" with stride {stride}; it needs stride 1')
    reach = [step * (size - 1) for step, size in zip(dilation, weight.shape[-rank:])]
    return tuple(part for total in reach for part in (total // 2, total - total // 2))


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None,
                     stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
                     groups: int = 1, dilation: Sizes = 1) -> Tensor:
    """The adjoint of conv1d in its input: input (N, C, L), or (C, L), weight (C, O / groups, K).

    The length becomes (L - 1) * stride - 2 * padding + dilation * (K - 1) + output_padding + 1.

    >>> F.conv_transpose1d(kiln.ones(1, 1, 2), kiln.ones(1, 1, 2), stride=2).tolist()
    [[[1.0, 1.0, 1.0, 1.0]]]
    """
    return _transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None,
                     stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
                     groups: int = 1, dilation: Sizes = 1) -> Tensor:
    """The adjoint of conv2d in its input: input (N, C, H, W), weight (C, O / groups, KH, KW).

    The sizes follow as in conv_transpose1d.

    >>> F.conv_transpose2d(kiln.ones(1, 1, 1, 1), kiln.ones(1, 2, 3, 3)).shape
    (1, 2, 3, 3)
    """
    return _transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None,
                     stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
                     groups: int = 1, dilation: Sizes = 1) -> Tensor:
    """The adjoint of conv3d in its input: input (N, C, D, H, W), weight (C, O / groups, …).

    The sizes follow as in conv_transpose1d.

    >>> F.conv_transpose3d(kiln.ones(1, 1, 1, 1, 1), kiln.ones(1, 2, 3, 3, 3), stride=2).shape
    (1, 2, 3, 3, 3)
    """
    return _transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _transpose(rank: int, x: Tensor, weight: Tensor, bias: Optional[Tensor], stride: Sizes,
               padding: Sizes, output_padding: Sizes, groups: int, dilation: Sizes) -> Tensor:
    name = f"conv_transpose{rank}d"
    x, single = batched(x, rank, name)
    operands = (x, weight) if bias is None else (x, weight, bias)
    result = apply(
        name, operands, stride=spread(stride, rank, "stride"),
        padding=spread(padding, rank, "padding"), dilation=spread(dilation, rank, "dilation"),
        groups=whole(groups, "groups"),
        output_padding=spread(output_padding, rank, "output_padding"))
    return result.squeeze(0) if single else result


def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
           stride: Sizes = 1) -> Tensor:
    """Returns every window of input (N, C, H, W) as a column: (N, C * KH * KW, windows).

    >>> F.unfold(kiln.ones(1, 2, 4, 4), 3).shape
    (1, 18, 4)
    """
    rank = input.ndim - 2
    return apply(
        "unfold", (input,), kernel=spread(kernel_size, rank, "kernel_size"),
        stride=spread(stride, rank, "stride"), padding=spread(padding, rank, "padding"),
        dilation=spread(dilation, rank, "dilation"))


def fold(input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1,
         padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """The adjoint of unfold: adds up columns (N, C * KH * KW, windows) to (N, C, H, W).

    >>> F.fold(kiln.ones(1, 9, 4), (4, 4), 3)[0, 0, 1].tolist()
    [2.0, 4.0, 4.0, 2.0]
    """
    rank = 2 if isinstance(output_size, NUMBER) else len(output_size)
    return apply(
        "fold", (input,), size=spread(output_size, rank, "output_size"),
        kernel=spread(kernel_size, rank, "kernel_size"), stride=spread(stride, rank, "stride"),
        padding=spread(padding, rank, "padding"), dilation=spread(dilation, rank, "dilation"))


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearranges (…, C * f², H, W) to (…, C, H * f, W * f); f = upscale_factor (Shi et al., 2016).

    >>> F.pixel_shuffle(kiln.arange(4).reshape(4, 1, 1), 2).tolist()
    [[[0, 1], [2, 3]]]
    """
    return input._op("pixel_shuffle", factor=whole(upscale_factor, "upscale_factor"))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of pixel_shuffle.

    >>> F.pixel_unshuffle(kiln.arange(4).reshape(1, 2, 2), 2).shape
    (4, 1, 1)
    """
    return input._op("pixel_unshuffle", factor=whole(downscale_factor, "downscale_factor"))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleaves the channels (dimension 1) of the groups (Zhang et al., 2017).

    Raises InvalidArgument unless `groups` divides the channels.

    >>> F.channel_shuffle(kiln.arange(4).reshape(1, 4), 2).tolist()
    [[0, 2, 1, 3]]
    """
    channels = input.shape[1]
    if whole(groups, "groups") < 1 or channels % groups:
        raise InvalidArgument(
            f"channel_shuffle of {channels} channels in {groups} groups; groups must divide them")
    split = input.reshape(input.shape[0], groups, channels // groups, *input.shape[2:])
    return split.transpose(1, 2).reshape(*input.shape)
