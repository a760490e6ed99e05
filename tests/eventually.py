<<<<<<< HEAD
"""Waits for effects of other threads or processes."""
=======
"""Waits for an event in another thread or process."""
>>>>>>> plain-p4

import time
from collections.abc import Callable

<<<<<<< HEAD
# Reached only if a test fails: long enough for a busy machine.
=======
# Reached only by failing tests: long enough for a busy machine.
>>>>>>> plain-p4
GIVE_UP_SECONDS = 120


def eventually(condition: Callable[[], bool]) -> bool:
<<<<<<< HEAD
    """Returns True once `condition` holds (it is not called again then), False if it does not within GIVE_UP_SECONDS."""
=======
    """Returns True once `condition` holds, and does not call it again; False if it does not hold within GIVE_UP_SECONDS."""
>>>>>>> plain-p4
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True
