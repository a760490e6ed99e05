"""Convolutions as modules."""

from kiln import functional
from kiln.functional import Pair, pair
from kiln.nn.linear import uniform_parameter
from kiln.nn.module import Module
from kiln.tensor import Tensor


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
        self.weight = uniform_parameter(
            (out_channels, in_channels // groups, height, width), fan_in)
        self.bias = uniform_parameter((out_channels,), fan_in) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, O, H', W')."""
        return functional.conv2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        """Sizes."""
        out, within, height, width = self.weight.shape
        return (f"{within * self.groups}, {out}, kernel_size=({height}, {width}), "
                f"stride={self.stride}, padding={self.padding}, bias={self.bias is not None}")
