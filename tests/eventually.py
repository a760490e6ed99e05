"""Waits for effects of other threads or processes."""

import time
from collections.abc import Callable

# Reached only if a test fails: long enough for a busy machine.
GIVE_UP_SECONDS = 120


def eventually(condition: Callable[[], bool]) -> bool:
    """Returns True once `condition` holds (it is not called again then), False if it does not within GIVE_UP_SECONDS."""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True
