"""Ctrl-C at random moments: it takes effect without waiting, the process continues, and its session
is closed when it exits.

$KILN_INTERRUPTS is the number of interrupts (30); $KILN_SEED seeds their moments (1).
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import threading

import kiln
from eventually import GIVE_UP_SECONDS, eventually

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(kiln.__file__).resolve().parents[1]
OPERATIONS_MAX = 100_000  # operations that begin after an interrupt; more mean that it was lost
INTERRUPTS = int(os.environ.get("KILN_INTERRUPTS", "30"))
SEED = int(os.environ.get("KILN_SEED", "1"))
MEMORY = 'kiln_device_memory_used_bytes{device="cpu:0"}'


def start(daemon, *arguments):
    """Starts a Python process that receives SIGINT, even if this one runs in a shell's background,
    where SIGINT is ignored.
    """
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, *arguments], env=dict(daemon.environment(), PYTHONPATH=path),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Client:
    """A process that prints "begins NAME" for each operation, and other lines."""

    def __init__(self, daemon, *arguments):
        self.process = start(daemon, *arguments)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def line(self):
        guard = threading.Timer(GIVE_UP_SECONDS, self.process.kill)
        guard.start()
        try:
            return self.process.stdout.readline()
        finally:
            guard.cancel()

    def expect(self, word):
        """Returns the rest of the next line with this first word; operations may begin before."""
        line = self.line()
        for _ in range(OPERATIONS_MAX):
            if word == "begins" or not line.startswith("begins "):
                break
            line = self.line()
        assert line.startswith(word), (line, self.process.poll() and self.process.stderr.read())
        return line[len(word) :].strip()

    def go_on(self, moments):
        """Lets it work until some operations have begun, and a random time into the last one."""
        for _ in range(moments.randrange(1, 5)):
            self.expect("begins")
        for _ in range(moments.randrange(1_000_000)):
            pass  # as long as an operation takes, or less

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)


def test_interrupts_at_random_moments(fresh_kilnd):
    moments = random.Random(SEED)
    operations = {}
    with Client(fresh_kilnd, str(HERE / "interrupted_client.py"), str(SEED)) as client:
        client.expect("ready")
        memory = fresh_kilnd.metric(MEMORY)
        for _ in range(INTERRUPTS):
            client.go_on(moments)
            client.interrupt()
            operation = client.expect("interrupted")
            operations[operation] = operations.get(operation, 0) + 1
            client.expect("ready")
        assert eventually(lambda: fresh_kilnd.metric("kiln_blob_bytes") == 0)
        assert eventually(lambda: fresh_kilnd.metric(MEMORY) < memory + (8 << 20))
        assert fresh_kilnd.metric("kiln_sessions") == 1
    print(f"{INTERRUPTS} interrupts: {operations}")


# The session must be closed by its exit, so the daemon gets longer than a busy machine needs, and
# the lease is longer than the test.
ENDS = """
import os
import numpy as np
import kiln
from kiln._session import session
session._END_SECONDS = 600
kiln.connect(lease_seconds=3600)
kept = kiln.tensor(np.ones(6 << 20, np.float32)).realize()
os.write(1, b"ready\\n")
while True:
    os.write(1, b"begins upload\\n")
    kiln.tensor(np.ones(6 << 20, np.float32)).realize()
"""


def test_an_interrupted_process_leaves_no_session(fresh_kilnd):
    moments = random.Random(SEED)
    for _ in range(max(2, INTERRUPTS // 10)):
        with Client(fresh_kilnd, "-c", ENDS) as client:
            client.expect("ready")
            assert fresh_kilnd.metric("kiln_sessions") == 1
            client.go_on(moments)
            client.interrupt()
            _, errors = client.process.communicate(timeout=GIVE_UP_SECONDS)
        assert errors.rstrip().endswith("KeyboardInterrupt"), errors
        assert eventually(lambda: fresh_kilnd.metric("kiln_sessions") == 0)
        assert eventually(lambda: fresh_kilnd.metric("kiln_blob_bytes") == 0)
