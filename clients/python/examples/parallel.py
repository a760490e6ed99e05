"""Trains a small convolutional network or a small GPT on several devices, and compares with one.

    kilnd --cpu_devices=4 &
    pip install ./clients/python
    python clients/python/examples/parallel.py --mode zero3

The modes: "data" gives each device a part of every batch and a copy of the weights; "tensor" splits
layers; "both" does both, on a grid of devices; "zero1" splits the optimizer's state as well as the
batch (Rajbhandari et al., 2020). A traced step then scatters its gradients to the devices that have
the state, and stores none, which makes it "zero2"; "zero3" splits the weights, too. "pipeline" puts
the first layers on the first device, the next ones on the next, and sends the batch through them in
parts (Huang et al., 2019). Losses match those of one device up to rounding. The data is made up.
"""

import argparse
import time

import numpy as np

import kiln
from kiln import nn
from kiln.models import GPT, GPTConfig

CONTEXT, VOCABULARY, BATCH = 32, 64, 16

# How tensor parallelism splits layers: one by its outputs, the next by its inputs.
SPLIT = {
    "convnet": {"0.weight": ("model",), "3.weight": (None, "model"), "7.weight": (None, "model")},
    "gpt": {"*.c_fc.*": ("model",), "*.c_proj.weight": (None, "model"), "wte.weight": ("model",)},
}  # fmt: skip


def convnet():
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 10),
    )  # fmt: skip
    return model, lambda x, y: nn.functional.cross_entropy(model(x), y)


def gpt():
    model = GPT(GPTConfig(vocabulary=VOCABULARY, context=CONTEXT, layers=2, heads=4, width=64))
    return model, model.loss


def batches(name, steps):
    """Arrays (x, y) for each step: noisy stripes by their slope, or counting by a stride."""
    draws = np.random.default_rng(0)
    for _ in range(steps):
        if name == "convnet":
            labels = draws.integers(0, 10, BATCH)
            grid = np.arange(8)[:, None] + labels[:, None, None] * np.arange(8)
            images = np.sin(grid * 0.6)[:, None] + draws.normal(0, 0.3, (BATCH, 1, 8, 8))
            yield images.astype(np.float32), labels
        else:
            first, stride = draws.integers(0, VOCABULARY, BATCH), draws.integers(1, 5, BATCH)
            tokens = (first[:, None] + stride[:, None] * np.arange(CONTEXT + 1)) % VOCABULARY
            yield tokens[:, :-1], tokens[:, 1:]


def data_parallel(model, names):
    mesh = kiln.Mesh("data", names)
    kiln.shard(model, mesh)
    return kiln.optim.Adam(model.parameters(), lr=3e-3), mesh, ("data",)


def tensor_parallel(model, names, split):
    mesh = kiln.Mesh("model", names)
    kiln.shard(model, mesh, split)
    return kiln.optim.Adam(model.parameters(), lr=3e-3), mesh, None


def both(model, names, split):
    mesh = kiln.Mesh(("data", "model"), np.reshape(names, (2, -1)))
    kiln.shard(model, mesh, split)
    return kiln.optim.Adam(model.parameters(), lr=3e-3), mesh, ("data",)


def zero2(model, names):
    mesh = kiln.Mesh("data", names)
    kiln.shard(model, mesh)
    optimizer = kiln.optim.Adam(model.parameters(), lr=3e-3)
    return kiln.shard(optimizer, mesh, "data"), mesh, ("data",)


def zero3(model, names):
    mesh = kiln.Mesh("data", names)
    kiln.shard(model, mesh, "data")
    return kiln.optim.Adam(model.parameters(), lr=3e-3), mesh, ("data",)


def run_of(layers, names):
    """Puts layers on devices, as many on each, and calls them one after the other."""
    placed = [(layer.to(name), name)
              for name, some in zip(names, np.array_split(range(len(layers)), len(names)))
              for layer in (layers[i] for i in some)]

    def run(x):
        for layer, name in placed:
            x = layer(x.to(name))
        return x

    return run


def pipeline_convnet(model, names):
    # In one part: batch norm takes its statistics over the batch.
    run = run_of(list(model), names)
    return lambda x, y: nn.functional.cross_entropy(run(x), y)


def pipeline_gpt(model, names, parts=4):
    blocks = run_of(list(model.h), names)
    for first in (model.wte, model.wpe):
        first.to(names[0])
    model.ln_f.to(names[-1])

    def loss_of_part(x, y):
        x = blocks(model.wte(x) + model.wpe.weight)
        logits = nn.functional.linear(model.ln_f(x), model.wte.weight.to(names[-1]))
        return nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())

    def loss_of(x, y):
        size = BATCH // parts
        return sum(loss_of_part(x[i : i + size], y[i : i + size])
                   for i in range(0, BATCH, size)) / parts

    return loss_of


def one_device(model):
    return kiln.optim.Adam(model.parameters(), lr=3e-3), None, None


def laid_out(mode, model, names, split):
    """The optimizer of a model, the mesh, and how batches lie on it."""
    return {
        "one": lambda: one_device(model),
        "pipeline": lambda: one_device(model),
        "data": lambda: data_parallel(model, names),
        "tensor": lambda: tensor_parallel(model, names, split),
        "both": lambda: both(model, names, split),
        "zero1": lambda: zero2(model, names),
        "zero2": lambda: zero2(model, names),
        "zero3": lambda: zero3(model, names),
    }[mode]()


def train(name, mode, names, steps):
    """The losses, the seconds from the second step on, and what holds the state."""
    kiln.manual_seed(0)
    model, loss_of = {"convnet": convnet, "gpt": gpt}[name]()
    if mode == "pipeline":
        loss_of = {"convnet": pipeline_convnet, "gpt": pipeline_gpt}[name](model, names)
    optimizer, mesh, spec = laid_out(mode, model, names, SPLIT[name])

    @kiln.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    losses, start = [], 0.0
    for x, y in batches(name, steps):
        batch = kiln.tensor(x), kiln.tensor(y)
        losses.append(step(*(batch if mesh is None else kiln.shard(batch, mesh, spec))))
        if len(losses) == 1:
            losses[0].item()
            start = time.perf_counter()
    values = np.array([loss.item() for loss in losses])
    return values, time.perf_counter() - start, (model, optimizer)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", help="the daemon's address; default: the local one")
    parser.add_argument(
        "--mode", default="data",
        choices=["data", "tensor", "both", "zero1", "zero2", "zero3", "pipeline"])
    parser.add_argument("--model", default="convnet", choices=["convnet", "gpt"])
    parser.add_argument("--devices", nargs="*", help="for example cuda:0 cuda:1; default: all")
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()

    kiln.connect(options.address)
    names = options.devices or [device.name for device in kiln.devices()]
    one, one_seconds, _ = train(options.model, "one", names, options.steps)
    several, seconds, state = train(options.model, options.mode, names, options.steps)
    steps = max(1, options.steps - 1)
    print(f"loss {several[0]:.4f} to {several[-1]:.4f}; on one device {one[-1]:.4f}")
    print(f"largest difference: {np.abs(several / one - 1).max():.1e} of a loss")
    print(f"{seconds / steps * 1e3:.1f} ms a step on {len(names)} devices, "
          f"{one_seconds / steps * 1e3:.1f} ms on one")
    print("memory: " + ", ".join(
        f"{device.name} {device.memory_used / 2**20:.2f} MiB" for device in kiln.devices()))
    del state


if __name__ == "__main__":
    main()
