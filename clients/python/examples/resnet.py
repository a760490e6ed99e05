"""Trains a residual network on images: ResNet-18 on 32 x 32, or ResNet-50 on 224 x 224.

    pip install ./clients/python
    python clients/python/examples/resnet.py                          # ResNet-18, made-up images
    python clients/python/examples/resnet.py --model resnet50 --steps 5
    python clients/python/examples/resnet.py --data images.npz        # x (N, 3, H, W), y (N,)

Made-up images are noise around one pattern for each class, which a network can tell apart. A local
kilnd is found by itself; KILN_ADDRESS or --address names another one.
"""

import argparse
import json
import statistics
import time

import numpy as np
from progress import Progress, curve

import kiln
from kiln import nn
from kiln.models import resnet18, resnet34, resnet50, resnet101

MODELS = {"resnet18": resnet18, "resnet34": resnet34, "resnet50": resnet50,
          "resnet101": resnet101}  # fmt: skip


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="resnet18")
    parser.add_argument("--size", type=int, help="of an image; default: 32, resnet50 and 101: 224")
    parser.add_argument("--data", help="an .npz file with images x (N, 3, H, W) and labels y (N,)")
    parser.add_argument("--classes", type=int, default=10, help="of made-up images")
    parser.add_argument("--batch", type=int, help="default: 32, resnet50 and 101: 8")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--lr", type=float, help="default: 0.3 for each 256 images of a batch")
    parser.add_argument("--half", choices=["float16", "bfloat16"], help="mixed precision")
    parser.add_argument("--json", action="store_true", help="print the result as JSON alone")
    parser.add_argument("--address", help="the daemon's address; default: the local one")
    parser.add_argument("--device", default="", help="for example opencl:0; default: the first")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    large = chosen.model in ("resnet50", "resnet101")
    chosen.size = chosen.size or (224 if large else 32)
    chosen.batch = chosen.batch or (8 if large else 32)
    chosen.lr = 0.3 * chosen.batch / 256 if chosen.lr is None else chosen.lr
    return chosen


def load(chosen):
    """Images as float32 around 0, and labels."""
    if chosen.data is None:
        return made_up(chosen.classes, chosen.size, max(4 * chosen.batch, 64), chosen.seed)
    try:
        with np.load(chosen.data) as arrays:
            images, labels = arrays["x"], arrays["y"]
    except (OSError, ValueError, KeyError) as error:
        raise SystemExit(f"--data: {error}") from None
    if images.ndim != 4 or images.shape[1] != 3 or labels.shape != images.shape[:1]:
        raise SystemExit(f"--data: x has shape {images.shape} and y {labels.shape}; they must be "
                         "(N, 3, H, W) and (N,)")
    images = images.astype(np.float32) / (255.0 if images.dtype == np.uint8 else 1.0)
    mean, deviation = images.mean((0, 2, 3), keepdims=True), images.std((0, 2, 3), keepdims=True)
    return (images - mean) / (deviation + 1e-6), labels.astype(np.int64)


def made_up(classes, size, count, seed):
    numbers = np.random.default_rng(seed)
    coarse = numbers.standard_normal((classes, 3, 4, 4)).astype(np.float32)
    patterns = coarse.repeat(-(-size // 4), 2).repeat(-(-size // 4), 3)[:, :, :size, :size]
    labels = numbers.integers(0, classes, count)
    noise = numbers.standard_normal((count, 3, size, size), np.float32)
    return patterns[labels] + 0.5 * noise, labels


def main():
    chosen = options()
    images, labels = load(chosen)
    kiln.connect(chosen.address, chosen.device)
    kiln.manual_seed(chosen.seed)
    model = MODELS[chosen.model](
        int(labels.max()) + 1, small_images=images.shape[-1] < 64, zero_init_residual=True)
    optimizer = kiln.optim.SGD(
        model.parameters(), lr=chosen.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = kiln.optim.lr_scheduler.OneCycleLR(
        optimizer, chosen.lr, max(chosen.steps, 4), div_factor=5.0)
    scaler = kiln.GradScaler(enabled=chosen.half == "float16")
    half = chosen.half

    @kiln.jit
    def step(x, y):
        optimizer.zero_grad()
        with kiln.autocast(half or "float16", enabled=half is not None):
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss, (logits.argmax(-1) == y).float().mean()

    parameters = sum(parameter.numel() for parameter in model.parameters())
    kiln.realize(*model.parameters(), *model.buffers())
    if not chosen.json:
        print(f"{chosen.model}: {parameters / 1e6:.1f} million parameters, images of "
              f"{images.shape[2]} x {images.shape[3]}, batches of {chosen.batch}")
    draws = np.random.default_rng(chosen.seed)
    progress = Progress(chosen.steps, "training")
    losses, accuracies, times = [], [], []
    for i in range(chosen.steps):
        places = draws.integers(0, len(images), chosen.batch)
        start = time.perf_counter()
        loss, accuracy = step(kiln.tensor(images[places]), kiln.tensor(labels[places]))
        losses.append(loss.item())
        accuracies.append(accuracy.item())
        times.append(time.perf_counter() - start)
        schedule.step()
        progress.update(i + 1, f"loss {losses[-1]:.4f}")
    (program,) = step.programs()
    later = times[1:] or times
    tenth = max(len(losses) // 10, 1)
    result = {
        "loss_first": statistics.fmean(losses[:tenth]),
        "loss_last": statistics.fmean(losses[-tenth:]),
        "accuracy_last": statistics.fmean(accuracies[-tenth:]), "steps": len(losses),
        "parameters": parameters, "first_step_seconds": times[0],
        "step_seconds_median": statistics.median(later), "traces": step.traces,
        "compile_seconds": program.compile_seconds, "kernels": program.kernels,
        "distinct_kernels": program.distinct_kernels,
        "arena_mebibytes": program.arena_bytes / 2**20,
    }  # fmt: skip
    if chosen.json:
        print(json.dumps(result))
        return
    print(f"loss {curve(losses)} {result['loss_first']:.3f} to {result['loss_last']:.4f}, "
          f"accuracy {result['accuracy_last']:.2f}")
    print(f"first step {times[0]:.1f} s (compiling {result['compile_seconds']:.1f} s: "
          f"{result['kernels']} kernels, {result['distinct_kernels']} distinct), then "
          f"{result['step_seconds_median'] * 1e3:.0f} ms a step")


if __name__ == "__main__":
    main()
