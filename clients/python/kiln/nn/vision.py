"""Padding, resizing and patches of images."""

from typing import Any, Optional, Sequence, Tuple, Union

from kiln import functional
from kiln._basics.errors import InvalidArgument
from kiln.functional._arguments import Sizes
from kiln.nn.module import Module
from kiln.tensor import Tensor


class Upsample(Module):
    """Resizes (N, C, …); mode is nearest, linear, bilinear, bicubic or trilinear.

    See kiln.functional.interpolate.

    >>> kiln.nn.Upsample(scale_factor=2, mode="bilinear")(kiln.zeros(1, 3, 4, 5)).shape
    (1, 3, 8, 10)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: Optional[bool] = None) -> None:
        super().__init__()
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, x: Tensor) -> Tensor:
        """Keeps batch and channels."""
        return functional.interpolate(
            x, self.size, self.scale_factor, self.mode, self.align_corners)


class UpsamplingNearest2d(Upsample):
    """Resizes (N, C, H, W) by nearest neighbours.

    >>> kiln.nn.UpsamplingNearest2d(scale_factor=2)(kiln.ones(1, 3, 4, 5)).shape
    (1, 3, 8, 10)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes (N, C, H, W) bilinearly with aligned corners.

    >>> kiln.nn.UpsamplingBilinear2d(scale_factor=2)(kiln.ones(1, 3, 4, 5)).shape
    (1, 3, 8, 10)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class Unfold(Module):
    """Returns patches of (N, C, H, W) as columns (N, C * KH * KW, L).

    >>> kiln.nn.Unfold(2, stride=2)(kiln.ones(1, 3, 4, 4)).shape
    (1, 12, 4)
    """

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
                 stride: Sizes = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Returns the columns."""
        return functional.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """The adjoint of Unfold: adds up columns (N, C * KH * KW, L) to (N, C, *output_size).

    >>> kiln.nn.Fold((4, 4), 2, stride=2)(kiln.ones(1, 12, 4)).shape
    (1, 3, 4, 4)
    """

    def __init__(self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1,
                 padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Returns the images."""
        return functional.fold(x, self.output_size, self.kernel_size, self.dilation, self.padding,
                               self.stride)


class PixelShuffle(Module):
    """Rearranges (…, C * r * r, H, W) to (…, C, H * r, W * r). (Shi et al., 2016.)

    >>> kiln.nn.PixelShuffle(2)(kiln.ones(1, 8, 3, 3)).shape
    (1, 2, 6, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        """Returns the larger images."""
        return functional.pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Module):
    """Rearranges (…, C, H * r, W * r) to (…, C * r * r, H, W).

    >>> kiln.nn.PixelUnshuffle(2)(kiln.ones(1, 2, 6, 6)).shape
    (1, 8, 3, 3)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, x: Tensor) -> Tensor:
        """Returns the smaller images."""
        return functional.pixel_unshuffle(x, self.downscale_factor)


class ChannelShuffle(Module):
    """Interleaves the channels of the groups. (Zhang et al., 2018.)

    >>> x = kiln.arange(4, dtype="float32").reshape(1, 4, 1, 1)
    >>> kiln.nn.ChannelShuffle(2)(x).flatten().tolist()
    [0.0, 2.0, 1.0, 3.0]
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, C, …) to the same shape."""
        return functional.channel_shuffle(x, self.groups)


class _Pad(Module):
    _rank = 0
    _mode = "constant"

    def __init__(self, padding: Union[int, Sequence[int]], value: float = 0.0) -> None:
        super().__init__()
        amounts: Tuple[int, ...] = (padding,) * (2 * self._rank) if isinstance(
            padding, int) else tuple(padding)
        if len(amounts) != 2 * self._rank:
            raise InvalidArgument(
                f"padding {amounts}; {type(self).__name__} needs one number or {2 * self._rank}")
        self.padding = amounts
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        """Pads the last dimensions."""
        if self._mode == "constant":
            return functional.pad(x, self.padding, "constant", self.value)
        return functional.pad(x, self.padding, self._mode)

    def extra_repr(self) -> str:
        """Returns the amounts for repr()."""
        return f"{self.padding}"


_PADDED = """The last {rank} dimensions padded {meaning}; (before, after), last first.

    >>> layer = kiln.nn.{name}(1)
    >>> layer(kiln.ones({before})).shape
    {after}
    """


def _made(name: str, rank: int, mode: str, meaning: str) -> type:
    document = _PADDED.format(rank=rank, meaning=meaning, name=name,
                              before=", ".join(["1", "2", *["4"] * rank]),
                              after=(1, 2, *[6] * rank))
    return type(name, (_Pad,), {
        "_rank": rank, "_mode": mode, "__module__": __name__, "__doc__": document})


ConstantPad1d, ConstantPad2d, ConstantPad3d = (
    _made(f"ConstantPad{rank}d", rank, "constant", "with a number") for rank in (1, 2, 3))
ZeroPad1d, ZeroPad2d, ZeroPad3d = (
    _made(f"ZeroPad{rank}d", rank, "constant", "with zeros") for rank in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (
    _made(f"ReflectionPad{rank}d", rank, "reflect", "by reflection") for rank in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (
    _made(f"ReplicationPad{rank}d", rank, "replicate", "by the border") for rank in (1, 2, 3))
CircularPad1d, CircularPad2d, CircularPad3d = (
    _made(f"CircularPad{rank}d", rank, "circular", "by the other end") for rank in (1, 2, 3))
