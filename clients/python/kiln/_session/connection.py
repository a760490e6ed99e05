"""A session with a daemon: buffers, programs, uploads and downloads."""

import contextlib
import itertools
import os
import sys
import threading
import warnings
import weakref
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from kiln._basics import errors as _errors
from kiln._basics.bindings import Bindings
from kiln._basics.dtypes import BY_CODE, DType, float32
from kiln._basics.errors import KilnError
from kiln._placement.placement import Placement, placed
from kiln._proto.kiln.v1 import device_pb2, program_pb2, session_pb2
from kiln._session.address import candidates
from kiln._session.handles import Buffer, Device, Program, ProgramInfo, device_of, info_of
from kiln._session.login import Login, find, with_elsewhere
from kiln._session.own_daemon import log_file, one_at_a_time, start as start_daemon
from kiln._session.placements import from_wire, to_wire
from kiln._session.refused import explain
from kiln._session.rpc import call
from kiln._session.session import Session
from kiln._session.socket_trust import UNTRUSTED_SOCKET
from kiln._session.stream import Stream
from kiln._session.verdicts import Verdicts
from kiln._session.waiter import Waiter

_PROGRAMS_KEPT = 512
_ERRORS_KEPT = 64
# The first words of the daemon's error for an operation that failed because of an earlier error.
_OF_AN_INPUT = "an input failed: "


class Connection:
    """A session with a daemon. Thread-safe. `kiln.connect` makes one.

    >>> connection = kiln.default_connection()
    >>> _ = kiln.ones(2).realize()
    >>> connection.synchronize()
    """

    _kiln_watched = ()

    def __init__(self, target: str, device: str = "", lease_seconds: int = 0,
                 timeout: float = 30.0, login: Optional[Login] = None,
                 batch: bool = False, detached_name: str = "", snapshot_seconds: int = 0) -> None:
        self.target = target
        self._session = session = Session(
            target, device, lease_seconds, timeout, login or Login(), batch, detached_name,
            snapshot_seconds)
        session.end_with(self)
        self.name: str = session.opened.name
        self.device: str = session.opened.device
        self.daemon_version: str = session.opened.daemon_version
        self.stream: Stream = session.stream
        self.verdicts = Verdicts()
        attached = session.attached or session_pb2.AttachSessionResponse()
        self._handles = itertools.count(1 + max(attached.last_handle, attached.last_program))
        self._lock = threading.Lock()
        # Weak, so that a program is released with its last user. `_recent` holds the latest ones
        # for callers that make the same graph again, as eager code does in a loop.
        self._programs: weakref.WeakValueDictionary[bytes, Program] = (
            weakref.WeakValueDictionary())
        self._recent: OrderedDict[bytes, Program] = OrderedDict()
        self.plans: Any = None  # of eager code; set by `kiln._graph.plans`
        # Errors of operations that changed state, raised by the next run or barrier; and other
        # errors, raised by a barrier.
        self._unreported: List[KilnError] = []
        self._unseen: List[KilnError] = []
        self._known_devices: Set[str] = {self.device}
        self._has_several_devices: Optional[bool] = None  # None: the daemon was not asked yet
        self._attached = {
            tensor.name: self._attached_buffer(tensor) for tensor in attached.tensors}

    def _attached_buffer(self, tensor: Any) -> Buffer:
        placement = from_wire(tensor.placement, self.device)
        # A failed value has no dtype; reading it raises its error.
        return Buffer(self, tensor.handle, BY_CODE.get(tensor.dtype, float32), tuple(tensor.shape),
                      placement, placement is not None)

    def __repr__(self) -> str:
        return f"<kiln.Connection {self.target}, session {self.name}, device {self.device}>"

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the session. Its tensors are lost."""
        self._session.end()

    def detach(self, name: str, keep_seconds: float = 3600,
               tensors: Optional[Dict[str, Any]] = None) -> None:
        """Leaves the session and its `tensors` to the process that calls `kiln.attach(name)`.

        Operations sent before continue without this process. The daemon keeps everything for
        `keep_seconds`, at most for its own limit, and forgets all tensors except those that are
        given names here. Numbers and NumPy arrays become tensors of the dtype that NumPy gives
        them, float64 for a Python float, so `optimizer.state_dict()` can be left as it is, and
        `load_state_dict` takes the result. Names have 1 to 64 letters, digits and "._-", like the
        keys of a module's `state_dict()`; they are local to the user. Raises AlreadyExists if
        another session of the user has the name; this session then stays attached and open.

        >>> connection = kiln.connect()
        >>> connection.detach("night", keep_seconds=600, tensors={"weights": kiln.ones(3)})
        >>> kiln.attach("night")["weights"].tolist()
        [1.0, 1.0, 1.0]
        """
        buffers = _buffers_of(self, tensors or {})
        detach = session_pb2.Detach(
            name=name, keep_seconds=max(1, int(keep_seconds)), tensors=[
                session_pb2.NamedTensor(name=key, handle=buffer.handle)
                for key, buffer in buffers.items()])
        # Set before the daemon detaches it: if the connection breaks then, this process must not
        # close the session.
        self._session.stays = True
        self.stream.detach(detach, self._goes_on)
        _forget_default(self)
        self._session.end()

    def _goes_on(self) -> None:
        self._session.stays = False

    def take_attached(self) -> Dict[str, Buffer]:
        """Returns the buffers that the session was detached with, by name; {} after the first call.

        >>> kiln.connect().take_attached()
        {}
        """
        attached, self._attached = self._attached, {}
        self._session.stays = False
        return attached

    def devices(self) -> List[Any]:
        """Returns the daemon's devices, as kiln.v1.Device messages.

        >>> [device.name for device in kiln.default_connection().devices()]
        ['cpu:0']
        """
        rpc = self._session.devices.ListDevices
        return list(call(self.stream, rpc, device_pb2.ListDevicesRequest()).devices)

    def synchronize(self) -> None:
        """Waits until everything sent before has finished; raises the first unreported error.

        Every failure counts, even if its result was dropped. An error is reported once it, or one
        that it caused, was raised.

        Ctrl-C during this wait, or while a value is read, cancels the operations sent before,
        except those whose results are still referenced and all before those. State of traced
        functions keeps the value it had before the cancelled runs.

        >>> kiln.default_connection().synchronize()
        """
        waiter = Waiter()
        self.verdicts.ask(self)
        self.stream.send(waiter.resolve, barrier=session_pb2.Barrier())
        self.stream.wait(waiter)
        self.raise_unreported()
        self.verdicts.raise_error()
        with self._lock:
            errors, self._unseen = self._unseen, []
        if errors:
            raise errors[0]

    def cancel(self) -> None:
        """Cancels everything sent that has not begun; a running program stops at its next slice.

        Reading a result of a cancelled run raises kiln.Cancelled; state that it would have updated
        keeps its value. Does not wait for the cancellation.

        >>> kiln.default_connection().cancel()
        """
        self.stream.cancel_all_runs()

    # Values.

    def upload(self, data: memoryview, dtype: DType, shape: Tuple[int, ...],
               placement: Optional[Placement] = None, is_chosen: bool = False) -> Buffer:
        """Returns a buffer with these bytes (row-major, little-endian), placed as `placement` says.

        Up to one chunk is sent inside the ordered stream and is not waited for; more is a blob.
        """
        self.check_devices(placement)
        buffer = Buffer(self, next(self._handles), dtype, shape, placement, is_chosen)
        write = session_pb2.Write(handle=buffer.handle, dtype=dtype.code, shape=shape)
        if placement is not None:
            write.placement.CopyFrom(to_wire(placement))
        if data.nbytes <= self._session.chunk_bytes:
            write.data = bytes(data)
            self.stream.send(self._fails([buffer]), size=data.nbytes + 64, write=write)
            return buffer

        def send(names: Sequence[str]) -> None:
            # The closure holds the buffer, which must not be released before.
            write.pieces.names.extend(names)
            self.stream.send(self._fails([buffer]), write=write)

        self._session.blobs.upload(data, send)
        return buffer

    def move(self, buffer: Buffer, placement: Optional[Placement],
             is_chosen: bool = False) -> Buffer:
        """Returns a copy of a buffer placed elsewhere; None: on the session's device."""
        self.check_devices(placement)
        copy = Buffer(self, next(self._handles), buffer.dtype, buffer.shape, placement, is_chosen)
        copy.value_range = buffer.value_range
        self.stream.send(self._fails([copy]), move=session_pb2.Move(
            source=buffer.handle, handle=copy.handle,
            placement=to_wire(placement or placed(self.device))))
        return copy

    def check_devices(self, placement: Optional[Placement]) -> None:
        """Raises InvalidArgument for a device that the daemon lacks; asks it about new names.

        >>> kiln.default_connection().check_devices(None)
        """
        if placement is None or self._known_devices.issuperset(placement.devices):
            return
        self._known_devices.update(device.name for device in self.devices())
        missing = [name for name in placement.devices if name not in self._known_devices]
        if missing:
            raise _errors.InvalidArgument(
                f"no device {', '.join(missing)}; the daemon has "
                f"{', '.join(sorted(self._known_devices))}")

    def has_several_devices(self) -> bool:
        """Returns whether the daemon has more than one device; asks it once.

        >>> kiln.default_connection().has_several_devices()
        False
        """
        if self._has_several_devices is None:
            self._has_several_devices = len(self.devices()) > 1
        return self._has_several_devices

    def download(self, buffer: Buffer) -> bytes:
        """Waits for the buffer's value and returns its bytes.

        Also raises OutOfRange for an index out of range in an earlier run.
        """
        if buffer.error is not None:
            self._seen(buffer.error)
            raise buffer.error
        if buffer.along is not None:
            return self._download_along(buffer, *buffer.along)
        self.verdicts.ask(self)
        data = self._read(buffer)
        self.verdicts.raise_error()
        return data

    def _download_along(self, buffer: Buffer, told: Buffer, element: int) -> bytes:
        """Returns the bytes of a scalar, read together with what its run reports."""
        self.verdicts.ask(self, told)
        data = self._read(told, buffer)
        self.verdicts.answer(told, data)
        self.verdicts.raise_error()
        return data[8 * element : 8 * element + buffer.nbytes]

    def _read(self, buffer: Buffer, wanted: Optional[Buffer] = None) -> bytes:
        wanted = wanted or buffer
        waiter = Waiter() if buffer.nbytes <= self._session.chunk_bytes else None
        if waiter is not None:
            self.stream.send(waiter.resolve, read=session_pb2.Read(handle=buffer.handle))
        else:
            self.stream.wake()  # this read is a separate call, so no run is held back for it
        try:
            if waiter is not None:
                data: bytes = self.stream.wait_telling(waiter).data
            else:
                data = self._session.blobs.download(buffer.handle, self.stream.last_sequence())
        except KeyboardInterrupt:
            self.stream.cancel_runs(wanted)
            raise
        except KilnError as error:
            # The error of the operation that failed says more than that of reading its result.
            # Raised here, it need not be raised by a later run as well.
            self._seen(wanted.error or error)
            raise (wanted.error or error) from None
        if len(data) != buffer.nbytes:
            raise _errors.Internal(
                f"the daemon returned {len(data)} bytes for a tensor of {buffer.nbytes}")
        return data

    # Programs.

    def define(self, graph: Any, name: str = "", devices: Sequence[str] = (),
               live: bool = False) -> Program:
        """Returns the program of a graph, defined once for equal graphs, names and devices.

        It lives as long as it is referenced; the last ones are kept longer for callers that ask
        again. `devices` are those it runs on; none: the session's. If it is `live`, its kernels
        may change.
        """
        # Attributes are a map, which protobuf writes in any order unless `deterministic` is set.
        text = graph.SerializeToString(deterministic=True)
        key = b"\0".join([name.encode(), " ".join(devices).encode(), b"live" * live, text])
        with self._lock:
            program = self._programs.get(key)
            # A failed program is defined again: the reason, such as a lack of memory, may be gone.
            if program is None or program.error is not None:
                program = Program(self, next(self._handles))
                self.stream.send(
                    _while_it_lives(program.defined), size=len(text),
                    define_program=session_pb2.DefineProgram(
                        program=program.number, graph=graph, name=name, devices=devices,
                        live=live))
                self._programs[key] = program
            self._recent[key] = program
            self._recent.move_to_end(key)
            retired = self._recent.popitem(last=False) if (
                len(self._recent) > _PROGRAMS_KEPT) else None
        del retired  # may release the program, which must not happen under the lock
        return program

    def _forget(self, program: Program) -> None:
        """Lets the next `define` of this program's graph ask the daemon again."""
        with self._lock:
            for table in (self._programs, self._recent):
                for key in [key for key, known in table.items() if known is program]:
                    del table[key]

    def accepts(self, program: Program) -> bool:
        """Returns whether the daemon accepts a program that was just defined. Waits for its answer.

        >>> import kiln._proto.kiln.v1.graph_pb2 as wire
        >>> connection = kiln.default_connection()
        >>> connection.accepts(connection.define(wire.Graph(op_set_version=1)))
        False
        """
        waiter = Waiter()
        self.stream.send(waiter.resolve, barrier=session_pb2.Barrier())
        self.stream.wait(waiter)
        return program.error is None

    def run(self, program: Program, inputs: Sequence[Buffer],
            outputs: Sequence[Tuple[DType, Tuple[int, ...]]],
            changes_state: bool = False,
            bindings: Optional[Bindings] = None, updates: bool = False,
            checks: int = 0) -> List[Buffer]:
        """Runs a program and returns its outputs; the last `checks` ones report its checks.

        References to the outputs do not protect a run with `updates` from cancellation: they only
        report on a step that then has not happened.
        """
        self.raise_unreported()
        return self._send_run(program, inputs, outputs, changes_state, bindings, updates, checks)

    def _send_run(self, program: Program, inputs: Sequence[Buffer],
                 outputs: Sequence[Tuple[DType, Tuple[int, ...]]], changes_state: bool = False,
                 bindings: Optional[Bindings] = None, updates: bool = False, checks: int = 0,
                 wakes: bool = True) -> List[Buffer]:
        """As run(), but raises no old error. Without `wakes` the next operation sends it."""
        results = [Buffer(self, next(self._handles), dtype, shape) for dtype, shape in outputs]
        run = session_pb2.Run(
            program=program.number,
            inputs=[buffer.handle for buffer in inputs],
            outputs=[buffer.handle for buffer in results])
        if bindings:
            for symbol, number in bindings.items():
                run.bindings[symbol.name] = number
        self.stream.send(self._fails(results, program, changes_state), wakes=wakes,
                         missed=() if updates else [
                             weakref.ref(buffer) for buffer in results[:len(results) - checks]],
                         run=run)
        return results

    def raise_unreported(self) -> None:
        """Raises the error of an operation that changed state, if it was not reported yet."""
        # Checked without the lock first, since every run calls this.
        if self._unreported:
            with self._lock:
                errors, self._unreported = self._unreported, []
            if errors:
                self._seen(errors[0])
                raise errors[0]

    def programs(self) -> List[ProgramInfo]:
        """Returns the programs that the daemon holds: the user's own, or for its admins all.

        >>> _ = (kiln.ones(2) + 1).tolist()
        >>> len(kiln.default_connection().programs()) > 0
        True
        """
        rpc = self._session.programs.ListPrograms
        listed = call(self.stream, rpc, program_pb2.ListProgramsRequest())
        return [info_of(program) for program in listed.programs]

    def program(self, digest: str) -> ProgramInfo:
        """Returns one program, by its digest or by that of its graph.

        >>> connection = kiln.default_connection()
        >>> _ = (kiln.ones(2) + 1).tolist()
        >>> digest = connection.programs()[0].digest
        >>> connection.program(digest).digest == digest
        True
        """
        return info_of(call(
            self.stream, self._session.programs.ExplainProgram,
            program_pb2.ExplainProgramRequest(digest=digest)).program)

    # Internal.

    def _checked_text(self, graph: Any, name: str, bindings: Bindings) -> str:
        """Returns the daemon's text of a graph, whose ops it has expanded to primitives."""
        request = program_pb2.CompileProgramRequest(
            session_id=self._session.id, graph=graph, name=name,
            bindings={symbol.name: value for symbol, value in bindings.items()})
        made = call(self.stream, self._session.programs.CompileProgram, request).program
        return str(call(self.stream, self._session.programs.ExplainProgram,
                        program_pb2.ExplainProgramRequest(digest=made.digest)).graph)

    def _fails(self, buffers: Sequence[Buffer], program: Optional[Program] = None,
               changes_state: bool = False) -> Any:
        # All references are weak: dropping a result releases it while the operation is still in
        # flight, and a dropped connection can then be collected.
        references = [weakref.ref(buffer) for buffer in buffers]
        owner = weakref.ref(self)
        weak_program = weakref.ref(program) if program is not None else None

        def finished(result: Any, error: Optional[KilnError]) -> None:
            if error is None:
                return
            program = weak_program() if weak_program is not None else None
            cause = program.error if program is not None and program.error else error
            for reference in references:
                buffer = reference()
                if buffer is not None:
                    buffer.error = cause
            connection = owner()
            # A cancelled operation has changed no state.
            if error.reason == "CANCELLED" or connection is None:
                return
            with connection._lock:
                if changes_state:
                    connection._unreported.append(cause)
                elif len(connection._unseen) < _ERRORS_KEPT and (
                        not cause.message.startswith(_OF_AN_INPUT)):
                    connection._unseen.append(cause)

        return finished

    def _seen(self, error: KilnError) -> None:
        with self._lock:
            self._unreported = [other for other in self._unreported if other is not error]
            self._unseen = [
                other for other in self._unseen if other.message not in error.message]


_BuffersOf = Callable[[Connection, Dict[str, Any]], Dict[str, Buffer]]


def _no_buffers(connection: Connection, tensors: Dict[str, Any]) -> Dict[str, Buffer]:
    return {}


_buffers_of: _BuffersOf = _no_buffers


def set_buffers_of(function: _BuffersOf) -> None:
    """Sets the function that computes named tensors; this module cannot import tensors."""
    global _buffers_of
    _buffers_of = function


def _while_it_lives(method: Any) -> Any:
    """Returns a callback that calls an object's method and does not keep the object alive."""
    weak = weakref.WeakMethod(method)

    def call_it(result: Any, error: Optional[KilnError]) -> None:
        alive = weak()
        if alive is not None:
            alive(result, error)

    return call_it


_default: Optional[Connection] = None
_default_pid = 0
# Reentrant: default_connection() holds it while connect() takes it.
_default_lock = threading.RLock()


def connect(address: Optional[str] = None, device: str = "", lease_seconds: int = 0, *,
            batch: bool = False, snapshot_seconds: int = 0, start: bool = False,
            token: str = "", ca: str = "", certificate: str = "", key: str = "") -> Connection:
    """Connects to a daemon and makes this the connection that tensors use from now on.

    `address` is "host:port" or the path of a Unix socket. Without one: $KILN_ADDRESS, else the
    socket of a local daemon ($XDG_RUNTIME_DIR/kiln/kilnd.sock, /tmp/kiln-$UID/kilnd.sock,
    /run/kiln/kilnd.sock), else 127.0.0.1:7433. `device` is a device's name, such as "cpu:0".
    `lease_seconds` is how long the daemon keeps the session and its tensors without hearing from
    this process, whether the connection is lost or the process was killed, by SIGTERM as well (0:
    the daemon's default, 15 minutes, or 2 at its Unix socket). A shorter lease frees memory sooner
    and tolerates only shorter outages.

    Arrays that are sent to another machine again are not transferred if the daemon still has them.
    That is off for addresses of this machine, where hashing takes longer than sending. An address
    such as localhost:7433 that leads to another machine through `ssh -L` counts as this machine
    unless it is spelled "dns:localhost:7433".

    With `batch` the session gets the device time that other sessions leave, and at least 1/17.

    With `snapshot_seconds` above 0 nothing is lost if the daemon is killed: it writes an image of
    the session to disk at this interval, and each operation before it answers it. This process
    continues with the next daemon, which repeats what was computed after the image. That takes
    disk space, 20 to 50 µs for each operation, and device memory for the tensors being written.

    >>> connection = kiln.connect(snapshot_seconds=60)
    >>> weights = kiln.zeros(3).realize()  # survives whatever happens to the daemon

    With `start`, if no daemon runs on this machine, one is started: $KILND, else the one of the
    Python distribution `kilnd`, else the one on the PATH. It outlives this process. No address may
    be set.

    >>> connection = kiln.connect(start=True)  # the running one, if there is one

    `token` identifies the caller to a shared daemon, and `ca` is a PEM file with the authority of
    the daemon's certificate ("system": those that this machine knows). `certificate` and `key` are
    the caller's own. Without them: $KILN_TOKEN, $KILN_CA, $KILN_CERTIFICATE, $KILN_KEY, else these
    keys of ~/.config/kiln/config.toml, which `kiln login` writes. It has lines such as
    `token = "kiln_..."`, and may have the `address`, too. A local socket that another account may
    have created is skipped, with a RuntimeWarning.

    Raises Unavailable if no daemon answers, and Unauthenticated if the daemon does not accept the
    caller.

    >>> connection = kiln.connect()
    >>> connection is kiln.default_connection()
    True
    """
    def connected() -> Connection:
        return open_default(
            Login(address or "", token, ca, certificate, key), device, lease_seconds, batch,
            snapshot_seconds=snapshot_seconds)

    try:
        return connected()
    except _errors.Unavailable as error:
        if not start:
            raise
        named = find(Login(address or ""), os.environ).address
        if named:
            raise _errors.Unavailable(
                f"{error.message}\nNo daemon was started, because one is expected at {named} "
                "(connect(address), $KILN_ADDRESS or ~/.config/kiln/config.toml)") from None
    with one_at_a_time(os.environ):
        # Another process may have started one in the meantime.
        with contextlib.suppress(_errors.Unavailable):
            return connected()
        process = start_daemon(os.environ)
    print(f"kiln: started kilnd as process {process}; its log is {log_file(os.environ)}",
          file=sys.stderr)
    return connected()


def open_default(given: Login, device: str = "", lease_seconds: int = 0, batch: bool = False,
                 detached_name: str = "", snapshot_seconds: int = 0) -> Connection:
    """Implements `connect` and, with the name of a detached session, `kiln.attach`."""
    global _default, _default_pid
    tried: List[str] = []
    explained = skipped = ""
    login = find(given, os.environ)
    for target in candidates(login.address, os.environ, os.getuid()):
        try:
            connection = Connection(
                target, device, lease_seconds, login=login, batch=batch,
                detached_name=detached_name, snapshot_seconds=snapshot_seconds)
        # Any other error is a daemon's answer: this is the right target, and no other is tried.
        except (_errors.Unavailable, _errors.DeadlineExceeded) as error:
            tried.append(f"{target}: {error}")
            explained = explained or explain(target, login, error.message)
            continue
        except _errors.PermissionDenied as error:
            # A socket that another account has put there must not keep the client from its daemon.
            if login.address or error.reason != UNTRUSTED_SOCKET:
                raise
            tried.append(f"{target}: {error}")
            explained = explained or error.message
            skipped = skipped or error.message
            continue
        except _errors.InvalidArgument as error:
            if not skipped:
                raise
            raise _errors.InvalidArgument(f"{error.message}. {skipped}", error.reason) from None
        except _errors.Unauthenticated as error:
            raise _errors.Unauthenticated(
                error.message + with_elsewhere(login), error.reason, error.metadata) from None
        if skipped:
            warnings.warn(f"this is not the first socket that was found: {skipped}", RuntimeWarning,
                          stacklevel=3)
        with _default_lock:
            _default, _default_pid = connection, os.getpid()
        return connection
    explained = explained or (
        "no kilnd answers. Start one on this machine with `kilnd` or kiln.connect(start=True), or "
        "name one on another machine with kiln.connect(\"host:port\") or KILN_ADDRESS")
    raise _errors.Unavailable(
        explained + with_elsewhere(login) + ". Tried:\n  " + "\n  ".join(tried))


def _forget_default(connection: Connection) -> None:
    global _default
    with _default_lock:
        if _default is connection:
            _default = None


def default_connection() -> Connection:
    """Returns the connection that tensors use; connects on first use.

    >>> [device.name for device in kiln.default_connection().devices()]
    ['cpu:0']
    """
    with _default_lock:
        if _default is None:
            return connect()
        if _default_pid != os.getpid():
            raise _errors.FailedPrecondition(
                "this process was forked from one that is connected to a daemon; call "
                "kiln.connect() in the child process")
        return _default


def devices() -> List[Device]:
    """Returns the devices of the daemon's machine, of which meshes are made.

    >>> [device.name for device in kiln.devices()]
    ['cpu:0']
    """
    return [device_of(message) for message in default_connection().devices()]
