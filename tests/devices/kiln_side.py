"""Kiln's side of the comparison with PyTorch: kernels and training steps, on the daemon at $KILN_ADDRESS.

usage: kiln_side.py matmul|stream|embedding|resnet50|gpt2 [--quick|--processor]

Each result is one line, {"name": ..., "seconds": ...}, or with "error" instead.
"""

import contextlib
import sys
from collections.abc import Callable

import numpy
from cases import COLUMNS, Matmul, Stream, embedding, matmuls, size_of, streams
from timing import report, seconds_of

import kiln
from kiln import models, nn

RANDOM = numpy.random.default_rng(0)
F = nn.functional


def on_device(*shape: int) -> "kiln.Tensor":
    """Returns float32 numbers between -1 and 1, made on the device: transfers are not measured."""
    return (kiln.rand(*shape) * 2 - 1).realize()


def timed(work: Callable[[], object], size: str) -> float:
    """Returns the seconds of one of many calls."""
    return seconds_of(work, kiln.default_connection().synchronize, size == "quick")


def matmul(case: Matmul, size: str) -> dict:
    """Returns seconds, and the largest error of a few rows relative to the largest value."""
    kiln.set_float32_matmul_precision("high" if case.dtype == "tf32" else "highest")
    dtype = {"fp16": kiln.float16, "bf16": kiln.bfloat16}.get(case.dtype, kiln.float32)
    a, b = (on_device(case.size, case.size).cast(dtype).realize() for _ in range(2))

    @kiln.jit
    def product(a, b):
        return a @ b

    left, right = (x.cast(kiln.float32).numpy().astype(numpy.float64) for x in (a[:4], b))
    expected = left @ right
    got = product(a, b)[:4].cast(kiln.float32).numpy()
    error = float(numpy.abs(got - expected).max() / numpy.abs(expected).max())
    allowed = {"fp32": 1e-4, "tf32": 5e-3, "fp16": 5e-3, "bf16": 3e-2}[case.dtype]
    if error > allowed:
        return {"error": f"the product is wrong: error {error:.1e} of its largest value, {allowed:.0e} allowed"}
    return {"seconds": timed(lambda: product(a, b), size), "relative_error": error}


def stream(case: Stream, size: str) -> dict:
    """Returns the seconds of one run."""
    elements = case.megabytes * 2**20 // 4
    x = on_device(elements // COLUMNS, COLUMNS) if case.kind != "Adam" else None
    weight, bias = on_device(COLUMNS), on_device(COLUMNS)
    if case.kind == "batch norm":
        x = x.reshape(-1, 64, 64, 64).realize() if size != "quick" else x.reshape(-1, 64, 16, 16).realize()
        weight, bias = on_device(64), on_device(64)
    if case.kind == "Adam":
        states = [on_device(elements // 4).abs().realize() for _ in range(4)]

        @kiln.jit
        def adam(p, g, m, v):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v

        return {"seconds": timed(lambda: adam(*states), size)}
    work = kiln.jit({
        "scale": lambda x, w, b: x * 1.5,
        "softmax": lambda x, w, b: x.softmax(-1),
        "layer norm": lambda x, w, b: F.layer_norm(x, (COLUMNS,), w, b),
        "batch norm": lambda x, w, b: F.batch_norm(x, x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0), w, b),
    }[case.kind])
    return {"seconds": timed(lambda: work(x, weight, bias), size)}


def embedding_backward(size: str) -> dict:
    """Returns the seconds of an embedding's gradient: adds the positions' gradients to rows of a table of zeros."""
    rows, width, positions = embedding(size)
    index = kiln.tensor(RANDOM.integers(0, rows, positions)).realize()
    values = on_device(positions, width)

    @kiln.jit
    def gradient(index, values):
        return kiln.zeros(rows, width).index_add(0, index, values)

    return {"seconds": timed(lambda: gradient(index, values), size)}


def training_step(model, optimizer, loss_of: Callable, x, y, dtype) -> Callable[[], object]:
    """Returns a training step, in mixed precision if `dtype` is a short one."""
    scaler = kiln.GradScaler(enabled=dtype == kiln.float16)
    x, y = kiln.tensor(x).realize(), kiln.tensor(y).realize()

    @kiln.jit
    def train(x, y):
        optimizer.zero_grad()
        with contextlib.nullcontext() if dtype == kiln.float32 else kiln.autocast(dtype):
            loss = loss_of(x, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return lambda: train(x, y)


def resnet50(size: str) -> dict:
    """ResNet-50 on 224 x 224 images, batch 64, float16; on a processor batch 8, float32."""
    batch, side = {"gpu": (64, 224), "processor": (8, 224), "quick": (1, 8)}[size]
    dtype = kiln.float32 if size == "processor" else kiln.float16
    small = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)]
    model = nn.Sequential(*small) if size == "quick" else models.resnet50()
    optimizer = kiln.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = RANDOM.random((batch, 3, side, side), dtype=numpy.float32)
    y = RANDOM.integers(0, 10, batch)
    step = training_step(model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, dtype)
    return {"seconds": timed(step, size)}


def gpt2(size: str) -> dict:
    """GPT-2 small at a context of 256, batch 8, bfloat16; on a processor batch 1, float32."""
    dtype = kiln.float32 if size == "processor" else kiln.bfloat16
    config = models.GPTConfig(vocabulary=100, context=16, layers=1, heads=2, width=32) if size == "quick" else models.GPTConfig()
    model = models.GPT(config)
    optimizer = kiln.optim.AdamW(model.parameters(), lr=3e-4)
    tokens = RANDOM.integers(0, config.vocabulary, {"gpu": (8, 257), "processor": (1, 257), "quick": (1, 9)}[size])
    step = training_step(model, optimizer, model.loss, tokens[:, :-1].copy(), tokens[:, 1:].copy(), dtype)
    return {"seconds": timed(step, size)}


def main() -> None:
    size = size_of(sys.argv)
    kiln.manual_seed(0)
    what = sys.argv[1]
    if what == "matmul":
        for case in matmuls(size):
            report(case.name, lambda case=case: matmul(case, size))
    elif what == "stream":
        for case in streams(size):
            report(case.name, lambda case=case: stream(case, size))
    else:
        one = {"embedding": embedding_backward, "resnet50": resnet50, "gpt2": gpt2}[what]
        report(what, lambda: one(size))


if __name__ == "__main__":
    main()
