"""Works for ever; answers each SIGINT with "interrupted SECONDS OPERATION" once all is right.

SECONDS is from the parent's signal, whose time it wrote to a file, to the KeyboardInterrupt here.
"""

import pathlib
import sys
import time

import numpy as np

import kiln

FOLDER, SEED = pathlib.Path(sys.argv[1]), int(sys.argv[2])
LARGE = np.arange(6 << 20, dtype=np.float32)  # 24 MiB: travels in chunks
SMALL = np.arange(1000, dtype=np.float32)


class Work:
    """What a client does, with state on the daemon that an interrupt must not tear."""

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


def check(work, session):
    """The same session works as if nothing had happened."""
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
    name, news = "", "ready"
    while True:
        try:
            print(news, flush=True)  # from here on the parent may interrupt
            while True:
                operation = operations[order.integers(len(operations))]
                name = operation.__name__
                operation()
        except KeyboardInterrupt:
            seconds = time.monotonic() - float((FOLDER / "signalled").read_text())
            check(work, session)
            news = f"interrupted {seconds:.3f} {name}"


main()
