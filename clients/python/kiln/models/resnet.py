"""Residual networks (He et al., 2016), with torchvision's parameter names.

The stride of a bottleneck is in its 3 x 3 convolution ("ResNet v1.5"), as in torchvision.
"""

from typing import Optional, Sequence, Type, Union

from kiln import nn
from kiln.tensor import Tensor


def _convolution(within: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(within, out, kernel, stride, padding=kernel // 2, bias=False)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions, with a shortcut."""

    expansion = 1

    def __init__(self, within: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = _convolution(within, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _convolution(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(within, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, within, H, W) to (N, width, H / stride, W / stride)."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(x)) + shortcut).relu()


class Bottleneck(nn.Module):
    """A 3 x 3 convolution between two 1 x 1 ones that narrow and widen, with a shortcut."""

    expansion = 4

    def __init__(self, within: int, width: int, stride: int = 1) -> None:
        super().__init__()
        out = width * self.expansion
        self.conv1 = _convolution(within, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _convolution(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = _convolution(width, out, 1)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample = _shortcut(within, out, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, within, H, W) to (N, 4 * width, H / stride, W / stride)."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.bn1(self.conv1(x)).relu()
        x = self.bn2(self.conv2(x)).relu()
        return (self.bn3(self.conv3(x)) + shortcut).relu()


def _shortcut(within: int, out: int, stride: int) -> Optional[nn.Sequential]:
    if stride == 1 and within == out:
        return None
    return nn.Sequential(_convolution(within, out, 1, stride), nn.BatchNorm2d(out))


class ResNet(nn.Module):
    """A stem, four stages of residual blocks, the mean over the image, and a linear layer.

    Args:
      block: BasicBlock or Bottleneck.
      layers: the number of blocks in each of the four stages.
      num_classes: the size of the result.
      small_images: for 32 x 32 images the stem is one 3 x 3 convolution without pooling, as in the
        paper's experiments on CIFAR-10.
      zero_init_residual: each block initially equals its shortcut, which trains large batches and
        high learning rates more steadily (Goyal et al., 2017).
    """

    def __init__(self, block: Union[Type[BasicBlock], Type[Bottleneck]], layers: Sequence[int],
                 num_classes: int = 1000, small_images: bool = False,
                 zero_init_residual: bool = False) -> None:
        super().__init__()
        self.small_images = small_images
        self.conv1 = _convolution(3, 64, 3) if small_images else _convolution(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self._width = 64
        self.layer1 = self._stage(block, 64, layers[0], 1)
        self.layer2 = self._stage(block, 128, layers[1], 2)
        self.layer3 = self._stage(block, 256, layers[2], 2)
        self.layer4 = self._stage(block, 512, layers[3], 2)
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif zero_init_residual and isinstance(module, (BasicBlock, Bottleneck)):
                last = module.bn2 if isinstance(module, BasicBlock) else module.bn3
                if last.weight is not None:
                    nn.init.zeros_(last.weight)

    def _stage(self, block: Union[Type[BasicBlock], Type[Bottleneck]], width: int, count: int,
               stride: int) -> nn.Sequential:
        blocks = []
        for i in range(count):
            blocks.append(block(self._width, width, stride if i == 0 else 1))
            self._width = width * block.expansion
        return nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        """Maps images (N, 3, H, W) to logits (N, num_classes)."""
        x = self.bn1(self.conv1(x)).relu()
        if not self.small_images:
            x = nn.functional.max_pool2d(x, 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def resnet18(num_classes: int = 1000, small_images: bool = False,
             zero_init_residual: bool = False) -> ResNet:
    """Returns a ResNet-18: 11.7 million parameters with 1,000 classes."""
    return ResNet(BasicBlock, (2, 2, 2, 2), num_classes, small_images, zero_init_residual)


def resnet34(num_classes: int = 1000, small_images: bool = False,
             zero_init_residual: bool = False) -> ResNet:
    """Returns a ResNet-34: 21.8 million parameters with 1,000 classes."""
    return ResNet(BasicBlock, (3, 4, 6, 3), num_classes, small_images, zero_init_residual)


def resnet50(num_classes: int = 1000, small_images: bool = False,
             zero_init_residual: bool = False) -> ResNet:
    """Returns a ResNet-50: 25.6 million parameters with 1,000 classes."""
    return ResNet(Bottleneck, (3, 4, 6, 3), num_classes, small_images, zero_init_residual)


def resnet101(num_classes: int = 1000, small_images: bool = False,
              zero_init_residual: bool = False) -> ResNet:
    """Returns a ResNet-101: 44.5 million parameters with 1,000 classes."""
    return ResNet(Bottleneck, (3, 4, 23, 3), num_classes, small_images, zero_init_residual)
