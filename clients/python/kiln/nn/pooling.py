"""Pooling as modules."""

from typing import Callable, Optional, Sequence, Union

from kiln import functional
from kiln.nn.convolution import Sizes, sizes_of
from kiln.nn.module import Module
from kiln.tensor import Tensor

OutputSizes = Union[None, int, Sequence[Optional[int]]]


class _Pool(Module):
    _rank = 0
    _function: Callable[..., Tensor]

    def __init__(self, kernel_size: Sizes, stride: Optional[Sizes], padding: Sizes) -> None:
        super().__init__()
        self.kernel_size = sizes_of(kernel_size, self._rank, "kernel_size")
        self.stride = self.kernel_size if stride is None else sizes_of(
            stride, self._rank, "stride")
        self.padding = sizes_of(padding, self._rank, "padding")

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _MaxPool(_Pool):
    def __init__(self, kernel_size: Sizes, stride: Optional[Sizes] = None, padding: Sizes = 0,
                 dilation: Sizes = 1, ceil_mode: bool = False) -> None:
        super().__init__(kernel_size, stride, padding)
        self.dilation = sizes_of(dilation, self._rank, "dilation")
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        """Pools the last dimensions."""
        return type(self)._function(x, self.kernel_size, self.stride, self.padding, self.dilation,
                                    self.ceil_mode)


class MaxPool1d(_MaxPool):
    """Returns the largest element of each window of (N, C, L); padding never wins.

    >>> kiln.nn.MaxPool1d(2)(kiln.ones(1, 3, 8)).shape
    (1, 3, 4)
    """

    _rank = 1
    _function = staticmethod(functional.max_pool1d)


class MaxPool2d(_MaxPool):
    """Returns the largest element of each window of (N, C, H, W); padding never wins.

    >>> kiln.nn.MaxPool2d(2)(kiln.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    _rank = 2
    _function = staticmethod(functional.max_pool2d)


class MaxPool3d(_MaxPool):
    """Returns the largest element of each window of (N, C, D, H, W); padding never wins.

    >>> kiln.nn.MaxPool3d(2)(kiln.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """

    _rank = 3
    _function = staticmethod(functional.max_pool3d)


class _AvgPool(_Pool):
    def __init__(self, kernel_size: Sizes, stride: Optional[Sizes] = None, padding: Sizes = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True) -> None:
        super().__init__(kernel_size, stride, padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        """Pools the last dimensions."""
        return type(self)._function(x, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                    self.count_include_pad)


class AvgPool1d(_AvgPool):
    """The mean of each window of (N, C, L).

    >>> kiln.nn.AvgPool1d(2)(kiln.ones(1, 3, 8)).shape
    (1, 3, 4)
    """

    _rank = 1
    _function = staticmethod(functional.avg_pool1d)


class AvgPool2d(_AvgPool):
    """The mean of each window of (N, C, H, W).

    >>> kiln.nn.AvgPool2d(2)(kiln.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    _rank = 2
    _function = staticmethod(functional.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window of (N, C, D, H, W).

    >>> kiln.nn.AvgPool3d(2)(kiln.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """

    _rank = 3
    _function = staticmethod(functional.avg_pool3d)


class _AdaptivePool(Module):
    _function: Callable[..., Tensor]

    def __init__(self, output_size: OutputSizes) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        """Pools the last dimensions to output_size (None keeps a size)."""
        return type(self)._function(x, self.output_size)

    def extra_repr(self) -> str:
        """Returns the size for repr()."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool):
    """Returns the means of windows that divide (N, C, L) into output_size.

    >>> kiln.nn.AdaptiveAvgPool1d(4)(kiln.ones(1, 3, 8)).shape
    (1, 3, 4)
    """

    _function = staticmethod(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptivePool):
    """Returns the means of windows that divide (N, C, H, W) into output_size.

    >>> kiln.nn.AdaptiveAvgPool2d(4)(kiln.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    _function = staticmethod(functional.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptivePool):
    """Returns the means of windows that divide (N, C, D, H, W) into output_size.

    >>> kiln.nn.AdaptiveAvgPool3d(4)(kiln.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """

    _function = staticmethod(functional.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_AdaptivePool):
    """Returns the largest elements of windows that divide (N, C, L) into output_size.

    >>> kiln.nn.AdaptiveMaxPool1d(4)(kiln.ones(1, 3, 8)).shape
    (1, 3, 4)
    """

    _function = staticmethod(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptivePool):
    """Returns the largest elements of windows that divide (N, C, H, W) into output_size.

    >>> kiln.nn.AdaptiveMaxPool2d(4)(kiln.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    _function = staticmethod(functional.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptivePool):
    """Returns the largest elements of windows that divide (N, C, D, H, W) into output_size.

    >>> kiln.nn.AdaptiveMaxPool3d(4)(kiln.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """

    _function = staticmethod(functional.adaptive_max_pool3d)


class _LPPool(Module):
    _rank = 0
    _function: Callable[..., Tensor]

    def __init__(self, norm_type: float, kernel_size: Sizes, stride: Optional[Sizes] = None,
                 ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = sizes_of(kernel_size, self._rank, "kernel_size")
        self.stride = self.kernel_size if stride is None else sizes_of(
            stride, self._rank, "stride")
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        """Pools the last dimensions."""
        return type(self)._function(
            x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPool):
    """The p-norm of each window of (N, C, L).

    >>> kiln.nn.LPPool1d(2, 2)(kiln.ones(1, 3, 8)).shape
    (1, 3, 4)
    """

    _rank = 1
    _function = staticmethod(functional.lp_pool1d)


class LPPool2d(_LPPool):
    """The p-norm of each window of (N, C, H, W).

    >>> kiln.nn.LPPool2d(2, 2)(kiln.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    _rank = 2
    _function = staticmethod(functional.lp_pool2d)
