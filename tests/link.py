"""A network link between clients and a daemon, for tests: slow, counted, and cut on request."""

import collections
import contextlib
import math
import socket
import threading
import time

_BLOCK_BYTES = 256 << 10
# The maximum of bytes in flight in one direction; further bytes wait, as in a socket's buffers.
_IN_FLIGHT_BYTES_MAX = 64 << 20


class _Direction:
    """Transfers bytes from one socket to another with a delay of `delay` seconds, on two threads.

    `admits` is called with the sink and a block's size before the block is sent on, and may wait. The direction ends when it
    returns False.
    """

    def __init__(self, source, sink, delay, admits):
        self._source, self._sink, self._delay = source, sink, delay
        self._admits = admits
        self._blocks = collections.deque()  # (time of arrival, bytes); b"" marks the end
        self._bytes = 0
        self._changed = threading.Condition()
        for work in (self._take, self._give):
            threading.Thread(target=work, daemon=True).start()

    def _take(self):
        data = b"?"
        while data:
            try:
                data = self._source.recv(_BLOCK_BYTES)
            except OSError:
                data = b""
            with self._changed:
                while self._bytes > _IN_FLIGHT_BYTES_MAX:
                    self._changed.wait()
                self._blocks.append((time.monotonic() + self._delay, data))
                self._bytes += len(data)
                self._changed.notify_all()

    def _give(self):
        while True:
            with self._changed:
                while not self._blocks:
                    self._changed.wait()
                due, data = self._blocks.popleft()
                self._bytes -= len(data)
                self._changed.notify_all()
            time.sleep(max(0.0, due - time.monotonic()))
            if not self._admits(self._sink, len(data)):
                return
            try:
                if not data:
                    self._sink.shutdown(socket.SHUT_WR)
                    return
                self._sink.sendall(data)
            except OSError:
                _hang_up(self._source)
                return


def _hang_up(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _is_hung_up(connection):
    return connection.fileno() < 0


class Link:
    """Listens at `address` and connects to a daemon's "host:port"; ends with the `with` block.

    Thread-safe. `delay` is in seconds, each way.
    """

    def __init__(self, target: str, delay: float = 0.0):
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._delay = delay
        self._lock = threading.Lock()
        self._may_go_on = threading.Condition(self._lock)
        self._open = []
        self._is_down = False
        self._refuses = 0  # how many of the next connections to refuse
        self._bytes_max = math.inf  # sent by clients, before a cut
        self._cut_at_sent = self._cut_at_received = math.inf
        self.bytes_sent = 0  # by clients; a block counts before it is sent on
        self.bytes_received = 0  # by clients
        self.connections = 0  # the number of connections made
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._is_down or self._refuses > 0:
                    self._refuses = max(0, self._refuses - 1)
                    _hang_up(client)
                    continue
                try:
                    daemon = socket.create_connection(self._target)
                except OSError:
                    _hang_up(client)
                    continue
                self._open += [client, daemon]
                self.connections += 1
            for end in (client, daemon):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _Direction(client, daemon, self._delay, self._admits_sent)
            _Direction(daemon, client, self._delay, self._admits_received)

    def _admits_sent(self, sink, size):
        with self._may_go_on:
            self._may_go_on.wait_for(lambda: _is_hung_up(sink) or self.bytes_sent < self._bytes_max)
            if _is_hung_up(sink):
                return False
            self.bytes_sent += size
            if self.bytes_sent >= self._cut_at_sent:
                self._cut()
                return False
        return True

    def _admits_received(self, sink, size):
        with self._lock:
            if _is_hung_up(sink):
                return False
            self.bytes_received += size
            if self.bytes_received >= self._cut_at_received:
                self._cut()
                return False
        return True

    def _cut(self):  # Requires: the lock is held
        self._bytes_max = self._cut_at_sent = self._cut_at_received = math.inf
        for end in self._open:
            _hang_up(end)
        self._open.clear()
        self._may_go_on.notify_all()

    def hold_at(self, bytes_sent: int) -> None:
        """Holds what clients send once `bytes_sent` bytes, and at most a block more for each connection, have passed.

        The next cut drops the held bytes and ends the hold.
        """
        with self._lock:
            self._bytes_max = bytes_sent

    def cut(self, refuses: int = 0) -> None:
        """Closes all connections, and refuses the next `refuses` ones."""
        with self._lock:
            self._refuses = refuses
            self._cut()

    def cut_after(self, sent: float = math.inf, received: float = math.inf) -> None:
        """Closes all connections once clients have sent or received more than this many bytes from now on; only once.

        The block with the next byte is lost.
        """
        with self._lock:
            self._cut_at_sent = self.bytes_sent + sent + 1
            self._cut_at_received = self.bytes_received + received + 1

    @contextlib.contextmanager
    def down(self):
        """Closes all connections, and refuses new ones until the `with` block ends."""
        with self._lock:
            self._is_down = True
            self._cut()
        try:
            yield
        finally:
            with self._lock:
                self._is_down = False

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_) -> None:
        self._listener.close()
        self.cut()
