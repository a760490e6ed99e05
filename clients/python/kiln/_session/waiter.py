"""Waits for other threads, and runs work on them.

Python raises KeyboardInterrupt in the main thread, between any two of its instructions. gRPC does
not survive that in the middle of its own code: one of its locks may stay taken. So this package
calls gRPC on other threads only, and the user's threads wait here. State that they change before
and after must be right wherever an exception interrupts them: one step commits, and everything else
follows from it.
"""

import _thread
import threading
import time
from typing import Any, Callable, Optional, TypeVar

_T = TypeVar("_T")


class Waiter:
    """A result that one thread waits for and another one provides."""

    __slots__ = ("_error", "_lock", "_result")

    def __init__(self) -> None:
        self._lock = threading.Lock()  # an Event would run Python code while it takes its lock
        self._lock.acquire()
        self._result: Any = None
        self._error: Optional[BaseException] = None

    def resolve(self, result: Any = None, error: Optional[BaseException] = None) -> None:
        """Sets the result and wakes the waiting thread. Call once."""
        self._result, self._error = result, error
        self._lock.release()

    def wait(self) -> Any:
        """Waits; returns the result or raises the error."""
        self._lock.acquire()
        return self.result()

    def result(self) -> Any:
        """Returns the result or raises the error. Requires: wait_for has returned True."""
        if self._error is not None:
            raise self._error
        return self._result

    def wait_for(self, seconds: float) -> bool:
        """Waits at most this long; returns whether the result came."""
        return self._lock.acquire(timeout=max(0.0, seconds))


class Work:
    """The state of work that one thread does for another."""

    __slots__ = ("abandoned", "went_on")

    def __init__(self) -> None:
        self.abandoned = False  # the caller no longer waits
        self.went_on = time.monotonic()  # the time of the last progress


def in_thread(function: Callable[[Work], _T], wait: Callable[[Waiter], Any] = Waiter.wait) -> _T:
    """Runs function(Work()) on a new thread and waits for it with `wait`.

    A KeyboardInterrupt ends the waiting at once; the function can see it in `Work.abandoned`.
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
        _thread.start_new_thread(run, ())  # Thread.start would wait in Python code
    except RuntimeError:  # the interpreter is exiting, and no more threads can be started
        run()
    try:
        return wait(waiter)  # type: ignore[no-any-return]
    except BaseException:
        work.abandoned = True
        raise
