"""Training on interpreted PTX follows the CPU's: the daemon opens the stand-in for CUDA's library, so no GPU is needed."""

from collections.abc import Iterator

import numpy as np
import pytest

import kiln
from kiln import nn
from kilnd_process import Kilnd, build_folder

STEPS = 10


@pytest.fixture(scope="module")
def both_kinds() -> Iterator[Kilnd]:
    """A daemon with this machine's CPU and a GPU that is an interpreter."""
    stand_in = build_folder() / "tests" / "stand_ins" / "cuda"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(stand_in))
        with Kilnd(flags=["--devices=cpu,cuda"]) as daemon:
            yield daemon


def losses(address: str, device: str) -> list[float]:
    """Of a small classifier's first steps."""
    with kiln.connect(address, device=device):
        kiln.manual_seed(7)
        random = np.random.default_rng(7)
        images = kiln.tensor(random.standard_normal((16, 1, 8, 8), np.float32))
        labels = kiln.tensor(random.integers(0, 10, 16))
        model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 32),
                              nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 10))
        optimizer = kiln.optim.Adam(model.parameters(), lr=1e-2)

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
    np.testing.assert_allclose(losses(both_kinds.address, "cuda:0"), expected, rtol=1e-4)


def test_short_floats_are_computed_in_float32(both_kinds):
    with kiln.connect(both_kinds.address, device="cuda:0"):
        assert (kiln.arange(5) * 2).tolist() == [0, 2, 4, 6, 8]
        x = kiln.tensor(np.arange(6, dtype=np.float16))
        assert (x + x).tolist() == [0, 2, 4, 6, 8, 10]
