"""Kiln's side of the convnet step: examples/mnist.py's model, batch and optimizer, run on request.

Reads a number N from each line of standard input, does N steps and prints the seconds that each took, as a JSON list.
The daemon is the one at $KILN_ADDRESS.
"""

import json
import pathlib
import sys
import time

import numpy

import kiln

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients/python/examples"))

from mnist import network  # noqa: E402

from kiln import nn  # noqa: E402


def main() -> None:
    kiln.manual_seed(0)
    model = network()
    optimizer = kiln.optim.Adam(model.parameters())
    random = numpy.random.default_rng(0)
    images = kiln.tensor(random.random((128, 1, 28, 28), dtype=numpy.float32)).realize()
    labels = kiln.tensor(random.integers(0, 10, 128)).realize()

    @kiln.jit
    def train(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def step() -> float:
        begin = time.perf_counter()
        train(images, labels).item()
        return time.perf_counter() - begin

    for request in sys.stdin:
        print(json.dumps([step() for _ in range(int(request))]), flush=True)


if __name__ == "__main__":
    main()
