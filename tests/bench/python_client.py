"""What the Python client costs in its own process: its import, and building a graph."""

import json
import os
import statistics
import subprocess
from collections.abc import Iterator

from kilnd_process import ROOT
from report import Row

# Imports alternate within one process tree, each in a new process; the others' share is subtracted.
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


def output_of(program: str) -> list[float]:
    """The numbers a Python program prints, in the environment of deploy/python_environment."""
    python = ROOT / "build/venv/bin/python"
    if not python.exists():
        raise RuntimeError("there is no Python environment with the client: run deploy/python_environment")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(python), "-c", program], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def python_rows(quick: bool) -> Iterator[Row]:
    """Import beyond NumPy and gRPC; a graph of 10,000 nodes."""
    pairs = [output_of(IMPORTS) for _ in range(2 if quick else 9)][1:]  # the first one writes bytecode
    yield Row("import kiln beyond NumPy and gRPC", statistics.median(own for _, own in pairs), "s")
    yield Row("graph of 10,000 nodes in Python", statistics.median(output_of(NODES)), "s")
