"""Starts a separate kilnd for a test or a benchmark, with its own folder, socket and ports."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence

from eventually import GIVE_UP_SECONDS, eventually

ROOT = pathlib.Path(__file__).resolve().parent.parent


def build_folder() -> pathlib.Path:
    """Returns the folder of the built programs: $KILN_BUILD, else build/release."""
    return pathlib.Path(os.environ.get("KILN_BUILD", ROOT / "build" / "release"))


def program(path: str) -> str:
    """Returns the path of a program such as server/kilnd. In a bundle (deploy/bundle) all programs are in one folder."""
    in_bundle = ROOT / "bin" / pathlib.Path(path).name
    return str(in_bundle if in_bundle.exists() else build_folder() / path)


def free_port() -> int:
    """Returns a loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def opencl_is_installed() -> bool:
    """Returns True if a vendor has registered a driver with OpenCL's loader; without one there are no devices."""
    return any(pathlib.Path("/etc/OpenCL/vendors").glob("*.icd"))


# For tests that count programs, kernels or runs: the daemon does not run its own programs to check its devices.
NO_PROBES = "[devices]\nhealth_interval_seconds = 0\n"


class Kilnd:
    """A running daemon; stops when the `with` block ends.

    Its cache and log are in `folder`, by default a new temporary one, so that a second daemon can use the cache of a first
    one. `flags` are additional flags for kilnd, `config` is the text of its configuration file. `devices` are the only
    devices that it looks for, since looking for others takes longer than the rest of a start; None: all devices of the
    machine. `idle_tuning`: whether it searches for faster kernels by itself, which tests and benchmarks do not expect.
    """

    def __init__(self, folder: str | None = None, threads: int | None = None, flags: Sequence[str] = (),
                 config: str = "", devices: str | None = "cpu", idle_tuning: bool = False):
        self._owns_folder = folder is None
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="kilnd-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.address = f"unix:{self.folder}/kilnd.sock"
        self.log = self.folder / "kilnd.log"
        self.command = [
            program("server/kilnd"),
            f"--listen={self.address},127.0.0.1:0",
            "--metrics_listen=127.0.0.1:0",
            f"--cache_dir={self.folder}/cache",
            f"--state_dir={self.folder}/state",
        ]
        if not idle_tuning:
            self.command.append("--idle_tuning=false")
        if devices is not None:
            self.command.append(f"--devices={devices}")
        if threads is not None:
            self.command.append(f"--cpu_threads={threads}")
        if config:
            (self.folder / "kilnd.toml").write_text(config)
            self.command.append(f"--config={self.folder}/kilnd.toml")
        self.command += flags
        self.start()

    def start(self) -> None:
        """Starts it again in the same folder, once it has stopped."""
        self.started = time.monotonic()
        with open(self.log, "ab") as log:
            before = log.tell()
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.port, self.metrics_port = self._ports_when_ready(before)
        self.tcp_address = f"127.0.0.1:{self.port}"

    def _ports_when_ready(self, before: int) -> tuple[int, int]:
        """Waits until the daemon serves; returns the ports that it chose, read from its log after the first `before` bytes."""

        def serving() -> "re.Match[str] | None":
            written = self.log.read_bytes()[before:].decode(errors="replace")
            return re.search(r"event=serving .*127\.0\.0\.1:(\d+) metrics_port=(\d+) .*\n", written)

        eventually(lambda: serving() is not None or self.process.poll() is not None)
        if found := serving():
            return int(found[1]), int(found[2])
        self.stop()
        raise RuntimeError(f"kilnd did not start. Its log:\n{self.log.read_text(errors='replace')}")

    def metrics(self) -> str:
        """Returns the text of /metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=GIVE_UP_SECONDS) as answer:
            return answer.read().decode()

    def metric(self, name: str, absent: float | None = None) -> float:
        """Returns the value of the first series of that name, with any labels; `absent`, if given, if there is none."""
        found = re.search(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", self.metrics(), re.MULTILINE)
        if found is None and absent is not None:
            return absent
        assert found, f"{name} is not among the metrics"
        return float(found[1])

    def environment(self) -> dict[str, str]:
        """Returns the caller's environment with $KILN_ADDRESS set to this daemon."""
        return dict(os.environ, KILN_ADDRESS=self.address)

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """Suspends all threads of the daemon for the duration of the `with` block."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def stop(self, by: signal.Signals = signal.SIGINT) -> int:
        """Sends the daemon a signal, waits, and returns its exit status. After SIGTERM it keeps its sessions."""
        if self.process.poll() is None:
            self.process.send_signal(by)
            try:
                self.process.wait(timeout=GIVE_UP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode

    def __enter__(self) -> "Kilnd":
        return self

    def __exit__(self, *_) -> None:
        self.stop()
        if self._owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
