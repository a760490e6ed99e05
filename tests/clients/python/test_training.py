"""Optimizers compared with NumPy, default initialization, and the examples."""

import json
import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import kiln
from kiln import nn

from eventually import GIVE_UP_SECONDS

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "clients" / "python" / "examples"
START = np.array([1.0, -2.0, 3.0], np.float32)
TARGET = np.array([0.5, 0.5, -1.0], np.float32)


def gradient(p):
    return 2 * (p - TARGET) * np.array([1, 2, 3])


def sgd(lr, momentum=0.0, weight_decay=0.0, nesterov=False):
    p, velocity = START.astype(np.float64), 0.0
    while True:
        g = gradient(p) + weight_decay * p
        if momentum:
            velocity = momentum * velocity + g
            g = g + momentum * velocity if nesterov else velocity
        p = p - lr * g
        yield p


def adam(lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled=False):
    p, mean, square, count = START.astype(np.float64), 0.0, 0.0, 0
    while True:
        count += 1
        g = gradient(p)
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        mean = betas[0] * mean + (1 - betas[0]) * g
        square = betas[1] * square + (1 - betas[1]) * g * g
        size = lr / (1 - betas[0] ** count)
        p = p - size * mean / (np.sqrt(square / (1 - betas[1] ** count)) + eps)
        yield p


OPTIMIZERS = {
    "sgd": (kiln.optim.SGD, {"lr": 0.01}, sgd),
    "momentum": (kiln.optim.SGD, {"lr": 0.01, "momentum": 0.9}, sgd),
    "nesterov": (kiln.optim.SGD, {
        "lr": 0.01, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1}, sgd),
    "adam": (kiln.optim.Adam, {"lr": 0.1}, adam),
    "adam_decay": (kiln.optim.Adam, {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.2}, adam),
    "adamw": (kiln.optim.AdamW, {"lr": 0.1, "weight_decay": 0.2},
              lambda **options: adam(decoupled=True, **options)),
}  # fmt: skip


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_are_their_formulae(connection, name, jitted):
    kind, options, reference = OPTIMIZERS[name]
    parameter = nn.Parameter(START)
    optimizer = kind([parameter], **options)
    target, scale = kiln.tensor(TARGET), kiln.tensor([1.0, 2.0, 3.0])

    def step():
        optimizer.zero_grad()
        ((parameter - target).square() * scale).sum().backward()
        optimizer.step()

    run = kiln.jit(step) if jitted else step
    for _, wanted in zip(range(10), reference(**options)):
        run()
        np.testing.assert_allclose(parameter.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_an_eager_step_is_one_program_with_its_loss(connection):
    parameter = nn.Parameter(START)
    optimizer = kiln.optim.Adam([parameter])
    parameter.realize()
    sent = []
    original = connection.run
    connection.run = lambda *args, **named: sent.append(1) or original(*args, **named)
    for _ in range(3):
        optimizer.zero_grad()
        loss = parameter.square().sum()
        loss.backward()
        optimizer.step()
        loss.item()
    assert len(sent) == 3


def test_an_optimizers_state_continues(connection):
    def run(steps, state=None, start=START):
        parameter = nn.Parameter(start)
        optimizer = kiln.optim.Adam([parameter], lr=0.1)
        if state is not None:
            optimizer.load_state_dict(state)
        for _ in range(steps):
            optimizer.zero_grad()
            (parameter - kiln.tensor(TARGET)).square().sum().backward()
            optimizer.step()
        return parameter.numpy(), optimizer.state_dict()

    whole, _ = run(6)
    half, state = run(3)
    np.testing.assert_allclose(run(3, state, half)[0], whole, rtol=1e-6)


def test_default_initialisation_is_pytorchs(connection):
    kiln.manual_seed(0)
    for layer, fan_in in ((nn.Linear(64, 200), 64), (nn.Conv2d(8, 64, 3), 72)):
        for parameter in (layer.weight, layer.bias):
            values = parameter.numpy()
            bound = 1 / math.sqrt(fan_in)
            assert np.abs(values).max() <= bound
            assert values.std() == pytest.approx(bound / math.sqrt(3), rel=0.25)
    values = nn.Embedding(100, 50).weight.numpy()
    assert values.mean() == pytest.approx(0, abs=0.05)
    assert values.std() == pytest.approx(1, rel=0.05)


def test_random_distributions(connection):
    kiln.manual_seed(1)
    uniform = kiln.rand(20000).numpy()
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.01
    normal = kiln.randn(20000).numpy()
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.03
    numbers = kiln.randint(-3, 4, (5000,)).numpy()
    assert set(np.unique(numbers)) == set(range(-3, 4))
    assert sorted(kiln.randperm(50).tolist()) == list(range(50))
    kiln.manual_seed(1)
    np.testing.assert_array_equal(kiln.rand(20000).numpy(), uniform)


def test_weights_survive_a_file(connection, tmp_path):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    kiln.save(model.state_dict(), tmp_path / "model.safetensors")
    other = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    other.load_state_dict(kiln.load(tmp_path / "model.safetensors"))
    x = kiln.ones(2, 4)
    np.testing.assert_array_equal(model.eval()(x).numpy(), other.eval()(x).numpy())


def python_path():
    return os.pathsep.join(
        path for path in (str(EXAMPLES.parent), os.environ.get("PYTHONPATH")) if path)


def run_example(kilnd, tmp_path, name, *arguments):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments], cwd=tmp_path, capture_output=True,
        text=True, timeout=600,
        env=dict(kilnd.environment(), PYTHONPATH=python_path()))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_digits_example_learns(kilnd, tmp_path):
    output = run_example(kilnd, tmp_path, "digits.py")
    accuracy = float(output.rsplit("test accuracy: ", 1)[1])
    assert accuracy >= 0.97
    assert (tmp_path / "digits-loss.png").stat().st_size > 1000


def write_idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(header + array.tobytes())


def test_the_mnist_example_reads_its_files_and_learns(kilnd, tmp_path):
    numbers = np.random.default_rng(0)
    labels = numbers.integers(0, 10, 1200).astype(np.uint8)
    images = (numbers.random((1200, 28, 28)) * 60).astype(np.uint8)
    for image, label in zip(images, labels):  # a bar whose position is the label
        image[:, 2 * label + 4 : 2 * label + 7] += 180
    for name, part in (("train", slice(200, None)), ("t10k", slice(200))):
        write_idx(tmp_path / f"{name}-images-idx3-ubyte", images[part])
        write_idx(tmp_path / f"{name}-labels-idx1-ubyte", labels[part])
    result = json.loads(run_example(
        kilnd, tmp_path, "mnist.py", "--data", str(tmp_path), "--batch", "50", "--epochs", "1",
        "--json"))
    assert result["steps"] == 20 and result["traces"] == 1
    assert result["loss_first"] > 1.5 and result["loss_last"] < result["loss_first"]


def test_the_shakespeare_example_learns_and_writes(kilnd, tmp_path):
    words = np.random.default_rng(0).choice(["to", "be", "or", "not", "that"], 3000)
    (tmp_path / "text").write_text(" ".join(words))
    result = json.loads(run_example(
        kilnd, tmp_path, "shakespeare.py", "--data", "text", "--layers", "2", "--heads", "2",
        "--width", "32", "--context", "16", "--batch", "16", "--dropout", "0.1", "--steps", "60",
        "--lr", "1e-2", "--sample", "40", "--prompt", "to be", "--save", "model.safetensors",
        "--json"))
    assert result["loss_last"] < 0.8 * result["loss_first"]
    assert result["validation_loss"] < 0.8 * result["loss_first"]
    assert result["traces"] == result["decode_traces"] == 1
    assert len(result["text"]) == 40
    assert len(kiln.load(tmp_path / "model.safetensors")) == 28


def test_the_resnet_example_learns(kilnd, tmp_path):
    result = json.loads(run_example(
        kilnd, tmp_path, "resnet.py", "--size", "8", "--batch", "8", "--classes", "4", "--steps",
        "12", "--json"))
    assert result["loss_last"] < result["loss_first"] and result["traces"] == 1
    assert result["parameters"] == 11_170_884 and result["kernels"] >= result["distinct_kernels"]


def write_tokenizer(folder):
    """Writes bytes and a few merges in the files' own spelling, where a space is Ġ (U+0120)."""
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "a")]
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    tokens = [chr(byte) for byte in shown] + [chr(256 + i) for i in range(256 - len(shown))]
    tokens += ["".join(pair) for pair in merges]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "merges.txt").write_text("\n".join(lines))
    return tokens


def test_byte_pairs_are_merged_in_their_order(tmp_path, monkeypatch):
    tokens = write_tokenizer(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from byte_pairs import BytePairs

    pairs = BytePairs(tmp_path)
    assert [tokens[i] for i in pairs.encode("the other a")] == [
        "the", "Ġ", "o", "the", "r", "Ġa"]
    for text in ("the  other a.\n\tthe", "naïve 数 it's 42_x"):
        assert pairs.decode(pairs.encode(text)) == text


def test_the_gpt2_example_learns_loads_and_writes(kilnd, tmp_path):
    from kiln.models import GPT, GPTConfig

    vocabulary = len(write_tokenizer(tmp_path))
    model = GPT(GPTConfig(vocabulary, 16, 1, 2, 16))
    kiln.connect(kilnd.address)
    kiln.save({name: value.T if ".c_" in name and value.ndim == 2 else value
               for name, value in model.state_dict().items()}, tmp_path / "model.safetensors")
    result = json.loads(run_example(
        kilnd, tmp_path, "gpt2.py", "--weights", ".", "--vocabulary", str(vocabulary),
        "--context", "16", "--layers", "1", "--heads", "2", "--width", "16", "--length", "16",
        "--lr", "1e-2", "--steps", "30", "--prompt", "the other", "--sample", "12", "--json"))
    assert result["loss_last"] < 0.9 * result["loss_first"]
    assert result["text"].startswith("the other") and len(result["text"]) > len("the other")


def test_the_mnist_example_says_what_to_do_without_a_network(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "mnist.py")], capture_output=True, text=True, timeout=GIVE_UP_SECONDS,
        env=dict(os.environ, XDG_CACHE_HOME=str(tmp_path), https_proxy="http://127.0.0.1:9",
                 PYTHONPATH=python_path()))
    assert done.returncode != 0 and "--data" in done.stderr and "Traceback" not in done.stderr
