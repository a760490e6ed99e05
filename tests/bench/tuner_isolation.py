#!/usr/bin/env python3
"""Measures how much searches for kernels disturb another user's small synchronous requests.

usage: tuner_isolation.py [--rounds N] [--requests N] [--threads N]

A user calls a small program and reads its result, again and again: with no search, beside the
daemon's own search, which pauses, and beside `kiln tune`, which takes turns. The three alternate,
each time with a new daemon. Prints the 50th and 99th percentiles and their ratios to those without a search.
"""

import argparse
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import kiln  # noqa: E402
import numpy as np  # noqa: E402

from eventually import eventually  # noqa: E402
from kilnd_process import NO_PROBES, Kilnd, program  # noqa: E402

# The daemon of the first condition never searches; that of the second one soon does.
IDLE = NO_PROBES + "[tuner]\nquiet_seconds = 1\nwidth = 64\n"
SIZE = 288  # about a millisecond on a core


def heavy(x, w):
    y = x @ w
    return kiln.softmax(y, -1).sum(), (y * y).sum(0)


class Condition:
    """One daemon with two programs: a heavy one, which is searched, and the user's small one."""

    def __init__(self, threads: int, is_idle: bool) -> None:
        self.daemon = Kilnd(threads=threads, config=IDLE if is_idle else NO_PROBES, idle_tuning=is_idle)
        self.connection = kiln.connect(self.daemon.address)
        self.small = kiln.jit(lambda x, w: (x @ w).sum())
        self.arguments = kiln.rand(SIZE, SIZE), kiln.rand(SIZE, SIZE)
        step = kiln.jit(heavy)
        x, w = kiln.rand(768, 768), kiln.rand(768, 768)
        for _ in range(20):
            step(x, w)[0].numpy()
        self.seconds: list[float] = []

    def requests(self, count: int) -> None:
        """The first requests count, too: they meet what is under way."""
        for _ in range(count):
            begin = time.perf_counter()
            self.small(*self.arguments).numpy()
            self.seconds.append(time.perf_counter() - begin)

    def stop(self) -> None:
        self.connection.close()
        self.daemon.stop()

    def searches(self) -> int:
        """The number of searches of the daemon's own that began or went on."""
        log = self.daemon.log.read_text()
        return log.count("event=idle_tuning_resumed") + log.count("event=tune_started")


def beside_idle(idle: Condition, requests: int) -> None:
    """Measures requests that come while the daemon searches by itself."""
    before = idle.searches()
    eventually(lambda: idle.searches() > before)
    idle.requests(requests)


def beside_tune(asked: Condition, requests: int) -> None:
    """Measures requests beside `kiln tune`."""

    def events(name: str) -> int:
        return asked.daemon.log.read_text().count(f"event={name}")

    before = events("tune_started")
    command = [program("clients/cli/kiln"), "tune", "heavy", "--seconds", "3600", "--width", "64", "--force"]
    tune = subprocess.Popen(command, env=asked.daemon.environment(), stdout=subprocess.DEVNULL)
    eventually(lambda: events("tune_started") > before)
    asked.requests(requests)
    tune.kill()
    tune.wait()
    eventually(lambda: events("tune_ended") == events("tune_started"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    conditions = {"no search": Condition.requests, "idle search": beside_idle, "kiln tune": beside_tune}
    seconds: dict[str, list[float]] = {name: [] for name in conditions}
    for _ in range(options.rounds):
        for name, measure in conditions.items():
            condition = Condition(options.threads, name == "idle search")
            condition.requests(100)
            condition.seconds.clear()
            measure(condition, options.requests)
            condition.stop()
            seconds[name] += condition.seconds
    base = np.percentile(seconds["no search"], [50, 99])
    for name, taken in seconds.items():
        p50, p99 = np.percentile(taken, [50, 99])
        first = np.median(np.reshape(taken, (options.rounds, -1))[:, :4], 0) * 1e3
        print(f"{name:12} p50 {1e3 * p50:6.2f} ms  p99 {1e3 * p99:6.2f} ms  ratios {p50 / base[0]:.3f} {p99 / base[1]:.3f}  "
              f"first requests {first.round(2)}")


if __name__ == "__main__":
    main()
