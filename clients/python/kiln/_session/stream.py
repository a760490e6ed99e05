"""The ordered stream of operations to the daemon: sequence numbers, answers, and resumption.

Operations are numbered and kept until they are answered. After a lost connection a new stream
attaches to the same session, learns the last operation that the daemon has received, and sends the
rest again, so that each operation takes effect exactly once.
"""

import contextlib
import logging
import os
import queue
import random
import threading
import time
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence

import grpc

from kiln._basics import errors
from kiln._basics.errors import KilnError
from kiln._proto.kiln.v1 import error_pb2, session_pb2
from kiln._session import progress
from kiln._session.releases import Releases
from kiln._session.waiter import Waiter

# Operations in flight before sending waits for answers. Bounds the memory of a client that runs
# ahead of the daemon.
IN_FLIGHT_MAX = 4096
IN_FLIGHT_BYTES_MAX = 256 << 20
# Operations up to this size share a message.
TOGETHER_BYTES = 1024
# Dead objects are released in one operation per this many; before the next operation once they have
# this many bytes; before a barrier; or when the stream has been idle for this long. Small steps
# leave few bytes and are not slowed down; steps that leave this many take far longer than a
# release. After the daemon has refused an operation for lack of memory, they are released before
# each operation: their memory may be all that is missing.
RELEASE_BATCH = 128
RELEASE_BYTES = 1 << 20
IDLE_SECONDS = 0.1
REFUSED_FOR_ROOM = ("QUOTA_EXCEEDED", "OUT_OF_MEMORY")
# Between attempts to attach again.
FIRST_DELAY_SECONDS = 0.02
LONGEST_DELAY_SECONDS = 2.0
# The user is told of an outage longer than this.
QUIET_SECONDS = 5.0

_log = logging.getLogger("kiln")

_WHAT_TO_DO = ("call kiln.connect() again, create your models and tensors again, and load your "
               "last saved state")

Callback = Callable[[Any, Optional[KilnError]], None]
References = Sequence["weakref.ref[Any]"]


def from_status(status: Any) -> KilnError:
    """Returns the exception for a kiln.v1.Status."""
    reason, metadata = "", {}
    for detail in status.details:
        if detail.type_url.endswith("ErrorInfo"):
            info = error_pb2.ErrorInfo.FromString(detail.value)
            reason, metadata = info.reason, dict(info.metadata)
    return errors.make(status.code, status.message, reason, metadata)


def from_rpc(error: grpc.RpcError) -> KilnError:
    """Returns the exception for a failed call."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = error_pb2.Status.FromString(value)
            if status.code:
                return from_status(status)
    return errors.make(error.code().value[0], error.details() or "")


def in_session(error: KilnError) -> KilnError:
    """Returns the exception for a failure within a session, with advice if the session is lost."""
    if error.reason == "REVOKED":
        return errors.Unauthenticated(
            error.message + "; ask an admin of the daemon for a new token (`kiln user add NAME`). "
            "With that, " + _WHAT_TO_DO, error.reason, error.metadata)
    if error.reason != "SHUTTING_DOWN":
        return error
    return errors.Unavailable(
        "the daemon has stopped, so this session and its tensors are lost; when a daemon runs, "
        + _WHAT_TO_DO, error.reason, error.metadata)


class _Pending:
    __slots__ = ("callback", "missed", "request", "size", "through")

    def __init__(self, request: Any, callback: Optional[Callback], size: int,
                 through: int, missed: Optional[References]) -> None:
        self.request = request
        self.callback = callback
        self.size = size
        self.through = through  # bytes of all operations up to this one
        self.missed = missed  # the results that cancelling the run would lose; None: not a run


def _together(request: Any, following: List[Any]) -> Any:
    """Returns one message with all of these."""
    if not following:
        return request
    message = session_pb2.ConnectRequest(more=following)
    message.MergeFrom(request)
    return message


class _Reading(threading.local):
    now = False  # whether this thread sends a read next
    has_run: Optional["Stream"] = None  # the stream whose run is held back for the read


_reading = _Reading()


@contextlib.contextmanager
def before_a_read() -> Iterator[None]:
    """Within it, a run is sent together with the read that this thread sends next."""
    if _reading.now:
        yield
        return
    _reading.now = True
    try:
        yield
    finally:
        _reading.now = False
        if _reading.has_run is not None:  # an error came before the read
            _reading.has_run.wake()


class _Attachment:
    """One call of Connect."""

    def __init__(self) -> None:
        self.last_received: Optional[int] = None  # by the daemon; None until it has attached
        self.operations_max = 1  # in a message
        self.over = False
        self.wakeups: queue.SimpleQueue[None] = queue.SimpleQueue()


class Stream:
    """The Connect stream of one session. Thread-safe.

    One step sends an operation: its insertion into `_pending`. Numbers, sizes and what is still to
    be written follow from that, so a KeyboardInterrupt never leaves a half-sent operation.
    """

    def __init__(self, session_id: str, lease_seconds: float, last_sequence: int = 0) -> None:
        self.lease_seconds = lease_seconds
        self.releases = Releases()  # handles and programs: many in one release
        self.blobs = Releases()  # large, so each is released at once
        # Lists the first calls in progress; None until the session is open.
        self.ask: Optional[progress.Ask] = None
        self.takes_many_blobs = False  # several in one Upload; False until the daemon says so
        self._session_id = session_id
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._pending: Dict[int, _Pending] = {}  # in order of sequence
        self._waiting_for_room: Deque[Waiter] = deque()
        # For the highest operation that is answered (answers come in any order): its number, and
        # the bytes of all operations up to it.
        self._last_answered = last_sequence
        self._through_answered = 0
        self._acknowledged = last_sequence  # all up to this one are answered
        self._is_short = False  # whether the daemon has refused an operation for lack of memory
        self._detaching = False  # no operation may follow a Detach
        self._bytes_answered = 0
        self._attachment = _Attachment()
        self._failure: Optional[KilnError] = None
        self._closing: queue.SimpleQueue[None] = queue.SimpleQueue()

    # For users of the stream.

    def send(self, callback: Optional[Callback] = None, size: int = 256,
             missed: Optional[References] = None, wakes: bool = True, **operation: Any) -> None:
        """Sends an operation, for example send(run=Run(…)).

        `callback` is called with (Result, error) on the reader's thread. An interrupt may cancel a
        run if none of `missed`, the results lost then, is still referenced. Unless it `wakes` the
        stream, the operation is sent with the next one that does.
        """
        while True:
            with self._lock:
                self.check()
                if self._detaching:
                    raise errors.FailedPrecondition("this session is being detached")
                if not self._is_full():
                    if ("barrier" in operation or self._is_short
                            or self.releases.nbytes() >= RELEASE_BYTES):
                        self._release_dead()
                    self._detaching = "detach" in operation
                    self._enqueue(callback, size, operation, missed)
                    break
                room = Waiter()
                self._waiting_for_room.append(room)
            self.wait(room)
        if not wakes:
            return
        if _reading.now and "run" in operation:
            _reading.has_run = self
            return
        # If an interrupt comes before this, the operation is sent at the next idle moment.
        self.wake()

    def wait(self, waiter: Waiter) -> Any:
        """As waiter.wait(). A KeyboardInterrupt cancels the runs that it waits for."""
        try:
            return self.wait_telling(waiter)
        except KeyboardInterrupt:
            self.cancel_runs()
            raise

    def wait_telling(self, waiter: Waiter) -> Any:
        """As waiter.wait(), but shows progress if it takes long."""
        return progress.wait(waiter, self.ask)

    def cancel_runs(self, awaited: Any = None) -> None:
        """Cancels the most recent runs, back to the last run whose results are still referenced.

        References to `awaited` do not count, since its caller no longer waits for it. State that
        the runs would have updated keeps its value.
        """
        with self._lock:
            first = 0
            for sequence, pending in sorted(self._pending.items(), reverse=True):
                if pending.missed is None:
                    continue
                held = [reference() for reference in pending.missed]
                if any(result is not None and result is not awaited for result in held):
                    break
                first = sequence
            if first:
                self._cancel_from(first)
        self.wake()

    def cancel_all_runs(self) -> None:
        """Cancels all runs."""
        with self._lock:
            self.check()
            self._cancel_from(1)
        self.wake()

    def wake(self) -> None:
        """Sends everything that can be sent."""
        _reading.has_run = None
        self._attachment.wakeups.put(None)

    def last_sequence(self) -> int:
        """Returns the number of the last operation sent."""
        with self._lock:
            return self._last_sequence()

    def check(self) -> None:
        """Raises the reason if the session is lost, and FailedPrecondition in a forked child."""
        if os.getpid() != self._pid:
            raise errors.FailedPrecondition(
                "this connection was made before a fork; call kiln.connect() in the child process")
        if self._failure is not None:
            raise self._failure

    def detach(self, detach: Any, goes_on: Callable[[], None]) -> None:
        """Sends a Detach as the last operation and waits for its answer.

        If the daemon refuses it, `goes_on` is called on the reader's thread and the session stays
        usable, even if the wait was interrupted.
        """
        done = Waiter()

        def answered(result: Any, error: Optional[KilnError]) -> None:
            if result is not None and error is not None:
                with self._lock:
                    self._detaching = False
                goes_on()
            done.resolve(result, error)

        self.send(answered, detach=detach)
        done.wait()
        self._fail(errors.FailedPrecondition(
            f"this session was detached; kiln.attach({detach.name!r}) continues it"))

    def close(self) -> None:
        """Fails everything in flight. The stream itself ends when its channel is closed."""
        self._fail(errors.Cancelled("the connection was closed"))
        self._closing.put(None)

    # With the lock held.

    def _last_sequence(self) -> int:
        if not self._pending:
            return self._last_answered
        # The operation with the highest number may have been answered before others.
        return max(next(reversed(self._pending)), self._last_answered)

    def _bytes_sent(self) -> int:
        if not self._pending:
            return self._through_answered
        return max(next(reversed(self._pending.values())).through, self._through_answered)

    def _is_full(self) -> bool:
        return (len(self._pending) >= IN_FLIGHT_MAX
                or self._bytes_sent() - self._bytes_answered >= IN_FLIGHT_BYTES_MAX)

    def _enqueue(self, callback: Optional[Callback], size: int, operation: Dict[str, Any],
                 missed: Optional[References] = None) -> None:
        sequence = self._last_sequence() + 1
        request = session_pb2.ConnectRequest(
            sequence=sequence, acknowledged=self._acknowledged, **operation)
        self._pending[sequence] = _Pending(
            request, callback, size, self._bytes_sent() + size, missed)

    def _cancel_from(self, first: int) -> None:
        # Sent however full the stream is: this makes room.
        self._enqueue(None, 64, {"cancel": session_pb2.Cancel(first=first)})

    def _release_dead(self) -> None:
        # An interrupt in the middle causes some to be released twice, which has no effect: no name
        # is ever used again.
        if self._failure is not None or self._detaching:
            return
        counts = len(self.releases), len(self.blobs)
        names = {**self.releases.first(counts[0]), **self.blobs.first(counts[1])}
        for number in names.pop("program", ()):
            self._enqueue(
                None, 64, {"release_program": session_pb2.ReleaseProgram(program=number)})
        if names:
            self._enqueue(None, 64, {"release": session_pb2.Release(**names)})
        self.releases.drop(counts[0])
        self.blobs.drop(counts[1])

    # On gRPC's sending thread.

    def _requests(self, attachment: _Attachment) -> Iterator[Any]:
        yield session_pb2.ConnectRequest(
            attach=session_pb2.Attach(session_id=self._session_id, takes_more=True),
            acknowledged=self._acknowledged)
        sent: Optional[int] = None
        while not attachment.over:
            try:
                attachment.wakeups.get(timeout=IDLE_SECONDS)
                idle = False
            except queue.Empty:
                idle = True
            if self.blobs or len(self.releases) >= (1 if idle else RELEASE_BATCH):
                with self._lock:
                    self._release_dead()
            # A new stream continues after the last operation that the daemon has received, which it
            # reports when it has attached.
            if sent is None:
                sent = attachment.last_received
            while sent is not None and not attachment.over:
                # Needs no lock: a single look-up cannot see half an operation.
                pending = self._pending.get(sent + 1)
                if pending is None:
                    break
                following = self._following(pending, sent + 1, attachment.operations_max)
                yield _together(pending.request, following)
                sent += 1 + len(following)

    def _following(self, first: _Pending, sequence: int, operations_max: int) -> List[Any]:
        """Returns the small requests after `first` that are ready and may share its message."""
        if first.size > TOGETHER_BYTES:
            return []
        following: List[Any] = []
        while len(following) + 1 < operations_max:
            pending = self._pending.get(sequence + 1 + len(following))
            if pending is None or pending.size > TOGETHER_BYTES:
                break
            following.append(pending.request)
        return following

    # On the reader's thread.

    def run(self, connect: Any) -> None:
        """Attaches by the RPC `connect` and handles answers until the stream is closed or lost."""
        delay = FIRST_DELAY_SECONDS
        lost = time.monotonic()
        told = False
        while self._failure is None:
            attachment = self._attachment = _Attachment()
            error = self._read_until_lost(connect, attachment)
            # It had attached, so the lease was renewed and time starts anew.
            if attachment.last_received is not None:
                delay, lost, told = FIRST_DELAY_SECONDS, time.monotonic(), False
            away = time.monotonic() - lost
            failure = self._lasting(error, away > self.lease_seconds)
            if failure is not None:
                self._fail(failure)
                return
            if away > QUIET_SECONDS and not told:
                told = True
                _log.warning(
                    "the daemon does not answer (%s); trying again for up to %.0f s, and this "
                    "session continues when it does", error.details(), self.lease_seconds - away)
            try:
                # Jitter: clients that were cut off together must not all come back together.
                self._closing.get(timeout=delay * random.uniform(0.5, 1.0))
            except queue.Empty:
                delay = min(2 * delay, LONGEST_DELAY_SECONDS)

    def _lasting(self, error: grpc.RpcError, out_of_time: bool) -> Optional[KilnError]:
        """Returns the error that the session is lost by; None if another attempt may help."""
        why = in_session(from_rpc(error))
        if why.reason == "SESSION_LOST" and why.metadata.get("cause"):
            return errors.NotFound(f"{why.message}; {_WHAT_TO_DO}", why.reason, why.metadata)
        if why.reason == "SESSION_LOST":
            return errors.NotFound(
                "the daemon that had this session was killed, or stopped without a checkpoint of "
                "it, so its "
                "tensors and programs are lost; " + _WHAT_TO_DO, why.reason)
        if why.reason == "SESSION_CLOSED":
            return errors.NotFound(f"{why.message}; {_WHAT_TO_DO}", why.reason, why.metadata)
        if error.code() == grpc.StatusCode.NOT_FOUND:
            return errors.NotFound(
                "the daemon no longer has this session (it was closed, or its lease of "
                f"{self.lease_seconds:.0f} s ran out), so its tensors are lost; " + _WHAT_TO_DO,
                why.reason)
        if why.reason == "TAKEN_OVER":
            return errors.Aborted(
                "another process took over this session by its name", why.reason)
        # The daemon has answered, and would give the same answer again.
        if why.reason == "SHUTTING_DOWN" or error.code() in (
                grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNAUTHENTICATED,
                grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED):
            return why
        if out_of_time:
            return errors.Unavailable(
                f"the daemon has not answered for {self.lease_seconds:.0f} s, so this "
                f"session and its tensors are lost; when a daemon runs, {_WHAT_TO_DO}. The last "
                f"attempt: {error.details()}")
        return None

    def _read_until_lost(self, connect: Any, attachment: _Attachment) -> grpc.RpcError:
        error: grpc.RpcError = _Ended()
        try:
            for response in connect(self._requests(attachment)):
                if response.HasField("attached"):
                    attachment.operations_max = response.attached.most_operations
                    self.takes_many_blobs = response.attached.takes_many_blobs
                    attachment.last_received = response.attached.last_sequence
                    attachment.wakeups.put(None)
                else:
                    self._answer(response.result)
                    for result in response.more:
                        self._answer(result)
        except grpc.RpcError as lost:
            error = lost
        except ValueError:  # the channel is closed
            error = _Ended()
        attachment.over = True
        attachment.wakeups.put(None)
        return error

    def _answer(self, result: Any) -> None:
        sequence = result.sequence
        with self._lock:
            pending = self._pending.pop(sequence, None)
            if pending is None:  # repeated after a reconnection
                return
            if sequence > self._last_answered:
                self._last_answered, self._through_answered = sequence, pending.through
            self._bytes_answered += pending.size
            while (self._acknowledged < self._last_answered
                   and self._acknowledged + 1 not in self._pending):
                self._acknowledged += 1
            waiting = [] if self._is_full() else self._take_waiting()
        for room in waiting:
            room.resolve()
        error = in_session(from_status(result.error)) if result.HasField("error") else None
        if error is not None and error.reason in REFUSED_FOR_ROOM:
            self._is_short = True
        # An operation may get this error before the stream does; later calls must not succeed then.
        if error is not None and error.reason == "SHUTTING_DOWN":
            self._fail(error)
        if pending.callback is not None:
            pending.callback(result, error)

    def _take_waiting(self) -> List[Waiter]:
        waiting: List[Waiter] = []
        while self._waiting_for_room:
            waiting.append(self._waiting_for_room.popleft())
        return waiting

    def _fail(self, error: KilnError) -> None:
        with self._lock:
            if self._failure is None:
                self._failure = error
            pending, self._pending = self._pending, {}
            waiting = self._take_waiting()
        for room in waiting:
            room.resolve()
        # Without the lock, since callbacks may take locks of their own or send.
        for operation in pending.values():
            if operation.callback is not None:
                operation.callback(None, error)


class _Ended(grpc.RpcError):  # type: ignore[misc]
    """The daemon ended the stream without an error, as when the session was closed."""

    def code(self) -> Any:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "the daemon closed the connection"

    def trailing_metadata(self) -> Any:
        return ()
