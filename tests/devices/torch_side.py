"""PyTorch's side of kiln_side.py, on the first CUDA device; also the copy that streams are compared with, and CUDA graphs.

usage: torch_side.py matmul|stream|embedding|resnet50|gpt2|replay [--quick]
"""

import contextlib
import pathlib
import sys
import time
from collections.abc import Callable

import torch
from cases import Matmul, embedding, matmuls, size_of, streams
from timing import report, seconds_of
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

from torch_step import GPT2, residual  # noqa: E402


def timed(work: Callable[[], object], size: str) -> float:
    """Returns the seconds of one of many calls."""
    return seconds_of(work, torch.cuda.synchronize, size == "quick")


def matmul(case: Matmul, size: str) -> dict:
    """Measures cuBLAS."""
    torch.backends.cuda.matmul.allow_tf32 = case.dtype == "tf32"
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(case.dtype, torch.float32)
    a, b, out = (torch.randn(case.size, case.size, device="cuda").to(dtype) for _ in range(3))
    return {"seconds": timed(lambda: torch.matmul(a, b, out=out), size)}


def copy(size: str) -> dict:
    """Measures a copy from one tensor to another."""
    megabytes = streams(size)[0].megabytes
    x, y = (torch.zeros(megabytes * 2**18, device="cuda") for _ in range(2))
    return {"seconds": timed(lambda: y.copy_(x), size)}


def embedding_backward(size: str) -> dict:
    """Measures the backward pass of nn.functional.embedding."""
    rows, width, positions = embedding(size)
    table = torch.zeros(rows, width, device="cuda", requires_grad=True)
    index = torch.randint(0, rows, (positions,), device="cuda")
    upstream = torch.rand(positions, width, device="cuda")
    result = nn.functional.embedding(index, table)
    return {"seconds": timed(lambda: torch.autograd.grad(result, table, upstream, retain_graph=True), size)}


def training_step(net: nn.Module, optimizer, x, y, dtype: torch.dtype) -> Callable[[], object]:
    """Returns a training step in mixed precision."""
    scaler = torch.cuda.amp.GradScaler(enabled=dtype == torch.float16)

    def train() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype):
            loss = nn.functional.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return train


def resnet50(size: str) -> dict:
    """As in kiln_side; also with channels last, and the faster one counts."""
    torch.backends.cudnn.benchmark = True
    batch, side = (2, 64) if size == "quick" else (64, 224)
    seconds = {}
    for layout in (torch.contiguous_format, torch.channels_last):
        with contextlib.suppress(RuntimeError):
            net = residual((3, 4, 6, 3), True, 1000).cuda().to(memory_format=layout)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
            x = torch.rand(batch, 3, side, side, device="cuda").to(memory_format=layout)
            y = torch.randint(0, 10, (batch,), device="cuda")
            seconds[str(layout)] = timed(training_step(net, optimizer, x, y, torch.float16), size)
    return {"seconds": min(seconds.values()), "layout": min(seconds, key=seconds.get)}


def gpt2(size: str) -> dict:
    """As in kiln_side."""
    torch.set_default_device("cuda")  # the model makes its mask in every step
    net = GPT2(layers=1) if size == "quick" else GPT2()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    tokens = torch.randint(0, 50257, (1, 9) if size == "quick" else (8, 257))
    return {"seconds": timed(training_step(net, optimizer, tokens[:, :-1], tokens[:, 1:], torch.bfloat16), size)}


def replay(kernels: int) -> dict:
    """Returns the seconds of a CUDA graph of this many small kernels, with a wait after each run."""
    x, y = (torch.zeros(256, device="cuda") for _ in range(2))
    torch.add(x, 1, out=y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(kernels):
            torch.add(x, 1, out=y)

    def once() -> float:
        begin = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    return {"seconds": sorted(once() for _ in range(200))[100]}


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no CUDA here")
    size = size_of(sys.argv)
    what = sys.argv[1]
    if what == "matmul":
        for case in matmuls(size):
            report(case.name, lambda case=case: matmul(case, size))
    elif what == "replay":
        for kernels in (100, 1000):
            report(f"replay of {kernels} small kernels, a kernel", lambda kernels=kernels: replay(kernels))
    else:
        one = {"stream": copy, "embedding": embedding_backward, "resnet50": resnet50, "gpt2": gpt2}[what]
        report(what, lambda: one(size))


if __name__ == "__main__":
    main()
