"""What programs tell of their checks: read along with the next value, at the latest at a bound."""

import threading
import weakref
from collections import deque
from typing import Any, Callable, Deque, List, NamedTuple, Optional

from kiln._basics.errors import KilnError
from kiln._proto.kiln.v1 import session_pb2
from kiln._session.handles import Buffer
from kiln._session.stream import Stream
from kiln._session.waiter import Waiter

# The error in what a program has told, as bytes; None: all is well.
Judge = Callable[[bytes], Optional[KilnError]]

# Runs whose checks have not been read. When there are more, all are read, and nobody waits for it.
UNREAD_MAX = 64
# Errors that nobody has heard of: the first ones.
_ERRORS_KEPT = 16


class _Unread(NamedTuple):
    """What a run tells, on the device."""

    buffer: Buffer
    judge: Judge


class Verdicts:
    """The checks of a connection's runs. Thread-safe.

    An interrupt at any place has a check read twice at most, and none forgotten.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._lock = threading.Lock()  # of those who send reads
        self._unread: Deque[_Unread] = deque()
        self._asked: Deque[Waiter] = deque()  # reads that were sent, oldest first
        self._errors: List[KilnError] = []

    def expect(self, buffer: Buffer, judge: Judge) -> None:
        """Takes note of what a run will tell."""
        self._unread.append(_Unread(buffer, judge))
        if len(self._unread) > UNREAD_MAX:
            self.ask()
            self._stream.wake()
            self._forget_answered()

    def ask(self) -> None:
        """Has all of it read, in the message that goes off next."""
        if not self._unread:
            return
        with self._lock:
            while self._unread:
                buffer, judge = self._unread[0]
                answered = Waiter()
                self._stream.send(self._answer(judge, answered), wakes=False,
                                  read=session_pb2.Read(handle=buffer.handle))
                self._asked.append(answered)
                self._unread.popleft()

    def raise_error(self) -> None:
        """Waits for what was asked for, and raises the first error since the last call."""
        while self._asked:
            try:
                answered = self._asked.popleft()
            except IndexError:  # another thread waits for it
                break
            answered.wait()
        if self._errors:
            errors, self._errors = self._errors, []
            raise errors[0]

    def _answer(self, judge: Judge, answered: Waiter) -> Any:
        weak = weakref.ref(self)

        def finished(result: Any, error: Optional[KilnError]) -> None:
            # A run that failed has told nothing, and says why by its other results.
            wrong = judge(result.data) if error is None else None
            alive = weak()
            if wrong is not None and alive is not None and len(alive._errors) < _ERRORS_KEPT:
                alive._errors.append(wrong)
            answered.resolve()

        return finished

    def _forget_answered(self) -> None:
        while self._asked:
            try:
                answered = self._asked.popleft()
            except IndexError:  # another thread waits for it
                return
            if not answered.wait_for(0):
                self._asked.appendleft(answered)
                return
