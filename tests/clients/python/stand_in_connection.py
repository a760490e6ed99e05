"""A connection without a daemon, for tests of decisions that the client makes alone."""

from kiln._session import handles as _handles
from kiln._session import releases


class StandInStream:
    """Accepts releases and ignores them."""

    def __init__(self):
        self.releases = releases.Releases()


class StandInVerdicts:
    """Judges nothing."""

    def expect(self, connection, buffer, judge):
        pass


class StandInConnection:
    """Records the requests to a daemon; values read from it are zeros."""

    _kiln_watched = ()

    def __init__(self):
        self.stream = StandInStream()
        self.device = "cpu:0"
        self.graphs = []
        self.defined_on = []  # devices, by graph
        self.runs = []  # (program, inputs, outputs, changes_state)
        self.uploads = []
        self.written = []  # (shape, placement), by upload
        self.plans = None
        self.verdicts = StandInVerdicts()
        self.moves = []  # (source, handle, placement)
        self._next = 1

    @property
    def messages(self):
        """Returns how many operations were sent."""
        return len(self.graphs) + len(self.runs) + len(self.uploads) + len(self.moves)

    def _buffer(self, dtype, shape, placement=None, is_chosen=False):
        self._next += 1
        return _handles.Buffer(self, self._next, dtype, shape, placement, is_chosen)

    def upload(self, data, dtype, shape, placement=None, is_chosen=False):
        buffer = self._buffer(dtype, shape, placement, is_chosen)
        self.uploads.append((buffer.handle, bytes(data)))
        self.written.append((shape, placement))
        return buffer

    def move(self, buffer, placement, is_chosen=False):
        copy = self._buffer(buffer.dtype, buffer.shape, placement, is_chosen)
        self.moves.append((buffer.handle, copy.handle, placement))
        return copy

    def check_devices(self, placement):
        pass

    def has_several_devices(self):
        return True

    def download(self, buffer):
        return bytes(buffer.nbytes)

    def define(self, graph, name="", devices=(), live=False):
        self.graphs.append((name, graph))
        self.defined_on.append(tuple(devices))
        self._next += 1
        return _handles.Program(self, self._next)

    def _checked_text(self, graph, name, bindings):
        self.graphs.append((name, graph))
        return ""

    def accepts(self, program):
        return True

    def run(self, program, inputs, outputs, changes_state=False, bindings=None, updates=False, checks=0):
        handles = [buffer.handle for buffer in inputs]
        self.runs.append((program.number, handles, list(outputs), changes_state))
        return [self._buffer(dtype, shape) for dtype, shape in outputs]
