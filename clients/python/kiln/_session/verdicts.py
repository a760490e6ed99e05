"""Reads the reports of checks: with the next value, or after a bounded number of runs."""

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence

from kiln._basics.dtypes import uint64
from kiln._basics.errors import KilnError
from kiln._ops.table import OP_SET_VERSION
from kiln._placement.mesh import Mesh
from kiln._proto.kiln.v1 import graph_pb2, session_pb2
from kiln._session.handles import Buffer
from kiln._session.placements import sharding
from kiln._session.waiter import Waiter

if TYPE_CHECKING:
    from kiln._session.connection import Connection

# Returns the error in the bytes that a run reports; None: all indices are in range.
Judge = Callable[[bytes], Optional[KilnError]]

# Runs whose checks have not been read. Beyond this number all are read, without waiting.
UNREAD_MAX = 64
# Unreported errors; only the first ones are kept.
_ERRORS_KEPT = 16
# This many buffers or more are joined on the device, which costs less than reading each. There is a
# program for each width.
_JOINED_MIN = 3
_WIDTHS = (8, UNREAD_MAX + 1)


class _Unread(NamedTuple):
    """The reporting output of a run, on the device, which has not been read."""

    buffer: Buffer
    judge: Judge


class Verdicts:
    """The checks of a connection's runs. Thread-safe.

    An interrupt at any place causes a check to be read twice at most, and none to be forgotten.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # never taken by the thread that reads the stream
        self._unread: List[_Unread] = []
        self._alone: Deque[_Unread] = deque()  # to be read one by one
        self._asked: Deque[Waiter] = deque()  # reads that were sent, oldest first
        self._errors: List[KilnError] = []

    def expect(self, connection: "Connection", buffer: Buffer, judge: Judge) -> None:
        """Records the reporting output of a run."""
        with self._lock:
            self._unread.append(_Unread(buffer, judge))
        if len(self._unread) > UNREAD_MAX:
            self.ask(connection)
            connection.stream.wake()
            self._forget_answered()

    def ask(self, connection: "Connection", but: Optional[Buffer] = None) -> None:
        """Sends reads of all outputs in the next message, except `but`, which the caller reads."""
        if not self._unread and not self._alone:
            return
        with self._lock:
            for group in _groups([one for one in self._unread if one.buffer is not but]):
                self._read(connection, group)
                self._forget(group)
            while self._alone:
                self._read(connection, [self._alone[0]])
                self._alone.popleft()

    def answer(self, buffer: Buffer, data: bytes) -> None:
        """Judges a reporting output that the caller has read."""
        group = [unread for unread in self._unread if unread.buffer is buffer]
        if group:
            self._judge(group, data)
            with self._lock:
                self._forget(group)

    def raise_error(self) -> None:
        """Waits for the reads that were sent, and raises the first error since the last call."""
        while self._asked:
            try:
                answered = self._asked.popleft()
            except IndexError:  # another thread took it and waits for it
                break
            answered.wait()
        if self._errors:
            errors, self._errors = self._errors, []
            raise errors[0]

    def _forget(self, group: Sequence[_Unread]) -> None:
        self._unread = [unread for unread in self._unread if unread not in group]

    def _read(self, connection: "Connection", group: Sequence[_Unread]) -> None:
        buffer = group[0].buffer
        if len(group) > 1:
            buffer = _joined(connection, [unread.buffer for unread in group])
        answered = Waiter()
        connection.stream.send(self._answer(group, answered), wakes=False,
                               read=session_pb2.Read(handle=buffer.handle))
        self._asked.append(answered)

    def _answer(self, group: Sequence[_Unread], answered: Waiter) -> Any:
        weak = weakref.ref(self)

        def finished(result: Any, error: Optional[KilnError]) -> None:
            alive = weak()
            if alive is not None and error is None:
                alive._judge(group, result.data)
            elif alive is not None and len(group) > 1:
                # One of the runs has failed, so the joined read has no data. Others may have data.
                alive._alone.extend(group)
            answered.resolve()

        return finished

    def _judge(self, group: Sequence[_Unread], data: bytes) -> None:
        begin = 0
        for unread in group:
            end = begin + unread.buffer.nbytes
            wrong = unread.judge(data[begin:end])
            if wrong is not None and len(self._errors) < _ERRORS_KEPT:
                self._errors.append(wrong)
            begin = end

    def _forget_answered(self) -> None:
        while self._asked:
            try:
                answered = self._asked.popleft()
            except IndexError:  # another thread took it and waits for it
                return
            if not answered.wait_for(0):
                self._asked.appendleft(answered)
                return


def _groups(unread: Sequence[_Unread]) -> List[List[_Unread]]:
    """Groups outputs to read together: buffers of one size and placement."""
    found: Dict[Any, List[_Unread]] = {}
    for one in unread:
        found.setdefault((one.buffer.shape, one.buffer.placement), []).append(one)
    groups: List[List[_Unread]] = []
    for group in found.values():
        if len(group) < _JOINED_MIN:
            groups += [[one] for one in group]
        else:
            groups += [group[begin : begin + _WIDTHS[-1]]
                       for begin in range(0, len(group), _WIDTHS[-1])]
    return groups


def _joined(connection: "Connection", buffers: Sequence[Buffer]) -> Buffer:
    """Joins buffers of one size into one; the first is repeated up to the program's width."""
    (size,) = buffers[0].shape
    width = next(width for width in _WIDTHS if width >= len(buffers))
    graph = graph_pb2.Graph(op_set_version=OP_SET_VERSION)
    for number in range(width):
        node = graph.nodes.add(op="input", dtype=uint64.code)
        node.attributes["index"].i = number
        node.attributes["shape"].shape.dims.add(size=size)
    together = graph.nodes.add(op="concat", dtype=uint64.code, operands=range(width))
    together.attributes["axis"].i = 0
    graph.outputs.append(width)
    placement = buffers[0].placement
    if placement is not None and isinstance(placement.home, Mesh):
        graph.sharding.CopyFrom(sharding(placement.home, [()] * width, [()]))
    program = connection.define(
        graph, "checks of several runs", placement.devices if placement is not None else ())
    inputs = [*buffers, *[buffers[0]] * (width - len(buffers))]
    (result,) = connection._send_run(program, inputs, [(uint64, (width * size,))], wakes=False)
    return result
