"""Waiting for what other threads do, and having work done by them.

Python raises KeyboardInterrupt in the main thread, between any two of its instructions. gRPC does
not survive that in the middle of its own code, where a lock then stays taken; so this package calls
gRPC on other threads only, and the user's threads wait here. What they change before and after must
be right wherever an exception ends it: one step commits, and everything else follows from it.
"""

import _thread
import threading
import time
from typing import Any, Callable, Optional, TypeVar

_T = TypeVar("_T")


class Waiter:
    """What one thread waits for and another one brings."""

    __slots__ = ("_error", "_lock", "_result")

    def __init__(self) -> None:
        self._lock = threading.Lock()  # an Event would run Python code while it takes its lock
        self._lock.acquire()
        self._result: Any = None
        self._error: Optional[BaseException] = None

    def resolve(self, result: Any = None, error: Optional[BaseException] = None) -> None:
        """Wakes the thread that waits. Once."""
        self._result, self._error = result, error
        self._lock.release()

    def wait(self) -> Any:
        """The result; raises the error."""
        self._lock.acquire()
        return self.result()

    def result(self) -> Any:
        """The same, once it has come."""
        if self._error is not None:
            raise self._error
        return self._result

    def wait_for(self, seconds: float) -> bool:
        """Whether it came within this time."""
        return self._lock.acquire(timeout=max(0.0, seconds))


class Work:
    """What a thread of its own does for one that waits."""

    __slots__ = ("abandoned", "went_on")

    def __init__(self) -> None:
        self.abandoned = False  # nobody waits any more
        self.went_on = time.monotonic()  # when something has last come through


def in_thread(function: Callable[[Work], _T], wait: Callable[[Waiter], Any] = Waiter.wait) -> _T:
    """function(Work()), done by a thread of its own, for which `wait` waits.

    A KeyboardInterrupt ends the waiting at once; the function sees it by `Work.abandoned`.
    """
    work, waiter = Work(), Waiter()

    def run() -> None:
        try:
            result = function(work)
        except BaseException as error:
            waiter.resolve(error=error)
        else:
            waiter.resolve(result)

    try:
        _thread.start_new_thread(run, ())  # Thread.start waits in Python code
    except RuntimeError:  # the interpreter ends, and there are no more threads
        run()
    try:
        return wait(waiter)  # type: ignore[no-any-return]
    except BaseException:
        work.abandoned = True
        raise
