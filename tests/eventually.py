"""Waits for an event in another thread or process."""

import time
from collections.abc import Callable

# Reached only by failing tests: long enough for a busy machine.
GIVE_UP_SECONDS = 120


def eventually(condition: Callable[[], bool]) -> bool:
    """Returns True once `condition` holds, and does not call it again; False if it does not hold within GIVE_UP_SECONDS."""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True
