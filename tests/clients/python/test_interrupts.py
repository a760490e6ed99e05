"""Ctrl-C at random moments: it returns at once, the process goes on, and its session ends with it.

$KILN_INTERRUPTS says how many (30); $KILN_SEED where the moments begin (1).
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

import kiln
from eventually import eventually

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(kiln.__file__).resolve().parents[1]
INTERRUPTS = int(os.environ.get("KILN_INTERRUPTS", "30"))
SEED = int(os.environ.get("KILN_SEED", "1"))
MEMORY = 'kiln_device_memory_used_bytes{device="cpu:0"}'


def start(daemon, *arguments):
    """A Python process that hears SIGINT, even if this one runs in a shell's background and so ignores it."""
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, *arguments], env=dict(daemon.environment(), PYTHONPATH=path),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Client:
    """interrupted_client.py, and what it prints."""

    def __init__(self, daemon, folder, seed):
        self._time = folder / "signalled"
        self.process = start(daemon, str(HERE / "interrupted_client.py"), str(folder), str(seed))
        assert self.line().startswith("ready"), self.process.stderr.read()

    def line(self, seconds=60):
        guard = threading.Timer(seconds, self.process.kill)
        guard.start()
        try:
            return self.process.stdout.readline()
        finally:
            guard.cancel()

    def interrupt(self):
        self._time.with_suffix(".new").write_text(str(time.monotonic()))
        self._time.with_suffix(".new").rename(self._time)
        self.process.send_signal(signal.SIGINT)


def test_interrupts_at_random_moments(fresh_kilnd, tmp_path):
    moments = random.Random(SEED)
    client = Client(fresh_kilnd, tmp_path, SEED)
    longest, operations = 0.0, {}
    memory = fresh_kilnd.metric(MEMORY)
    try:
        for _ in range(INTERRUPTS):
            time.sleep(moments.uniform(0.0, 0.15))
            client.interrupt()
            line = client.line()
            found = re.fullmatch(r"interrupted (\S+) (\w+)\n", line)
            assert found, (line, client.process.stderr.read())
            longest = max(longest, float(found[1]))
            operations[found[2]] = operations.get(found[2], 0) + 1
        assert longest < 5.0  # alone on a machine, below 0.1 s
        assert eventually(lambda: fresh_kilnd.metric("kiln_blob_bytes") == 0)
        assert eventually(lambda: fresh_kilnd.metric(MEMORY) < memory + (8 << 20))
        assert fresh_kilnd.metric("kiln_sessions") == 1
    finally:
        client.process.kill()
        client.process.communicate()
    print(f"{INTERRUPTS} interrupts, the slowest after {longest:.3f} s; {operations}")


ENDS = """
import sys, time
import numpy as np
import kiln
x = kiln.tensor(np.ones(6 << 20, np.float32)).realize()
print("ready", flush=True)
while True:
    kiln.tensor(np.ones(6 << 20, np.float32)).realize()
"""


def test_an_interrupted_process_leaves_no_session(fresh_kilnd):
    moments = random.Random(SEED)
    for _ in range(max(2, INTERRUPTS // 10)):
        process = start(fresh_kilnd, "-c", ENDS)
        try:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            assert fresh_kilnd.metric("kiln_sessions") == 1
            time.sleep(moments.uniform(0.0, 0.2))
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
        finally:
            process.kill()
            process.wait()
        assert errors.rstrip().endswith("KeyboardInterrupt"), errors
        # Its lease is longer than this.
        assert eventually(lambda: fresh_kilnd.metric("kiln_sessions") == 0)
        assert eventually(lambda: fresh_kilnd.metric("kiln_blob_bytes") == 0)
