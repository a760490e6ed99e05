"""Training on an OpenCL device follows the same training on the CPU: what clients see of a second kind of device."""

from collections.abc import Iterator

import numpy as np
import pytest

import kiln
from kiln import nn
from kilnd_process import Kilnd, opencl_is_installed

STEPS = 10


@pytest.fixture(scope="module")
def both_kinds() -> Iterator[Kilnd]:
    """A daemon with this machine's CPU and whatever OpenCL has."""
    if not opencl_is_installed():
        pytest.skip("no OpenCL here; pocl-opencl-icd makes the processor a device")
    with Kilnd(flags=["--devices=cpu,opencl"]) as daemon:
        yield daemon


def convnet() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1),
                         nn.Linear(32, 10))


def losses(address: str, device: str) -> list[float]:
    """Of a small convnet's first steps."""
    with kiln.connect(address, device=device):
        kiln.manual_seed(7)
        random = np.random.default_rng(7)
        images = kiln.tensor(random.standard_normal((32, 1, 16, 16), np.float32))
        labels = kiln.tensor(random.integers(0, 10, 32))
        model = convnet()
        optimizer = kiln.optim.Adam(model.parameters(), lr=1e-3)

        @kiln.jit
        def step() -> kiln.Tensor:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return [step().item() for _ in range(STEPS)]


def test_training_follows_the_cpu(both_kinds):
    expected = losses(both_kinds.address, "cpu:0")
    assert expected[-1] < 0.8 * expected[0]
    np.testing.assert_allclose(losses(both_kinds.address, "opencl:0"), expected, rtol=1e-4)


def test_short_floats_are_computed_in_float32(both_kinds):
    with kiln.connect(both_kinds.address, device="opencl:0"):
        assert (kiln.arange(5) * 2).tolist() == [0, 2, 4, 6, 8]
        x = kiln.tensor(np.arange(6, dtype=np.float16))
        assert (x + x).tolist() == [0, 2, 4, 6, 8, 10]


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
