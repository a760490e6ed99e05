"""Kiln's side of a training step: the model named by the argument, its batch and optimizer, run on request.

Reads a number N from each line of standard input, does N steps and prints the seconds that each took and the last loss,
as a JSON object. The daemon is the one at $KILN_ADDRESS. With a second argument the step's graph is written to that file,
for bench_compile.
"""

import json
import pathlib
import sys
import time

import numpy

import kiln

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients/python/examples"))

from mnist import network  # noqa: E402

from kiln import models, nn  # noqa: E402

RANDOM = numpy.random.default_rng(0)


def images(model, optimizer, count: int, channels: int, size: int, classes: int):
    """Model, optimizer, loss function and batch of a classifier of images."""
    x = RANDOM.random((count, channels, size, size), dtype=numpy.float32)
    y = RANDOM.integers(0, classes, count)
    return model, optimizer, lambda x, y: nn.functional.cross_entropy(model(x), y), x, y


def convnet():
    """examples/mnist.py's model."""
    model = network()
    return images(model, kiln.optim.Adam(model.parameters()), 128, 1, 28, 10)


def resnet50():
    """ResNet-50 on 224 x 224 images."""
    model = models.resnet50()
    return images(model, kiln.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), 8, 3, 224, 1000)


def resnet18():
    """ResNet-18 on 32 x 32 images."""
    model = models.resnet18(10, small_images=True)
    return images(model, kiln.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), 64, 3, 32, 10)


def gpt2():
    """GPT-2 small at a context of 256, batch 1."""
    model = models.GPT(models.GPTConfig())
    optimizer = kiln.optim.AdamW(model.parameters(), lr=3e-4)
    tokens = RANDOM.integers(0, 50257, (1, 257))
    return model, optimizer, model.loss, tokens[:, :-1].copy(), tokens[:, 1:].copy()


def main() -> None:
    kiln.manual_seed(0)
    _, optimizer, loss_of, x, y = {"convnet": convnet, "resnet50": resnet50, "resnet18": resnet18, "gpt2": gpt2}[sys.argv[1]]()
    x, y = kiln.tensor(x).realize(), kiln.tensor(y).realize()

    @kiln.jit
    def train(x, y):
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    if len(sys.argv) > 2:
        train(x, y)
        (trace,) = set(train._traces.values())
        pathlib.Path(sys.argv[2]).write_bytes(trace.graph.SerializeToString())

    for request in sys.stdin:
        seconds = []
        for _ in range(int(request)):
            begin = time.perf_counter()
            loss = train(x, y).item()
            seconds.append(time.perf_counter() - begin)
        print(json.dumps({"seconds": seconds, "loss": loss}), flush=True)


if __name__ == "__main__":
    main()
