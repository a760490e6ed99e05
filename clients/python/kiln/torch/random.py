"""torch.random: the default generator."""

import contextlib
from typing import Any, Iterator

from kiln.torch._creation import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Restores the state of the default generator afterwards."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


__all__ = [
    "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip
