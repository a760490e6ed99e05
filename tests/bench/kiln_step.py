"""Kiln's side of a training step: the model named by the argument, its batch and optimizer, run on request.

Reads a number N from each line of standard input, does N steps and prints the seconds that each took and the last loss, as a
JSON object. The daemon is the one at $KILN_ADDRESS. With a second argument, writes the step's graph to that file, for
bench_compile.
"""

import json
import pathlib
import sys
import time

import kiln

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients/python/examples"))

import same_start  # noqa: E402
from mnist import network  # noqa: E402

from kiln import models, nn  # noqa: E402


def convnet():
    """The model of examples/mnist.py."""
    model = network()
    return model, kiln.optim.Adam(model.parameters())


def resnet50():
    """ResNet-50, for images of 224 x 224."""
    model = models.resnet50()
    return model, kiln.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def resnet18():
    """ResNet-18, for images of 32 x 32."""
    model = models.resnet18(10, small_images=True)
    return model, kiln.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def gpt2():
    """GPT-2 small."""
    model = models.GPT(models.GPTConfig())
    return model, kiln.optim.AdamW(model.parameters(), lr=3e-4)


def main() -> None:
    name = sys.argv[1]
    model, optimizer = {"convnet": convnet, "resnet50": resnet50, "resnet18": resnet18, "gpt2": gpt2}[name]()
    with kiln.no_grad():
        for number, (parameter_name, parameter) in enumerate(model.named_parameters()):
            parameter.assign(kiln.tensor(same_start.weight(number, parameter_name, parameter.shape)))
    loss_of = model.loss if name == "gpt2" else lambda x, y: nn.functional.cross_entropy(model(x), y)
    x, y = (kiln.tensor(array).realize() for array in same_start.batch(name))

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
