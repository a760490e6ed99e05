"""PyTorch's side of the convnet step: the same model, batch and optimizer as examples/mnist.py, run on request.

Reads a number N from each line of standard input, does N steps and prints the seconds that each took, as a JSON list.
The argument is the number of threads.
"""

import json
import sys
import time

import torch
from torch import nn


def model() -> nn.Module:
    """The convnet: two blocks of two convolutions, batch norm and pooling, then a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5), nn.ReLU(),
        nn.Conv2d(32, 32, 5), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.Conv2d(64, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 3 * 3, 10),
    )  # fmt: skip


def main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(0)
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    images = torch.rand(128, 1, 28, 28)
    labels = torch.randint(0, 10, (128,))

    def step() -> float:
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        loss.item()
        return time.perf_counter() - begin

    for request in sys.stdin:
        print(json.dumps([step() for _ in range(int(request))]), flush=True)


if __name__ == "__main__":
    main()
