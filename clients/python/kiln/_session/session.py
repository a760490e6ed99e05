"""Opens a session with a daemon, and closes it with the process at the latest."""

import _thread
import atexit
import contextlib
import getpass
import os
import queue
import socket
import sys
import threading
import time
import weakref
from typing import Any, Dict

import grpc

from kiln._basics.errors import KilnError
from kiln._basics.version import __version__
from kiln._ops.table import OP_SET_VERSION
from kiln._proto.kiln.v1 import program_pb2, session_pb2
from kiln._session.address import is_local
from kiln._session.blobs import Blobs
from kiln._session.login import Login, open_channel
from kiln._session.rpc import Stub
from kiln._session.stream import Stream, from_rpc
from kiln._session.waiter import Waiter

_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A connection that was lost without notice, as when a laptop slept, is detected within 30
    # seconds.
    ("grpc.keepalive_time_ms", 20000),
    ("grpc.keepalive_timeout_ms", 10000),
    ("grpc.min_reconnect_backoff_ms", 2000),  # the limit of one attempt
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
_DEFAULT_LEASE_SECONDS = 60
_DEFAULT_CHUNK_BYTES = 1 << 20
_RESTORE_PAUSE_SECONDS = 0.05
_ASK_SECONDS = 2.0  # for a daemon to list its first calls
_END_SECONDS = 2.0  # for a daemon to answer; after that the lease ends the session

# Sessions to close at the exit of the process.
_open: Dict[int, "Session"] = {}


class Session:
    """An open session. One thread opens and closes it, another one reads its stream."""

    # Set by the session's thread before it is open.
    channel: Any
    id: str
    opened: Any  # the OpenSessionResponse
    devices: Stub
    programs: Stub
    stream: Stream
    blobs: Blobs

    def __init__(self, target: str, device: str, lease_seconds: int, timeout: float,
                 login: Login, batch: bool = False, detached_name: str = "",
                 snapshot_seconds: int = 0) -> None:
        self.target = target
        # The name of the detached session to take over, if any; and the answer of the takeover.
        self._detached_name = detached_name
        self.attached: Any = None
        # Whether the daemon keeps the session when this process leaves it: a session taken over
        # stays until this process has fetched its tensors.
        self.stays = bool(detached_name)
        self._login = login
        self._pid = os.getpid()
        self._request = session_pb2.OpenSessionRequest(
            lease_seconds=lease_seconds, device=device, snapshot_seconds=snapshot_seconds,
            priority=session_pb2.BATCH if batch else session_pb2.INTERACTIVE)
        self._timeout = timeout
        self._is_open, self._has_ended = Waiter(), Waiter()
        self._to_end: queue.SimpleQueue[Any] = queue.SimpleQueue()
        _open[id(self)] = self
        try:
            _thread.start_new_thread(self._run, ())
            self._is_open.wait()
        except BaseException:
            # The session may still open after an interrupt, and must be closed then.
            self.begin_to_end()
            raise

    def end_with(self, owner: Any) -> None:
        """Closes the session when `owner` dies. No Python code runs then, as in Releases."""
        self._owner = weakref.ref(owner, self._to_end.put)

    def begin_to_end(self) -> None:
        """Starts closing the session and does not wait."""
        self._to_end.put(None)

    def end(self) -> None:
        """Closes the session. A forked child leaves it open: it belongs to the parent."""
        if os.getpid() == self._pid:
            self.begin_to_end()
            self._wait_for_end(_END_SECONDS)

    def _wait_for_end(self, seconds: float) -> None:
        if self._has_ended.wait_for(seconds):
            self._has_ended.resolve()  # for other threads that wait

    # On the session's own thread.

    def _run(self) -> None:
        try:
            try:
                self.channel = open_channel(self.target, self._login, _CHANNEL_OPTIONS)
            except KilnError as error:
                self._is_open.resolve(error=error)
                return
            service = Stub(self.channel, "kiln.v1.SessionService")
            self.devices = Stub(self.channel, "kiln.v1.DeviceService")
            self.programs = Stub(self.channel, "kiln.v1.ProgramService")
            if self._opens(service):
                self._to_end.get()
                self.stream.close()
                if not self.stays:
                    with contextlib.suppress(grpc.RpcError):
                        service.CloseSession(
                            session_pb2.CloseSessionRequest(session_id=self.id),
                            timeout=_END_SECONDS)
            self.channel.close()
        finally:
            _open.pop(id(self), None)
            self._has_ended.resolve()

    def _opens(self, service: Any) -> bool:
        try:
            if self._detached_name:
                self.attached = self._take_over(service)
                self.opened = self.attached.session
            else:
                self._request.client.CopyFrom(_client_info())
                self.opened = service.OpenSession(self._request, timeout=self._timeout)
            self.id = self.opened.session_id
            self.stream = Stream(
                self.id, self.opened.lease_seconds or _DEFAULT_LEASE_SECONDS,
                self.attached.last_sequence if self.attached else 0)
            first_calls = program_pb2.ListFirstCallsRequest(session_id=self.id)
            programs = self.programs
            self.stream.ask = lambda: programs.ListFirstCalls(
                first_calls, timeout=_ASK_SECONDS).first_calls
            self.blobs = Blobs(self.channel, self.id, self.chunk_bytes, is_local(self.target),
                               self.stream)
            threading.Thread(
                target=self._read, args=(service.Connect,), name="kiln-reader", daemon=True).start()
        except grpc.RpcError as error:
            self._is_open.resolve(error=from_rpc(error))
            return False
        except BaseException as error:
            self._is_open.resolve(error=error)
            raise
        self._is_open.resolve()
        return True

    def _take_over(self, service: Any) -> Any:
        request = session_pb2.AttachSessionRequest(name=self._detached_name)
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return service.AttachSession(request, timeout=self._timeout)
            except grpc.RpcError as error:
                # A restarted daemon restores its sessions one after the other.
                is_restarting = from_rpc(error).reason == "RESTARTING"
                nobody_waits = not self._to_end.empty()
                if not is_restarting or nobody_waits or time.monotonic() > deadline:
                    raise
            time.sleep(_RESTORE_PAUSE_SECONDS)

    def _read(self, connect: Any) -> None:
        self.stream.run(connect)
        self.begin_to_end()  # closes the session if it was lost

    @property
    def chunk_bytes(self) -> int:
        """Returns the size of the chunks that the daemon wants for large values."""
        return int(self.opened.chunk_bytes) or _DEFAULT_CHUNK_BYTES


def _client_info() -> Any:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    script = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    return session_pb2.ClientInfo(
        name="kiln-python", version=__version__, op_set_version=OP_SET_VERSION,
        description=f"{user}@{socket.gethostname()} {script}")


@atexit.register
def _end_all() -> None:
    deadline = time.monotonic() + _END_SECONDS
    own = [session for session in list(_open.values()) if session._pid == os.getpid()]
    for session in own:
        session.begin_to_end()
    # First all begin to close, so that they do so concurrently.
    for session in own:
        session._wait_for_end(deadline - time.monotonic())
