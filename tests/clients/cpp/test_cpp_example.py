"""The C++ example trains, on digits of its own and on files like MNIST's."""

import re
import struct
import subprocess

from kilnd_process import build_folder

PROGRAM = build_folder() / "clients/cpp/examples/train_digits"


def train(kilnd, *options):
    return subprocess.run(
        [PROGRAM, *options], env=kilnd.environment(), capture_output=True, text=True, timeout=300
    )


def accuracies(done):
    assert done.returncode == 0, done.stderr
    return [float(found) for found in re.findall(r"^epoch \d+: loss [\d.]+, test accuracy ([\d.]+)$", done.stdout, re.M)]


def test_it_learns(kilnd):
    reached = accuracies(train(kilnd, "--epochs", "2"))
    assert len(reached) == 2
    assert reached[-1] > 0.97


def write_idx(folder, prefix, images, labels):
    """`images` are lists of rows of bytes."""
    shape = (len(images), len(images[0]), len(images[0][0]))
    pixels = b"".join(bytes(row) for image in images for row in image)
    (folder / f"{prefix}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, *shape) + pixels)
    (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, len(labels)) + bytes(labels))


def test_it_reads_files_like_mnists(kilnd, tmp_path):
    # A digit is as many white rows, so a linear model could learn it.
    labels = [i % 10 for i in range(400)]
    images = [[[255 if row < 2 * label else 0] * 28 for row in range(28)] for label in labels]
    write_idx(tmp_path, "train", images, labels)
    write_idx(tmp_path, "t10k", images[:100], labels[:100])
    reached = accuracies(train(kilnd, "--data", tmp_path, "--epochs", "6", "--batch", "20"))
    assert reached[-1] > 0.95


def test_what_it_cannot_read_it_names(kilnd, tmp_path):
    done = train(kilnd, "--data", tmp_path)
    assert done.returncode == 1
    assert "train-images-idx3-ubyte" in done.stderr
    write_idx(tmp_path, "train", [[[0] * 4] * 4] * 3, [0, 1])
    done = train(kilnd, "--data", tmp_path)
    assert done.returncode == 1
    assert "is not the announced one" in done.stderr
