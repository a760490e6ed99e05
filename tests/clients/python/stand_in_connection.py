"""A connection without a daemon, for tests of what the client alone decides."""

from kiln._session import handles as _handles
from kiln._session import releases


class StandInStream:
    """Takes releases."""

    def __init__(self):
        self.releases = releases.Releases()


class StandInConnection:
    """Remembers what a daemon would have been asked; values read from it are zeros."""

    _kiln_watched = ()

    def __init__(self):
        self.stream = StandInStream()
        self.graphs = []
        self.runs = []  # (program, inputs, outputs, changes_state)
        self.uploads = []
        self._next = 1

    def _buffer(self, dtype, shape):
        self._next += 1
        return _handles.Buffer(self, self._next, dtype, shape)

    def upload(self, data, dtype, shape):
        buffer = self._buffer(dtype, shape)
        self.uploads.append((buffer.handle, bytes(data)))
        return buffer

    def download(self, buffer):
        return bytes(buffer.nbytes)

    def define(self, graph, name=""):
        self.graphs.append((name, graph))
        self._next += 1
        return _handles.Program(self, self._next)

    def run(self, program, inputs, outputs, changes_state=False, bindings=None, updates=False):
        handles = [buffer.handle for buffer in inputs]
        self.runs.append((program.number, handles, list(outputs), changes_state))
        return [self._buffer(dtype, shape) for dtype, shape in outputs]
