"""PyTorch's side of a training step: the model named by the first argument, with kiln_step.py's batch and optimizer.

Reads a number N from each line of standard input, does N steps and prints the seconds that each took and the last loss,
as a JSON object. The second argument is the number of threads.
"""

import json
import sys
import time

import torch
from torch import nn


def convnet() -> nn.Module:
    """Two blocks of two convolutions, batch norm and pooling, then a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5), nn.ReLU(),
        nn.Conv2d(32, 32, 5), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.Conv2d(64, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 3 * 3, 10),
    )  # fmt: skip


def normalized(channels: int, out: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """A convolution and its batch norm."""
    return nn.Sequential(nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out))


class Block(nn.Module):
    """A bottleneck, or two 3 x 3 convolutions, beside a shortcut."""

    def __init__(self, channels: int, width: int, stride: int, bottleneck: bool):
        super().__init__()
        out = 4 * width if bottleneck else width
        parts = [(channels, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)] if bottleneck else [
            (channels, width, 3, stride), (width, width, 3, 1)]
        layers = []
        for part in parts:
            layers += [normalized(*part), nn.ReLU()]
        self.body = nn.Sequential(*layers[:-1])
        self.shortcut = nn.Identity() if stride == 1 and channels == out else normalized(channels, out, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, channels, H, W) to (N, out, H / stride, W / stride)."""
        return (self.body(x) + self.shortcut(x)).relu()


def residual(counts: tuple, bottleneck: bool, classes: int) -> nn.Module:
    """A residual network, with the stem for large images if it has bottlenecks."""
    layers = [normalized(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)] if bottleneck else [normalized(3, 64, 3), nn.ReLU()]
    channels = 64
    for i, count in enumerate(counts):
        for j in range(count):
            layers.append(Block(channels, 64 << i, 2 if i > 0 and j == 0 else 1, bottleneck))
            channels = (64 << i) * (4 if bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def main() -> None:
    torch.set_num_threads(int(sys.argv[2]))
    torch.manual_seed(0)
    if sys.argv[1] == "convnet":
        net, shape, classes = convnet(), (128, 1, 28, 28), 10
    elif sys.argv[1] == "resnet50":
        net, shape, classes = residual((3, 4, 6, 3), True, 1000), (8, 3, 224, 224), 1000
    else:
        net, shape, classes = residual((2, 2, 2, 2), False, 10), (64, 3, 32, 32), 10
    optimizer = torch.optim.Adam(net.parameters()) if sys.argv[1] == "convnet" else torch.optim.SGD(
        net.parameters(), lr=0.01, momentum=0.9)
    images = torch.rand(*shape)
    labels = torch.randint(0, classes, shape[:1])

    def step() -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    for request in sys.stdin:
        seconds = []
        for _ in range(int(request)):
            begin = time.perf_counter()
            loss = step()
            seconds.append(time.perf_counter() - begin)
        print(json.dumps({"seconds": seconds, "loss": loss}), flush=True)


if __name__ == "__main__":
    main()
