"""The ordered stream of operations to the daemon: sequence numbers, answers, and resumption.

Operations are numbered and remembered until they are answered. After a lost connection a new
stream attaches to the same session, hears how far the daemon has received, and sends the rest
again, so that each operation takes effect exactly once.
"""

import os
import queue
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional

import grpc

from kiln import _errors
from kiln._errors import KilnError
from kiln._proto.kiln.v1 import error_pb2, session_pb2

# Operations in flight before sending waits for answers: bounds the memory of a client that runs
# ahead of the daemon.
MAX_IN_FLIGHT = 4096
MAX_BYTES_IN_FLIGHT = 256 << 20
# Dead handles are released in one operation per this many, or when the stream has been idle for
# this long.
RELEASE_BATCH = 128
IDLE_SECONDS = 0.1

_WHAT_TO_DO = ("call kiln.connect() again, make what holds tensors anew and load the last "
               "checkpoint")

Callback = Callable[[Any, Optional[KilnError]], None]


def from_status(status: Any) -> KilnError:
    """The exception for a kiln.v1.Status."""
    reason, metadata = "", {}
    for detail in status.details:
        if detail.type_url.endswith("ErrorInfo"):
            info = error_pb2.ErrorInfo.FromString(detail.value)
            reason, metadata = info.reason, dict(info.metadata)
    return _errors.make(status.code, status.message, reason, metadata)


def from_rpc(error: grpc.RpcError) -> KilnError:
    """The exception for a failed call."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = error_pb2.Status.FromString(value)
            if status.code:
                return from_status(status)
    return _errors.make(error.code().value[0], error.details() or "")


class Waiter:
    """The answer to one operation, for which a thread waits."""

    __slots__ = ("_error", "_lock", "_result")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._result: Any = None
        self._error: Optional[KilnError] = None

    def resolve(self, result: Any, error: Optional[KilnError]) -> None:
        """Wakes the thread that waits."""
        self._result, self._error = result, error
        self._lock.release()

    def wait(self) -> Any:
        """The Result message; raises the operation's error."""
        self._lock.acquire()
        if self._error is not None:
            raise self._error
        return self._result


class _Pending:
    __slots__ = ("callback", "request", "size")

    def __init__(self, request: Any, callback: Optional[Callback], size: int) -> None:
        self.request = request
        self.callback = callback
        self.size = size


class Stream:
    """One session's Connect stream. Thread-safe."""

    def __init__(self, connect: Any, session_id: str, lease_seconds: float) -> None:
        self._connect = connect  # the RPC
        self._session_id = session_id
        self._lease_seconds = lease_seconds
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._next_sequence = 1
        self._pending: Dict[int, _Pending] = {}  # in order of sequence
        self._bytes_in_flight = 0
        # Handles of Python objects that died. Appended from __del__, which may run anywhere, even
        # in a thread that holds the lock; so nothing there may lock.
        self._dead: Deque[int] = deque()
        self._dead_programs: Deque[int] = deque()
        # Of the live call; None while detached.
        self._outgoing: Optional[queue.SimpleQueue[Any]] = None
        self._call: Any = None
        self._failure: Optional[KilnError] = None
        self._closed = False
        self._reader = threading.Thread(target=self._run, name="kiln-reader", daemon=True)
        self._attached = threading.Event()
        self._reader.start()

    # For users of the stream.

    def send(self, callback: Optional[Callback] = None, size: int = 256, **operation: Any) -> int:
        """Sends an operation, for example send(run=Run(…)). Returns its sequence number.

        `callback` is called with (Result, error) on the reader's thread.
        """
        if os.getpid() != self._pid:
            raise _errors.FailedPrecondition(
                "this connection was made before a fork; call kiln.connect() in the child process")
        with self._lock:
            while self._is_full():
                self._check()
                self._room.wait()
            self._check()
            if len(self._dead) >= RELEASE_BATCH:
                self._release_dead()
            return self._enqueue(callback, size, operation)

    def release(self, handle: int) -> None:
        """Releases a handle some time soon. Never blocks; safe in __del__."""
        self._dead.append(handle)

    def release_program(self, number: int) -> None:
        """Releases a program some time soon. Never blocks; safe in __del__."""
        self._dead_programs.append(number)

    def last_sequence(self) -> int:
        """The number of the last operation sent."""
        with self._lock:
            return self._next_sequence - 1

    def close(self) -> None:
        """Ends the stream; what is in flight fails."""
        with self._lock:
            self._closed = True
            if self._outgoing is not None:
                self._outgoing.put(None)
            call = self._call
        if call is not None:
            call.cancel()
        self._fail(_errors.Cancelled("the connection was closed"))

    # With the lock held.

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _is_full(self) -> bool:
        return len(self._pending) >= MAX_IN_FLIGHT or self._bytes_in_flight >= MAX_BYTES_IN_FLIGHT

    def _enqueue(self, callback: Optional[Callback], size: int, operation: Dict[str, Any]) -> int:
        sequence = self._next_sequence
        self._next_sequence = sequence + 1
        acknowledged = next(iter(self._pending)) - 1 if self._pending else sequence - 1
        request = session_pb2.ConnectRequest(
            sequence=sequence, acknowledged=acknowledged, **operation)
        self._pending[sequence] = _Pending(request, callback, size)
        self._bytes_in_flight += size
        if self._outgoing is not None:
            self._outgoing.put(request)
        return sequence

    def _release_dead(self) -> None:
        handles: List[int] = []
        while self._dead:
            handles.append(self._dead.popleft())
        if handles:
            self._enqueue(None, 64, {"release": session_pb2.Release(handles=handles)})
        while self._dead_programs:
            number = self._dead_programs.popleft()
            self._enqueue(
                None, 64, {"release_program": session_pb2.ReleaseProgram(program=number)})

    # On gRPC's sending thread.

    def _requests(self, outgoing: "queue.SimpleQueue[Any]") -> Iterator[Any]:
        yield session_pb2.ConnectRequest(attach=session_pb2.Attach(session_id=self._session_id))
        while True:
            try:
                request = outgoing.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._dead or self._dead_programs:
                    with self._lock:
                        if self._outgoing is outgoing:
                            self._release_dead()
                continue
            if request is None:
                return
            yield request

    # On the reader's thread.

    def _run(self) -> None:
        delay = 0.02
        deadline = time.monotonic() + self._lease_seconds
        while not self._closed:
            error = self._read_until_lost()
            if self._closed:
                return
            if self._attached.is_set():
                self._attached.clear()
                delay, deadline = 0.02, time.monotonic() + self._lease_seconds
            if error.code() == grpc.StatusCode.NOT_FOUND:
                self._fail(_errors.NotFound(
                    "the daemon does not know this session any more (its lease ran out, or the "
                    "daemon was restarted), so its tensors are lost; " + _WHAT_TO_DO))
                return
            lasting = error.code() in (
                grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNAUTHENTICATED,
                grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED)
            if lasting:
                self._fail(from_rpc(error))
                return
            if time.monotonic() > deadline:
                self._fail(_errors.Unavailable(
                    f"the daemon has not answered for {self._lease_seconds:.0f} s, so this "
                    f"session and its tensors are lost; once one runs, {_WHAT_TO_DO}. The last "
                    f"attempt: {error.details()}"))
                return
            time.sleep(delay)
            delay = min(2 * delay, 1.0)

    def _read_until_lost(self) -> Any:
        outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
        call = self._connect(self._requests(outgoing))
        self._call = call
        try:
            for response in call:
                if response.HasField("attached"):
                    self._resume(outgoing, response.attached.last_sequence)
                else:
                    self._answer(response.result)
            error = _Ended()
        except grpc.RpcError as lost:
            error = lost
        with self._lock:
            self._outgoing = None
        outgoing.put(None)
        return error

    def _resume(self, outgoing: "queue.SimpleQueue[Any]", last_sequence: int) -> None:
        with self._lock:
            for sequence, pending in self._pending.items():
                if sequence > last_sequence:
                    outgoing.put(pending.request)
            self._outgoing = outgoing
        self._attached.set()

    def _answer(self, result: Any) -> None:
        with self._lock:
            pending = self._pending.pop(result.sequence, None)
            if pending is None:  # repeated after a reconnection
                return
            self._bytes_in_flight -= pending.size
            self._room.notify()
        if pending.callback is not None:
            error = from_status(result.error) if result.HasField("error") else None
            pending.callback(result, error)

    def _fail(self, error: KilnError) -> None:
        with self._lock:
            if self._failure is None:
                self._failure = error
            pending, self._pending = self._pending, {}
            self._outgoing = None
            self._room.notify_all()
        for operation in pending.values():
            if operation.callback is not None:
                operation.callback(None, error)


class _Ended(grpc.RpcError):  # type: ignore[misc]
    """The daemon ended the stream without an error, as it does when it stops."""

    def code(self) -> Any:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "the daemon ended the connection"

    def trailing_metadata(self) -> Any:
        return ()
