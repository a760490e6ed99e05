"""Trains a convolutional network on MNIST.

    python clients/python/examples/mnist.py --data DIR

DIR holds the four original files (train-images-idx3-ubyte and so on, with or without .gz). Without
--data they are downloaded into the cache folder.
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import struct
import sys
import time
import urllib.error
import urllib.request

import numpy as np
from progress import Progress, curve, save_curve

import kiln
from kiln import nn

FILES = {
    "train_images": "train-images-idx3-ubyte", "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte", "test_labels": "t10k-labels-idx1-ubyte",
}  # fmt: skip
MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "kiln" / "mnist"


def download(folder):
    """Fetches what is missing into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES.values():
        target = folder / f"{name}.gz"
        if target.exists():
            continue
        problems = []
        for mirror in MIRRORS:
            try:
                print(f"downloading {mirror}{name}.gz", file=sys.stderr)
                with urllib.request.urlopen(f"{mirror}{name}.gz", timeout=30) as answer:
                    data = answer.read()
                partial = target.with_suffix(".part")
                partial.write_bytes(data)
                partial.replace(target)
                break
            except (urllib.error.URLError, OSError) as error:
                problems.append(f"{mirror}: {error}")
        else:
            raise SystemExit(
                "MNIST cannot be downloaded. Check the network, or put its four files into "
                f"{folder}, or into a folder that you name with --data.\n  "
                + "\n  ".join(problems))
    return folder


def read_idx(folder, name):
    """The array in an idx file. (The format: http://yann.lecun.com/exdb/mnist.)"""
    for path, opener in ((folder / name, open), (folder / f"{name}.gz", gzip.open)):
        if path.exists():
            with opener(path, "rb") as file:
                data = file.read()
            break
    else:
        raise SystemExit(f"{folder} has neither {name} nor {name}.gz")
    zeros, kind, rank = struct.unpack(">HBB", data[:4])
    if zeros != 0 or kind != 8:
        raise SystemExit(f"{path} is not an idx file of bytes")
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def load(folder):
    """Images (N, 1, 28, 28) of bytes, and labels."""
    arrays = {name: read_idx(folder, file) for name, file in FILES.items()}
    return {
        name: array[:, None] if name.endswith("images") else array.astype(np.int64)
        for name, array in arrays.items()
    }


def network():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5), nn.ReLU(),
        nn.Conv2d(32, 32, 5), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.Conv2d(64, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 3 * 3, 10),
    )  # fmt: skip


def normalized(images):
    return (images.float() / 255.0 - 0.1307) / 0.3081


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="the folder with MNIST's files")
    parser.add_argument("--address", help="the daemon's address; default: the local one")
    parser.add_argument("--device", default="", help="for example opencl:0; default: the first")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="stop after this many steps")
    parser.add_argument("--plot", default="mnist-loss.png", help="where the loss curve goes")
    parser.add_argument("--json", action="store_true", help="print the result as JSON alone")
    options = parser.parse_args()

    data = load(pathlib.Path(options.data) if options.data else download(cache_folder()))
    kiln.connect(options.address, options.device)
    kiln.manual_seed(options.seed)
    model = network()
    optimizer = kiln.optim.Adam(model.parameters(), lr=options.lr)
    images = kiln.tensor(data["train_images"]).realize()
    labels = kiln.tensor(data["train_labels"]).realize()

    @kiln.jit
    def step(places):
        optimizer.zero_grad()
        logits = model(normalized(images[places]).contiguous())
        loss = nn.functional.cross_entropy(logits, labels[places])
        loss.backward()
        optimizer.step()
        return loss

    @kiln.jit
    def count_correct(x, y):
        return (model(normalized(x)).argmax(-1) == y).sum()

    def accuracy():
        model.eval()
        x, y = data["test_images"], data["test_labels"]
        found = [
            count_correct(kiln.tensor(x[i : i + 1000]), kiln.tensor(y[i : i + 1000]))
            for i in range(0, len(x), 1000)
        ]
        model.train()
        return sum(count.item() for count in found) / len(y)

    order = np.random.default_rng(options.seed)
    per_epoch = len(data["train_labels"]) // options.batch
    total = min(options.epochs * per_epoch, options.steps or 10**9)
    progress = Progress(total, "training")
    losses, times, accuracies = [], [], []
    first_seconds = 0.0
    for epoch in range(options.epochs):
        shuffled = order.permutation(len(data["train_labels"]))
        for i in range(min(per_epoch, total - epoch * per_epoch)):
            start = time.perf_counter()
            places = shuffled[i * options.batch : (i + 1) * options.batch]
            losses.append(step(kiln.tensor(places)).item())
            elapsed = time.perf_counter() - start
            if len(losses) == 1:
                first_seconds = elapsed
            elif len(losses) > 3:
                times.append(elapsed)
            progress.update(len(losses), f"loss {losses[-1]:.4f}")
        accuracies.append(accuracy())
        if not options.json:
            print(f"epoch {epoch + 1}: test accuracy {accuracies[-1]:.4f}", flush=True)
        if len(losses) >= total:
            break
    result = {
        "test_accuracy": accuracies[-1], "accuracy_by_epoch": accuracies, "steps": len(losses),
        "first_step_seconds": first_seconds,
        "step_seconds_median": statistics.median(times) if times else first_seconds,
        "loss_first": losses[0], "loss_last": statistics.fmean(losses[-50:]),
        "traces": step.traces,
    }  # fmt: skip
    if options.json:
        print(json.dumps(result))
        return
    print(f"loss {curve(losses)} {losses[0]:.3f} to {result['loss_last']:.4f}")
    if save_curve(losses, options.plot, "MNIST: training loss"):
        print(f"loss curve: {options.plot}")
    print(
        f"first step {first_seconds:.2f} s, then {result['step_seconds_median'] * 1e3:.1f} ms a "
        f"step (median of {len(times)})")
    print(f"test accuracy: {accuracies[-1]:.4f}")


if __name__ == "__main__":
    main()
