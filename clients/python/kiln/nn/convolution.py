"""Convolutions and transposed convolutions over one to three dimensions."""

import math
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from kiln import functional
from kiln._basics.errors import InvalidArgument
from kiln._rules import NUMBER, whole
from kiln.nn.linear import uniform_parameter
from kiln.nn.module import Module
from kiln.tensor import Tensor

Sizes = Union[int, Sequence[int]]


def sizes_of(value: Sizes, rank: int, name: str) -> Tuple[int, ...]:
    """Returns one number for each dimension, from one for all or one for each."""
    if isinstance(value, NUMBER):
        return (whole(value, name),) * rank
    result = tuple(whole(number, name) for number in value)
    if len(result) != rank:
        raise InvalidArgument(f"{name} {result}; there must be one number or {rank}")
    return result


_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """The base of all convolutions: sizes, weight, bias."""

    _rank = 0
    _function: Callable[..., Tensor]
    _transposed = False

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes,
                 padding: Union[str, Sizes], dilation: Sizes, groups: int, bias: bool) -> None:
        super().__init__()
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise InvalidArgument(
                f"{in_channels} channels to {out_channels} do not divide into {groups} groups")
        rank = self._rank
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = sizes_of(kernel_size, rank, "kernel_size")
        self.stride = sizes_of(stride, rank, "stride")
        self.padding: Any = padding if isinstance(padding, str) else sizes_of(
            padding, rank, "padding")
        self.dilation = sizes_of(dilation, rank, "dilation")
        self.groups = groups
        shape = (in_channels, out_channels // groups) if self._transposed else (
            out_channels, in_channels // groups)
        fan_in = shape[1] * math.prod(self.kernel_size)
        self.weight = uniform_parameter((*shape, *self.kernel_size), fan_in)
        self.bias = uniform_parameter((out_channels,), fan_in) if bias else None

    def _batched(self, x: Tensor) -> Tensor:
        """Returns the input with a batch dimension."""
        if x.ndim not in (self._rank + 1, self._rank + 2) or x.shape[-self._rank - 1] != (
                self.in_channels):
            names = ", ".join("DHW"[3 - self._rank :] if self._rank > 1 else "L")
            raise InvalidArgument(
                f"{type(self).__name__} of a tensor of shape {x.shape}; it needs "
                f"(N, {self.in_channels}, {names}), with or without N")
        return x if x.ndim == self._rank + 2 else x.unsqueeze(0)

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        return (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
                f"groups={self.groups}, bias={self.bias is not None}")


class _Forward(_Convolution):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 padding: Union[str, Sizes] = 0, dilation: Sizes = 1, groups: int = 1,
                 bias: bool = True, padding_mode: str = "zeros") -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                         bias)
        if padding_mode not in _PADDING_MODES:
            raise InvalidArgument(
                f"unknown padding_mode {padding_mode!r}; use one of {', '.join(_PADDING_MODES)}")
        self.padding_mode = padding_mode
        self._borders = self._made_borders()

    def _made_borders(self) -> Tuple[int, ...]:
        """Returns the padding before and after each dimension, the last one first, for pad()."""
        borders: List[int] = []
        for i in reversed(range(self._rank)):
            if self.padding == "same":
                if self.stride[i] != 1:
                    raise InvalidArgument('padding "same" needs a stride of 1')
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                # If the total is odd, the larger half comes after, as in PyTorch.
                borders += [total // 2, total - total // 2]
            elif self.padding == "valid":
                borders += [0, 0]
            elif isinstance(self.padding, str):
                raise InvalidArgument(
                    f'padding {self.padding!r}; it must be "same", "valid" or numbers')
            else:
                borders += [self.padding[i]] * 2
        return tuple(borders)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, in, …) to (N, out, …), with or without N."""
        batched = self._batched(x)
        even = self._borders[::2] == self._borders[1::2]
        if self.padding_mode == "zeros" and even:
            # One number for each dimension, the first one first; before and after are equal.
            padding = self._borders[::-2]
        else:
            mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
            batched = functional.pad(batched, self._borders, mode)
            padding = (0,) * self._rank
        result = type(self)._function(
            batched, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
        return result if x.ndim == batched.ndim else result.squeeze(0)


class Conv1d(_Forward):
    """Convolution (cross-correlation) of (N, C, L) with weight (out, in / groups, K).

    `padding` is a number, "same" or "valid"; padding_mode "zeros", "reflect", "replicate" or
    "circular". Others, and groups that do not divide the channels, raise InvalidArgument.

    >>> kiln.nn.Conv1d(16, 33, 3, stride=2)(kiln.zeros(20, 16, 50)).shape
    (20, 33, 24)
    """

    _rank = 1
    _function = staticmethod(functional.conv1d)


class Conv2d(_Forward):
    """Convolution (cross-correlation) of (N, C, H, W) with weight (out, in / groups, KH, KW).

    Sizes are one number, or one for each dimension. For padding see Conv1d.

    >>> kiln.nn.Conv2d(16, 33, 3, stride=2)(kiln.zeros(20, 16, 50, 100)).shape
    (20, 33, 24, 49)
    """

    _rank = 2
    _function = staticmethod(functional.conv2d)


class Conv3d(_Forward):
    """Convolution of (N, C, D, H, W) with weight (out, in / groups, KD, KH, KW); see Conv2d.

    >>> kiln.nn.Conv3d(16, 33, 3, stride=2)(kiln.zeros(20, 16, 10, 50, 100)).shape
    (20, 33, 4, 24, 49)
    """

    _rank = 3
    _function = staticmethod(functional.conv3d)


class _Transposed(_Convolution):
    _transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, bias: bool = True,
                 dilation: Sizes = 1) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                         bias)
        self.output_padding = sizes_of(output_padding, self._rank, "output_padding")

    def forward(self, x: Tensor, output_size: Optional[Sequence[int]] = None) -> Tensor:
        """Maps (N, in, …) to (N, out, …), with or without N.

        `output_size` chooses among several possible sizes; an impossible one raises
        InvalidArgument.
        """
        batched = self._batched(x)
        added = self.output_padding if output_size is None else self._added(
            batched, tuple(output_size)[-self._rank :])
        result = type(self)._function(
            batched, self.weight, self.bias, self.stride, self.padding, added, self.groups,
            self.dilation)
        return result if x.ndim == batched.ndim else result.squeeze(0)

    def _added(self, x: Tensor, wanted: Tuple[int, ...]) -> Tuple[int, ...]:
        """Returns the output_padding that gives a size."""
        added = []
        for i, size in enumerate(wanted):
            size_min = (x.shape[2 + i] - 1) * self.stride[i] - 2 * self.padding[i] + (
                self.dilation[i] * (self.kernel_size[i] - 1) + 1)
            if not 0 <= size - size_min < max(self.stride[i], self.dilation[i]):
                raise InvalidArgument(
                    f"output_size {wanted}: dimension {i} can be {size_min} to "
                    f"{size_min + max(self.stride[i], self.dilation[i]) - 1}")
            added.append(size - size_min)
        return tuple(added)


class ConvTranspose1d(_Transposed):
    """The adjoint of Conv1d, with weight (in, out / groups, K).

    >>> kiln.nn.ConvTranspose1d(16, 8, 3, stride=2)(kiln.zeros(20, 16, 24)).shape
    (20, 8, 49)
    """

    _rank = 1
    _function = staticmethod(functional.conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """The adjoint of Conv2d, with weight (in, out / groups, KH, KW).

    >>> kiln.nn.ConvTranspose2d(16, 8, 2, stride=2)(kiln.zeros(1, 16, 12, 12)).shape
    (1, 8, 24, 24)
    """

    _rank = 2
    _function = staticmethod(functional.conv_transpose2d)


class ConvTranspose3d(_Transposed):
    """The adjoint of Conv3d, with weight (in, out / groups, KD, KH, KW).

    >>> kiln.nn.ConvTranspose3d(2, 3, 3, stride=2)(kiln.ones(1, 2, 4, 4, 4)).shape
    (1, 3, 9, 9, 9)
    """

    _rank = 3
    _function = staticmethod(functional.conv_transpose3d)
