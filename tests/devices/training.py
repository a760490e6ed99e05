"""Trains the examples without a network and without scikit-learn: digits, and enlarged digits in MNIST's format.

usage: training.py digits|mnist [--data DIR] [--quick]

The last line is {"accuracy": ..., "note": ...}. $KILN_ADDRESS names the daemon. With --data, MNIST's own files.
"""

import contextlib
import functools
import io
import json
import pathlib
import re
import struct
import sys
import tempfile
from typing import Optional

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "clients/python/examples"))


def all_digits() -> tuple[numpy.ndarray, numpy.ndarray]:
    """Returns images (N, 8, 8) of 0 to 16, and labels: the bundle's copy, else scikit-learn's."""
    if (HERE / "digits.npz").exists():
        data = numpy.load(HERE / "digits.npz")
        return data["images"].reshape(-1, 8, 8), data["labels"]
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return images.reshape(-1, 8, 8), labels


def digits_of(seed: int, count: Optional[int] = None) -> tuple:
    """Returns what examples/digits.py loads, or only `count` of them."""
    images, labels = (array[:count] for array in all_digits())
    images = (images / 16.0).astype(numpy.float32)[:, None]
    order = numpy.random.default_rng(seed).permutation(len(images))
    images, labels = images[order], labels[order].astype(numpy.int64)
    held_out = len(images) // 5
    return (images[held_out:], labels[held_out:]), (images[:held_out], labels[:held_out])


def draw_larger(folder: str, train_count: int, test_count: int) -> None:
    """Writes MNIST's four files with digits three times as large, at random places in 28 x 28; a fifth is for the test."""
    images, labels = all_digits()
    random = numpy.random.default_rng(0)
    order = random.permutation(len(images))
    test = order[: len(order) // 5]
    for name, places, count in (("train", order[len(test):], train_count), ("t10k", test, test_count)):
        chosen = random.choice(places, count)
        large = numpy.kron(images[chosen], numpy.ones((1, 3, 3))) * (255 / 16)
        drawn = numpy.zeros((count, 28, 28), numpy.uint8)
        for one, (y, x), image in zip(drawn, random.integers(0, 5, (count, 2)), large.astype(numpy.uint8)):
            one[y : y + 24, x : x + 24] = image
        path = pathlib.Path(folder)
        path.joinpath(f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, *drawn.shape) + drawn.tobytes())
        chosen_labels = labels[chosen].astype(numpy.uint8)
        path.joinpath(f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, count) + chosen_labels.tobytes())


def run(main, arguments: list[str]) -> str:
    """Returns what the example prints; its progress stays on standard error."""
    sys.argv = ["example", *arguments]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main()
    return printed.getvalue()


def main() -> None:
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1] == "digits":
            import digits

            digits.load = functools.partial(digits_of, count=40 if quick else None)
            text = run(digits.main, ["--plot", f"{folder}/loss.png", *(["--epochs", "2", "--batch", "8"] if quick else [])])
            accuracy = float(re.search(r"test accuracy: ([\d.]+)", text)[1])
            note = re.search(r"\d+ steps in .*", text)[0]
        else:
            import mnist

            data = folder
            if "--data" in sys.argv:
                data = sys.argv[sys.argv.index("--data") + 1]
            else:
                draw_larger(folder, *((16, 4) if quick else (60000, 5000)))
            small = ["--steps", "2", "--batch", "2"] if quick else []
            told = json.loads(run(mnist.main, ["--json", "--epochs", "1", "--data", data, *small]))
            accuracy = told["test_accuracy"]
            drawn = "" if "--data" in sys.argv else " on digits drawn like MNIST's"
            note = f"{told['steps']} steps{drawn}, {told['step_seconds_median'] * 1e3:.2f} ms each"
    print(json.dumps({"accuracy": accuracy, "note": note}))


if __name__ == "__main__":
    main()
