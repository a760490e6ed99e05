"""What training on a device comes to, to be compared between devices."""

from collections.abc import Callable

import numpy as np

import kiln
from kiln import nn

STEPS = 10


def losses(address: str, device: str, network: Callable[[], nn.Module], images: tuple[int, ...], lr: float) -> list[float]:
    """Of a classifier's first steps on random images of this shape, ten classes and dropout among it all."""
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


def assert_short_floats_work(address: str, device: str) -> None:
    """Where the device computes them in float32."""
    with kiln.connect(address, device=device):
        assert (kiln.arange(5) * 2).tolist() == [0, 2, 4, 6, 8]
        x = kiln.tensor(np.arange(6, dtype=np.float16))
        assert (x + x).tolist() == [0, 2, 4, 6, 8, 10]
