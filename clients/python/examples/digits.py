"""Trains a small convolutional network on scikit-learn's bundled handwritten digits (8 x 8).

    pip install ./clients/python scikit-learn matplotlib
    python clients/python/examples/digits.py

A local kilnd is found by itself; KILN_ADDRESS or --address names another one.
"""

import argparse
import time

import numpy as np
from progress import Progress, curve, save_curve

import kiln
from kiln import nn


def load(seed):
    """Images (N, 1, 8, 8) in [0, 1] and labels, as (train, test); 20% of them are held out."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SystemExit("this example needs scikit-learn: pip install scikit-learn") from None
    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    order = np.random.default_rng(seed).permutation(len(images))
    images, labels = images[order], labels[order].astype(np.int64)
    held_out = len(images) // 5
    return (images[held_out:], labels[held_out:]), (images[:held_out], labels[:held_out])


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 4 * 4, 10),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", help="the daemon's address; default: the local one")
    parser.add_argument("--device", default="", help="for example opencl:0; default: the first")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", default="digits-loss.png", help="where the loss curve goes")
    options = parser.parse_args()

    kiln.connect(options.address, options.device)
    kiln.manual_seed(options.seed)
    (images, labels), test = load(options.seed)
    model = network()
    optimizer = kiln.optim.Adam(model.parameters(), lr=options.lr)

    @kiln.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    @kiln.jit
    def count_correct(x, y):
        return (model(x).argmax(-1) == y).sum()

    # The data set is on the device; a batch is the indices of its images.
    x_all, y_all = kiln.tensor(images).realize(), kiln.tensor(labels).realize()

    @kiln.jit
    def train(places):
        return step(x_all[places].contiguous(), y_all[places])

    order = np.random.default_rng(options.seed)
    steps = len(images) // options.batch
    progress = Progress(options.epochs * steps, "training")
    losses = []
    start = time.monotonic()
    for epoch in range(options.epochs):
        # A cosine from lr to zero. The rate is a tensor, so nothing is traced again.
        optimizer.lr = options.lr * 0.5 * (1 + np.cos(np.pi * epoch / options.epochs))
        shuffled = order.permutation(len(images))
        for i in range(steps):
            places = shuffled[i * options.batch : (i + 1) * options.batch]
            losses.append(train(kiln.tensor(places)))
            if i % 8 == 7 or i == steps - 1:  # reading a value waits for it
                progress.update(epoch * steps + i + 1, f"loss {losses[-1].item():.4f}")
    seconds = time.monotonic() - start

    model.eval()
    correct = count_correct(kiln.tensor(test[0]), kiln.tensor(test[1])).item()
    values = [loss.item() for loss in losses]
    print(f"loss {curve(values)} {values[0]:.3f} to {values[-1]:.4f}")
    if save_curve(values, options.plot, "digits: training loss"):
        print(f"loss curve: {options.plot}")
    print(f"{len(values)} steps in {seconds:.1f} s, {seconds / len(values) * 1e3:.2f} ms a step")
    print(f"test accuracy: {correct / len(test[1]):.4f}")


if __name__ == "__main__":
    main()
