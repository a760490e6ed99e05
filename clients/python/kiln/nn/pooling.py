"""Pooling as modules."""

from typing import Optional

from kiln import functional
from kiln.functional import Pair, pair
from kiln.nn.module import Module
from kiln.tensor import Tensor


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
