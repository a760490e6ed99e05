"""One side of the gradient of an embedding of 50,257 x 768 at 4,096 positions, computed on request.

usage: embedding_step.py kiln|torch|numpy [THREADS]

Reads a number N from each line of standard input, computes N gradients and prints the seconds that each took, as JSON
{"seconds": [...]}. Kiln's daemon is the one at $KILN_ADDRESS.
"""

import json
import sys
import time
from collections.abc import Callable

import numpy

ROWS, WIDTH, POSITIONS = 50257, 768, 4096


def with_kiln(tokens: numpy.ndarray, upstream: numpy.ndarray) -> Callable[[], None]:
    import kiln

    index, values = kiln.tensor(tokens).realize(), kiln.tensor(upstream).realize()

    @kiln.jit
    def gradient(index, values):
        table = kiln.zeros(ROWS, WIDTH).index_add(0, index, values)
        return table, table[0].sum()

    return lambda: gradient(index, values)[1].item()


def with_torch(tokens: numpy.ndarray, upstream: numpy.ndarray) -> Callable[[], None]:
    import torch

    torch.set_num_threads(int(sys.argv[2]))
    index, values = torch.from_numpy(tokens), torch.from_numpy(upstream)
    return lambda: torch.zeros(ROWS, WIDTH).index_add_(0, index, values)


def with_numpy(tokens: numpy.ndarray, upstream: numpy.ndarray) -> Callable[[], None]:
    return lambda: numpy.add.at(numpy.zeros((ROWS, WIDTH), numpy.float32), tokens, upstream)


def main() -> None:
    random = numpy.random.default_rng(0)
    tokens = random.integers(0, ROWS, POSITIONS)
    upstream = random.random((POSITIONS, WIDTH), dtype=numpy.float32)
    make = {"kiln": with_kiln, "torch": with_torch, "numpy": with_numpy}[sys.argv[1]](tokens, upstream)

    def timed() -> float:
        begin = time.perf_counter()
        make()
        return time.perf_counter() - begin

    for request in sys.stdin:
        print(json.dumps({"seconds": [timed() for _ in range(int(request))]}), flush=True)


if __name__ == "__main__":
    main()
