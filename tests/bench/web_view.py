#!/usr/bin/env python3
"""Measures the web view of a daemon that has many programs and kernels.

usage: web_view.py [PROGRAMS [KERNELS]]

Defines that many programs (60) with that many kernels (10,000) together on a device that computes nothing, then opens each view
in Chromium and prints when its first pixels and its rows were there, and how much of a core the daemon used for keeping it up
to date. Needs Debian's packages chromium and chromium-driver, and selenium.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients/web"))

from kilnd_process import NO_PROBES, Kilnd  # noqa: E402
from test_web_view import Browser  # noqa: E402

WATCHED_SECONDS = 30
PROGRAMS = """
import sys
import kiln

programs, kernels = int(sys.argv[1]), int(sys.argv[2])
with kiln.connect(device="null:0"):
    for program in range(programs):
        # The rows become longer, so that no two kernels of a program are the same.
        def chain(x, w):
            for _ in range(kernels // programs):
                columns = x.shape[1]
                x = x @ w[:columns, : columns + 1]
            return x
        step = kiln.jit(chain)
        x, w = kiln.ones((256, 32 + program)), kiln.ones((1024, 1024))
        for _ in range(4):
            y = step(x, w)
        y.numpy()
    print("ready", flush=True)
    sys.stdin.read()
"""
VIEWS = {"live": "#users td", "programs": "td[data-column=name]", "kernels": "td[data-column=name]"}


def cpu_seconds(daemon: Kilnd) -> float:
    """Returns the processor time of the daemon so far."""
    fields = pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def measure(daemon: Kilnd, view: str, rows: str) -> None:
    """Prints the times of one view."""
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(daemon, pathlib.Path(folder))
        try:
            browser.open("/healthz")
            browser.open(f"/web/#/{view}")
            browser.wait(lambda: browser.texts(rows))
            there = browser.driver.execute_script("return performance.now()")
            paint = browser.driver.execute_script(
                "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
            before, since = cpu_seconds(daemon), time.monotonic()
            time.sleep(WATCHED_SECONDS)
            used = (cpu_seconds(daemon) - before) / (time.monotonic() - since)
        finally:
            browser.driver.quit()
    print(f"{view:10} first paint {paint:5.0f} ms, rows after {there:5.0f} ms, then {used:.2%} of a core")


def main() -> None:
    programs, kernels = [*sys.argv[1:], *("60", "10000")[len(sys.argv) - 1 :]]
    with Kilnd(devices="null", config=NO_PROBES) as daemon:
        with subprocess.Popen([sys.executable, "-c", PROGRAMS, programs, kernels], env=daemon.environment(), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as work:
            assert work.stdout is not None and work.stdout.readline() == "ready\n"
            for listed in ("programs", "kernels"):
                with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/web/api/{listed}?limit=1") as answer:
                    print(f"{json.load(answer)['total']} {listed}")
            idle, since = cpu_seconds(daemon), time.monotonic()
            time.sleep(WATCHED_SECONDS)
            print(f"{'no view':10} {(cpu_seconds(daemon) - idle) / (time.monotonic() - since):.2%} of a core")
            for view, rows in VIEWS.items():
                measure(daemon, view, rows)
            work.communicate("")


if __name__ == "__main__":
    main()
