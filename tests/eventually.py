"""Waiting for what another thread or process is about to do."""

import time
from collections.abc import Callable

# Reached only where a test fails: long enough for a machine that has much else to do.
GIVE_UP_SECONDS = 120


def eventually(condition: Callable[[], bool]) -> bool:
    """True once `condition` holds, which is not asked again then; False if it does not within GIVE_UP_SECONDS."""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True
