"""Training on an OpenCL device, as a second kind of device, gives the CPU's losses."""

from collections.abc import Iterator

import numpy as np
import pytest

import kiln
from first_steps import assert_short_floats_work, losses
from kiln import nn
from kilnd_process import Kilnd, opencl_is_installed


@pytest.fixture(scope="module")
def both_kinds() -> Iterator[Kilnd]:
    """A daemon with this machine's CPU and all OpenCL devices."""
    if not opencl_is_installed():
        pytest.skip("no OpenCL here; pocl-opencl-icd makes the processor a device")
    with Kilnd(devices="cpu,opencl") as daemon:
        yield daemon


def convnet() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1),
                         nn.Linear(32, 10))


def test_training_follows_the_cpu(both_kinds):
    expected = losses(both_kinds.address, "cpu:0", convnet, (32, 1, 16, 16), 1e-3)
    assert expected[-1] < 0.8 * expected[0]
    got = losses(both_kinds.address, "opencl:0", convnet, (32, 1, 16, 16), 1e-3)
    np.testing.assert_allclose(got, expected, rtol=1e-4)


F = nn.functional
# Everyday sizes: with and without partial tiles, rows, long sums, windows.
LAYERS = {
    "matmul": (lambda a, b: a @ b, [(130, 257), (257, 190)]),
    "batches": (lambda a, b: a @ b, [(6, 70, 33), (6, 33, 90)]),
    "softmax": (lambda a: a.softmax(-1), [(50, 1000)]),
    "layer_norm": (lambda a, g, b: F.layer_norm(a, (768,), g, b), [(40, 768), (768,), (768,)]),
    "column_sums": (lambda a: (a * a).sum(0), [(3000, 70)]),
    "convolution": (lambda x, w: F.conv2d(x, w, stride=2, padding=1), [(16, 3, 33, 33), (64, 3, 4, 4)]),
    "transposed": (lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), [(4, 32, 14, 14), (32, 8, 4, 4)]),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [(2, 4, 100, 32)] * 3),
}


def results(address: str, device: str, name: str) -> list[np.ndarray]:
    """Returns a layer's result, and its gradients for a random upstream."""
    layer, shapes = LAYERS[name]
    random = np.random.default_rng(5)
    with kiln.connect(address, device=device):
        inputs = [kiln.tensor(random.standard_normal(shape, np.float32)).requires_grad_() for shape in shapes]
        result = layer(*inputs)
        (result * kiln.tensor(random.standard_normal(result.shape, np.float32))).sum().backward()
        return [result.numpy()] + [x.grad.numpy() for x in inputs]


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_everyday_sizes_equal_the_cpus(both_kinds, name):
    expected = results(both_kinds.address, "cpu:0", name)
    for got, want in zip(results(both_kinds.address, "opencl:0", name), expected):
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())


def test_short_floats_are_computed_in_float32(both_kinds):
    assert_short_floats_work(both_kinds.address, "opencl:0")


def test_long_sums_are_exact_enough(both_kinds):
    with kiln.connect(both_kinds.address, device="opencl:0"):
        for length in (1000, 16384, 262144):
            sums = kiln.full((32, length), 0.1).sum(-1).numpy()
            np.testing.assert_allclose(sums, np.float32(0.1) * length, rtol=1e-4)
        rows = np.random.default_rng(3).standard_normal((64, 1024), np.float32)
        x = kiln.tensor(rows)
        for _ in range(4):
            x = x.softmax(-1)
        assert abs(x.sum().item() - 64) < 1e-3
