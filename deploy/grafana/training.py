"""Trains small networks of ever new sizes until its standard input ends: something to look at on the dashboard."""

import itertools
import sys
import threading

import numpy as np

import kiln
from kiln import nn, optim


def train(width: int) -> None:
    """Trains a network; its step is a program that no other width has."""
    x = kiln.tensor(np.random.default_rng(width).normal(size=(64, 8)).astype(np.float32))
    y = kiln.tensor(np.arange(64) % 4)
    model = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @kiln.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(20):
        float(step(x, y))


ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
for width in itertools.count(16):
    for _ in range(2):  # the second session finds the program that the first one has compiled
        with kiln.connect():
            train(width)
    if ended.is_set():
        break
