"""Runs programs of different sizes as one user: `mixed_load.py ADDRESS TOKEN RUNS:SIZE[:DEVICES] ...`."""

import sys

import numpy as np

import kiln


def run(runs: int, size: int, devices: int) -> None:
    """Runs a program with kernels of different lengths: products, a softmax, a sum."""
    x = kiln.tensor(np.ones((size, size), np.float32))
    weight = kiln.tensor(np.full((size, size), 0.01, np.float32))
    if devices > 1:
        mesh = kiln.Mesh("data", [f"cpu:{i}" for i in range(devices)])
        x, weight = kiln.shard(x, mesh, ("data",)), kiln.shard(weight, mesh)
    step = kiln.jit(lambda a, b: ((a @ b).softmax(-1) @ b).sum())
    for _ in range(runs):
        step(x, weight).numpy()


with kiln.connect(sys.argv[1], token=sys.argv[2]):
    for load in sys.argv[3:]:
        runs, size, devices = [*map(int, load.split(":")), 1][:3]
        run(runs, size, devices)
