"""Trains a transformer on the characters of a text, and writes more of it.

    pip install ./clients/python matplotlib
    python clients/python/examples/shakespeare.py --data input.txt           # 6 layers, 384 wide
    python clients/python/examples/shakespeare.py --data input.txt --small   # 4 layers, 128 wide

The text is any file in UTF-8; "tiny Shakespeare" (1.1 MB) is at
https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt.
A local kilnd is found by itself; KILN_ADDRESS or --address names another one.
"""

import argparse
import json
import statistics
import time

import numpy as np
from progress import Progress, curve, save_curve
from writing import Writer

import kiln
from kiln import nn
from kiln.models import GPT, GPTConfig

SMALL = {"layers": 4, "heads": 4, "width": 128, "context": 64, "batch": 32, "dropout": 0.0}
LARGE = {"layers": 6, "heads": 6, "width": 384, "context": 256, "batch": 64, "dropout": 0.2}


def load(path):
    """The characters that occur, and the text as their numbers: nine tenths to train, the rest."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"--data: {error}") from None
    characters = sorted(set(text))
    number = {character: i for i, character in enumerate(characters)}
    tokens = np.array([number[character] for character in text], np.int32)
    border = len(tokens) * 9 // 10
    return characters, tokens[:border], tokens[border:]


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="the text to learn")
    parser.add_argument("--small", action="store_true", help=f"sizes for a CPU: {SMALL}")
    for name, value in LARGE.items():
        parser.add_argument(f"--{name}", type=type(value), help=f"default: {value}")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--lr", type=float, default=2e-3, help="the largest learning rate")
    parser.add_argument("--half", choices=["float16", "bfloat16"], help="mixed precision")
    parser.add_argument("--sample", type=int, default=400, help="how many characters to write")
    parser.add_argument("--prompt", default="\n", help="what the written text begins with")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--save", help="where the weights go (.safetensors)")
    parser.add_argument("--plot", default="shakespeare-loss.png", help="where the loss curve goes")
    parser.add_argument("--json", action="store_true", help="print the result as JSON alone")
    parser.add_argument("--address", help="the daemon's address; default: the local one")
    parser.add_argument("--device", default="", help="for example opencl:0; default: the first")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for name, value in (SMALL if chosen.small else LARGE).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    return chosen


def optimizer_of(model, lr):
    """AdamW that shrinks matrices, and leaves biases and scales alone."""
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    return kiln.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99))


def schedule_of(optimizer, steps):
    warmup = min(100, steps // 10 + 1)
    return kiln.optim.lr_scheduler.SequentialLR(optimizer, [
        kiln.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=warmup),
        kiln.optim.lr_scheduler.CosineAnnealingLR(
            optimizer, max(steps - warmup, 1), eta_min=optimizer.lr / 20),
    ], [warmup])


class Trainer:
    """The model, and what a step and a measurement are."""

    def __init__(self, chosen, characters, training, held_out):
        self.context = chosen.context
        self.half = chosen.half
        self.model = GPT(GPTConfig(
            len(characters), chosen.context, chosen.layers, chosen.heads, chosen.width,
            chosen.dropout))
        self.optimizer = optimizer_of(self.model, chosen.lr)
        self.scaler = kiln.GradScaler(enabled=chosen.half == "float16")
        self.training = kiln.tensor(training).realize()
        self.held_out = kiln.tensor(held_out).realize()

    def loss(self, text, starts):
        """Of windows of the text that begin at `starts`."""
        places = starts.unsqueeze(1) + kiln.arange(self.context)
        with kiln.autocast(self.half or "float16", enabled=self.half is not None):
            return self.model.loss(text[places], text[places + 1])

    @kiln.jit
    def step(self, starts):
        """The loss before one change of the weights."""
        self.optimizer.zero_grad()
        loss = self.loss(self.training, starts)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss

    @kiln.jit
    def measure(self, starts):
        """The loss on held-out text."""
        return self.loss(self.held_out, starts)

    def validation_loss(self, batch, count=20):
        """The mean over windows that are spread over the held-out text."""
        self.model.eval()
        last = self.held_out.numel() - self.context - 1
        starts = np.linspace(0, last, batch * count).astype(np.int64).reshape(count, batch)
        losses = [self.measure(kiln.tensor(part)) for part in starts]
        self.model.train()
        return statistics.fmean(loss.item() for loss in losses)


def main():
    chosen = options()
    characters, training, held_out = load(chosen.data)
    if len(held_out) <= chosen.context + 1:
        raise SystemExit(f"--data: {len(training) + len(held_out)} characters are not enough for a "
                         f"context of {chosen.context}")
    unknown = sorted(set(chosen.prompt) - set(characters))
    if unknown or not chosen.prompt:
        raise SystemExit(f"--prompt: it needs characters of the text, not {unknown}")
    kiln.connect(chosen.address, chosen.device)
    kiln.manual_seed(chosen.seed)
    trainer = Trainer(chosen, characters, training, held_out)
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    if not chosen.json:
        print(f"{len(training):,} characters of {len(characters)} kinds to train on, "
              f"{len(held_out):,} held out; {parameters / 1e6:.1f} million parameters")
    schedule = schedule_of(trainer.optimizer, chosen.steps)
    draws = np.random.default_rng(chosen.seed)
    progress = Progress(chosen.steps, "training")
    pending, losses, times = [], [], []
    first_seconds = 0.0
    for i in range(chosen.steps):
        start = time.perf_counter()
        starts = draws.integers(0, len(training) - chosen.context, chosen.batch)
        pending.append(trainer.step(kiln.tensor(starts)))
        schedule.step()
        if i == 0:
            pending[0].item()
            first_seconds = time.perf_counter() - start
        if len(pending) == 10 or i + 1 == chosen.steps:  # steps go on while ten before are read
            losses += [loss.item() for loss in pending]
            pending = []
        times.append(time.perf_counter() - start)
        progress.update(i + 1, f"loss {losses[-1]:.3f}" if losses else "")
    step_seconds = statistics.fmean(times[1:]) if len(times) > 1 else first_seconds
    validation = trainer.validation_loss(chosen.batch)
    if chosen.save:
        kiln.save(trainer.model.state_dict(), chosen.save)
    writer = Writer(trainer.model, chosen.temperature)
    number = {character: i for i, character in enumerate(characters)}
    start = time.perf_counter()
    written = writer.write([number[character] for character in chosen.prompt], chosen.sample)
    seconds = time.perf_counter() - start
    text = "".join(characters[token] for token in written)
    result = {
        "validation_loss": validation, "loss_first": losses[0],
        "loss_last": statistics.fmean(losses[-50:]), "steps": len(losses),
        "parameters": parameters, "first_step_seconds": first_seconds,
        "step_seconds": step_seconds, "traces": trainer.step.traces,
        "decode_traces": writer.feed.traces, "characters": len(written), "text": text,
    }  # fmt: skip
    if chosen.json:
        print(json.dumps(result))
        return
    print(f"\n{chosen.prompt}{text}\n")
    print(f"loss {curve(losses)} {losses[0]:.3f} to {result['loss_last']:.3f}")
    if save_curve(losses, chosen.plot, "Characters: training loss"):
        print(f"loss curve: {chosen.plot}")
    print(f"first step {first_seconds:.2f} s, then {step_seconds * 1e3:.1f} ms a step; "
          f"{len(written) / max(seconds, 1e-9):.0f} characters written a second")
    print(f"validation loss: {validation:.4f}")


if __name__ == "__main__":
    main()
