"""A network link between clients and a daemon, for tests: slow, counted, cut at will."""

import collections
import contextlib
import math
import socket
import threading
import time

_BLOCK_BYTES = 256 << 10
# What is on its way in one direction; more waits, as in a socket's buffers.
_MOST_BYTES_ON_THE_WAY = 64 << 20


class _Direction:
    """Bytes from one socket to another, each `delay` seconds late; on two threads.

    `enter` is called before a block goes on, and may wait; `count` afterwards, with its size.
    """

    def __init__(self, source, sink, delay, enter=lambda: None, count=lambda size: None):
        self._source, self._sink, self._delay = source, sink, delay
        self._enter, self._count = enter, count
        self._blocks = collections.deque()  # (when it arrives, the bytes); b"" is the end
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
                while self._bytes > _MOST_BYTES_ON_THE_WAY:
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
            self._enter()
            try:
                if not data:
                    self._sink.shutdown(socket.SHUT_WR)
                    return
                self._sink.sendall(data)
                self._count(len(data))
            except OSError:
                _hang_up(self._source)
                return


def _hang_up(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


class Link:
    """Listens at `address` and connects to a daemon's "host:port"; ends when the `with` block does.

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
        self._most_bytes = math.inf  # of clients, before a cut
        self.bytes_sent = 0  # by clients
        self.connections = 0  # that were made
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
                if self._is_down:
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
            _Direction(client, daemon, self._delay, self._wait, self._count)
            _Direction(daemon, client, self._delay)

    def _wait(self):
        with self._may_go_on:
            self._may_go_on.wait_for(lambda: self._is_down or self.bytes_sent < self._most_bytes)

    def _count(self, size):
        with self._lock:
            self.bytes_sent += size

    def hold_at(self, bytes_sent: int) -> None:
        """Holds what clients send once so many bytes, and at most a block more for each connection, have gone through.

        The next cut drops it, and ends the hold.
        """
        with self._lock:
            self._most_bytes = bytes_sent

    def cut(self, seconds: float = 0.0) -> None:
        """Ends all connections, and refuses new ones for so long."""
        with self._lock:
            self._is_down = True
            self._most_bytes = math.inf
            self._may_go_on.notify_all()
            for end in self._open:
                _hang_up(end)
            self._open.clear()
        time.sleep(seconds)
        with self._lock:
            self._is_down = False

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_) -> None:
        self._listener.close()
        self.cut()
