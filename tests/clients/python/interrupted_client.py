"""Works in an endless loop and prints "begins OPERATION"; answers each SIGINT with "interrupted
OPERATION" at once, and with "ready" when its checks have passed.
"""

import os
import sys

import numpy as np

import kiln

SEED = int(sys.argv[1])
LARGE = np.arange(6 << 20, dtype=np.float32)  # 24 MiB: sent in chunks
SMALL = np.arange(1000, dtype=np.float32)


class Work:
    """The operations of a client, with state on the daemon that an interrupt must not corrupt."""

    def __init__(self):
        self.x = kiln.tensor(np.eye(64, dtype=np.float32)).realize()
        self.count = kiln.tensor(0)
        self.step = kiln.jit(lambda: self.counted())
        self.large = kiln.tensor(LARGE).realize()
        self.number = 0

    def counted(self):
        self.count.assign(self.count + 1)
        return (self.x @ self.x).sum()

    def upload(self):
        assert (kiln.tensor(LARGE)[-1:] + 0).item() == LARGE[-1]

    def upload_small(self):
        for _ in range(300):
            kiln.tensor(SMALL).realize()

    def download(self):
        assert self.large.numpy()[-1] == LARGE[-1]

    def run(self):
        for _ in range(300):
            self.step()

    def read(self):
        for _ in range(100):
            assert self.step().item() == 64

    def compile(self):
        self.number += 1
        assert (self.x * self.number).sum().item() == 64 * self.number


def say(line):
    """Prints a line in one step, so that an interrupt leaves no partial line."""
    os.write(1, f"{line}\n".encode())


def check(work, session):
    """Checks that the same session works as if nothing had happened."""
    assert kiln.default_connection().name == session
    before = work.count.item()
    assert work.step().item() == 64
    assert work.count.item() == before + 1
    assert (kiln.tensor(SMALL) * 2).numpy()[-1] == 2 * SMALL[-1]


def main():
    work = Work()
    session = kiln.default_connection().name
    check(work, session)
    operations = [work.upload, work.upload_small, work.download, work.run, work.read, work.compile]
    order = np.random.default_rng(SEED)
    name = ""
    while True:
        try:
            say("ready")
            while True:
                operation = operations[order.integers(len(operations))]
                name = operation.__name__
                say(f"begins {name}")  # from now on the parent may interrupt
                operation()
        except KeyboardInterrupt:
            say(f"interrupted {name}")
            check(work, session)


main()
