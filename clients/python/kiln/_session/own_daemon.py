"""Starts kilnd on this machine."""

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
from typing import Iterator, List, Mapping

from kiln._basics.errors import NotFound, Unavailable

# Finding the devices of a machine with GPUs may take a minute; then a user wants to read why.
READY_SECONDS_MAX = 120.0
_SILENT_SECONDS = 2.0
_POLL_SECONDS = 0.1

_started: List["subprocess.Popen[bytes]"] = []  # a Popen that is dropped warns of a running process


def find_program(environment: Mapping[str, str]) -> str:
    """Returns the path of kilnd: $KILND, else the one of the distribution `kilnd`, else on the PATH.

    Raises NotFound if there is none.
    """
    if environment.get("KILND"):
        return environment["KILND"]
    try:
        import kilnd
    except ImportError:
        found = shutil.which("kilnd", path=environment.get("PATH"))
    else:
        found = kilnd.path("kilnd")
    if found is None:
        raise NotFound(
            "kilnd is not installed: neither the Python distribution kilnd is "
            "(`pip install \"kiln-client[daemon]\"`), nor is there a kilnd on the PATH, nor does "
            "$KILND name one")
    return found


@contextlib.contextmanager
def one_at_a_time(environment: Mapping[str, str]) -> Iterator[None]:
    """Waits until no other process of this account is in this block."""
    folder = _state_folder(environment)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(os.path.join(folder, "kilnd.start"), "w", opener=_private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start(environment: Mapping[str, str]) -> int:
    """Starts kilnd at its default addresses and returns its process id once it accepts clients.

    The daemon outlives this process. Its log is appended to kilnd.log in its state folder, which
    exists. Raises NotFound if there is no kilnd, and Unavailable if it ends, for example because
    another one has the addresses, or does not get ready.

    Requires: the caller is in `one_at_a_time`.
    """
    program = find_program(environment)
    log = log_file(environment)
    # kilnd tells the service manager that started it when it is ready (sd_notify).
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices, \
            open(log, "ab", opener=_private) as output:
        notices.bind("")  # to an abstract address that is free; its name begins with a zero byte
        address = "@" + notices.getsockname()[1:].decode()
        notices.settimeout(_POLL_SECONDS)
        size = output.tell()
        try:
            process = subprocess.Popen(
                [program], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env={**environment, "NOTIFY_SOCKET": address}, start_new_session=True)
        except OSError as error:
            raise Unavailable(f"kilnd cannot be started: {error}") from None
        try:
            _wait_until_ready(process, notices)
        except BaseException as error:
            process.kill()
            process.wait()
            if isinstance(error, _NotReadyError):
                raise Unavailable(f"{error}. {_last_words(log, size)}") from None
            raise
    _started.append(process)
    return process.pid


def log_file(environment: Mapping[str, str]) -> str:
    """Returns the file to which `start` has kilnd write its log."""
    return os.path.join(_state_folder(environment), "kilnd.log")


def _state_folder(environment: Mapping[str, str]) -> str:
    state = environment.get("XDG_STATE_HOME") or os.path.join(
        environment.get("HOME") or os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "kiln")


class _NotReadyError(Exception):
    pass


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _wait_until_ready(process: "subprocess.Popen[bytes]", notices: socket.socket) -> None:
    waited = 0.0
    said = False
    while True:
        try:
            if b"READY=1" in notices.recv(4096).split(b"\n"):
                return
        except socket.timeout:
            waited += _POLL_SECONDS
        if process.poll() is not None:
            raise _NotReadyError(f"kilnd ended at its start, with status {process.returncode}")
        if waited > READY_SECONDS_MAX:
            raise _NotReadyError(f"kilnd was not ready after {READY_SECONDS_MAX:.0f} s")
        if waited > _SILENT_SECONDS and not said:
            said = True
            print("kiln: kilnd looks for devices", file=sys.stderr)


def _last_words(log: str, size: int) -> str:
    """Returns the last line that was written after the file had `size` bytes, and its place."""
    with open(log, "rb") as file:
        file.seek(size)
        lines = file.read().decode(errors="replace").splitlines()
    return f"Its log, {log}, ends with: {lines[-1]}" if lines else f"Its log is {log}"
