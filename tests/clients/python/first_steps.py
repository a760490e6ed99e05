"""Losses of training on a device, for comparisons between devices."""

from collections.abc import Callable

import numpy as np

import kiln
from kiln import nn

STEPS = 10


def losses(address: str, device: str, network: Callable[[], nn.Module], images: tuple[int, ...], lr: float) -> list[float]:
    """Returns the losses of a classifier's first steps on random images, with dropout."""
    with kiln.connect(address, device=device):
        kiln.manual_seed(7)
        random = np.random.default_rng(7)
        x = kiln.tensor(random.standard_normal(images, np.float32))
        labels = kiln.tensor(random.integers(0, 10, images[0]))
        model = network()
        optimizer = kiln.optim.Adam(model.parameters(), lr=lr)

        @kiln.jit
        def step() -> kiln.Tensor:
            loss = nn.functional.cross_entropy(model(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return [step().item() for _ in range(STEPS)]


def losses_on_mesh(address: str, devices: list[str]) -> list[float]:
    """Returns the losses of a classifier with batches split over these devices."""
    with kiln.connect(address):
        kiln.manual_seed(7)
        random = np.random.default_rng(7)
        mesh = kiln.Mesh("data", devices)
        model = kiln.shard(nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.Linear(32, 10)), mesh)
        optimizer = kiln.optim.Adam(model.parameters(), lr=1e-2)

        @kiln.jit
        def step(x: kiln.Tensor, labels: kiln.Tensor) -> kiln.Tensor:
            loss = nn.functional.cross_entropy(model(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        batch = kiln.shard((kiln.tensor(random.standard_normal((18, 20), np.float32)),
                            kiln.tensor(random.integers(0, 10, 18))), mesh, ("data",))
        return [step(*batch).item() for _ in range(STEPS)]


def assert_devices_apart_train_together(address: str, kind: str) -> None:
    """Trains on two devices of this kind and the CPU, which cannot access each other's memory."""
    expected = losses_on_mesh(address, ["cpu:0"])
    assert expected[-1] < 0.9 * expected[0]
    for devices in ([f"{kind}:0", f"{kind}:1"], [f"{kind}:1", "cpu:0", f"{kind}:0"]):
        np.testing.assert_allclose(losses_on_mesh(address, devices), expected, rtol=1e-4)


def assert_short_floats_work(address: str, device: str) -> None:
    """Checks short floats on a device that computes them in float32."""
    with kiln.connect(address, device=device):
        assert (kiln.arange(5) * 2).tolist() == [0, 2, 4, 6, 8]
        x = kiln.tensor(np.arange(6, dtype=np.float16))
        assert (x + x).tolist() == [0, 2, 4, 6, 8, 10]
