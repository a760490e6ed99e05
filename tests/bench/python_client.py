"""Measures the Python client's costs in its own process: import, building a graph, and loops without kiln.jit."""

import json
import os
import statistics
import subprocess
from collections.abc import Iterator
from typing import Any

from kilnd_process import ROOT, Kilnd, program
from report import Row

# Imports alternate within one process tree, each in a new process; the time of the other packages is subtracted.
IMPORTS = """
import json, time
start = time.perf_counter()
import grpc, numpy
from google.protobuf import descriptor_pb2
others = time.perf_counter()
import kiln
print(json.dumps([others - start, time.perf_counter() - others]))
"""
NODES = """
import json, time
import kiln
x, y = kiln.zeros(4, 4), kiln.zeros(4, 1)
times = []
for _ in range(7):
    start = time.perf_counter()
    z = x
    for _ in range(2500):
        z = ((z * y).relu() - 1.0) + x
    times.append(time.perf_counter() - start)
print(json.dumps(times))
"""


def output_of(*arguments: str, **environment: str) -> Any:
    """Returns what a Python program prints, parsed as JSON, run in the environment of deploy/python_environment."""
    python = ROOT / "build/venv/bin/python"
    if not python.exists():
        raise RuntimeError("there is no Python environment with the client: run deploy/python_environment")
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(python), *arguments], env=inherited | environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def python_rows(quick: bool) -> Iterator[Row]:
    """Import time in addition to NumPy and gRPC; a graph of 10,000 nodes."""
    pairs = [output_of("-c", IMPORTS) for _ in range(2 if quick else 9)][1:]  # the first one writes bytecode
    yield Row("import kiln beyond NumPy and gRPC", statistics.median(own for _, own in pairs), "s")
    yield Row("graph of 10,000 nodes in Python", statistics.median(output_of("-c", NODES)), "s")


def eager_rows(quick: bool) -> Iterator[Row]:
    """Steps outside kiln.jit, next to those of the same network in it."""
    with Kilnd() as daemon:
        echo = f"unix:{daemon.folder}/echo.sock"
        server = subprocess.Popen([program("tests/bench/bench_echo_server"), echo], stdout=subprocess.PIPE, text=True)
        try:
            server.stdout.readline()
            times = output_of(str(ROOT / "tests/bench/eager_loops.py"), "2" if quick else "100", echo, KILN_ADDRESS=daemon.address)
        finally:
            server.terminate()
            server.wait()
    small, echoes = times.pop("small")
    for name, (eager, traced) in times.items():
        yield Row(f"{name} step, eager", statistics.median(eager), "s", "kiln.jit", statistics.median(traced))
    yield Row("eager (x + 1).sum().item()", statistics.median(small), "s", "gRPC echo, Python", statistics.median(echoes))
