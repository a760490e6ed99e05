"""Waiting for what another thread or process is about to do."""

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool]) -> bool:
    """True once `condition` holds, which is not asked again then; False if it does not within half a minute."""
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True
