"""PyTorch's side of single ops, computed on request: `bench_compute op` has Kiln's, of the same sizes.

usage: op_step.py sort|topk|gather THREADS

Reads a number N from each line of standard input, computes the op N times and prints the seconds that each took, as JSON
{"seconds": [...]}.
"""

import json
import sys
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(int(sys.argv[2]))


def sort():
    """Values and positions, the first of equal elements first."""
    x = torch.rand(2**20) * 2 - 1
    return lambda: torch.sort(x, stable=True)


def topk():
    """The 50 best of 64 vocabularies."""
    x = torch.rand(64, 50257) * 2 - 1
    return lambda: torch.topk(x, 50)


def gather():
    """Rows of an embedding."""
    table = torch.rand(50257, 768)
    index = torch.arange(8192) * 7919 % 50257
    return lambda: torch.nn.functional.embedding(index, table)


def main() -> None:
    op = {"sort": sort, "topk": topk, "gather": gather}[sys.argv[1]]()

    def timed() -> float:
        begin = time.perf_counter()
        op()
        return time.perf_counter() - begin

    for request in sys.stdin:
        print(json.dumps({"seconds": [timed() for _ in range(int(request))]}), flush=True)


if __name__ == "__main__":
    main()
