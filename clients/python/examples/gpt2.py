"""GPT-2 small (124 million parameters): trains from scratch, or writes with published weights.

    pip install ./clients/python
    python clients/python/examples/gpt2.py --steps 3                 # random weights and tokens
    python clients/python/examples/gpt2.py --steps 0 --weights DIR   # writes

DIR holds model.safetensors, vocab.json and merges.txt, as https://huggingface.co/openai-community/gpt2
has them. A local kilnd is found by itself; KILN_ADDRESS or --address names another one.
"""

import argparse
import json
import pathlib
import statistics
import time

import numpy as np
from byte_pairs import BytePairs
from progress import Progress
from writing import Writer

import kiln
from kiln.models import GPT, GPTConfig


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", help="the folder with the published files")
    parser.add_argument("--data", help="a text to train on (with --weights); default: made up")
    parser.add_argument("--steps", type=int, default=5, help="of training")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=256, help="tokens in a sequence of training")
    parser.add_argument("--lr", type=float, default=1e-4)
    for name in ("vocabulary", "context", "layers", "heads", "width"):
        parser.add_argument(f"--{name}", type=int, default=getattr(GPTConfig, name))
    parser.add_argument("--prompt", default="The meaning of life is")
    parser.add_argument("--sample", type=int, default=40, help="how many tokens to write")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--json", action="store_true", help="print the result as JSON alone")
    parser.add_argument("--address", help="the daemon's address; default: the local one")
    parser.add_argument("--device", default="", help="for example opencl:0; default: the first")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def tokens_of(chosen, pairs):
    """Returns the tokens to train on."""
    if chosen.data is None:  # a few sentences of random tokens, again and again
        numbers = np.random.default_rng(chosen.seed)
        return np.tile(numbers.integers(0, chosen.vocabulary, chosen.length // 4 + 1), 40)
    if pairs is None:
        raise SystemExit("--data: a text becomes tokens by the vocabulary in --weights")
    return np.array(pairs.encode(pathlib.Path(chosen.data).read_text(encoding="utf-8")))


def train(chosen, model, tokens):
    """Returns the losses of the steps, and how the daemon ran them."""
    if len(tokens) <= chosen.length:
        raise SystemExit(
            f"--data: {len(tokens)} tokens are not enough for --length {chosen.length}")
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = kiln.optim.AdamW(groups, lr=chosen.lr)

    @kiln.jit
    def step(sequences):
        optimizer.zero_grad()
        loss = model.loss(sequences[:, :-1], sequences[:, 1:])
        loss.backward()
        optimizer.step()
        return loss

    kiln.realize(*model.parameters())
    numbers = np.random.default_rng(chosen.seed)
    progress = Progress(chosen.steps, "training")
    losses, times = [], []
    for i in range(chosen.steps):
        starts = numbers.integers(0, len(tokens) - chosen.length, chosen.batch)
        sequences = np.stack([tokens[start : start + chosen.length + 1] for start in starts])
        begin = time.perf_counter()
        losses.append(step(kiln.tensor(sequences)).item())
        times.append(time.perf_counter() - begin)
        progress.update(i + 1, f"loss {losses[-1]:.4f}")
    (program,) = step.programs()
    return {
        "loss_first": losses[0], "loss_last": losses[-1], "first_step_seconds": times[0],
        "step_seconds_median": statistics.median(times[1:] or times),
        "compile_seconds": program.compile_seconds, "kernels": program.kernels,
        "distinct_kernels": program.distinct_kernels,
        "arena_mebibytes": program.arena_bytes / 2**20,
    }  # fmt: skip


def main():
    chosen = options()
    kiln.connect(chosen.address, chosen.device)
    kiln.manual_seed(chosen.seed)
    model = GPT(GPTConfig(
        chosen.vocabulary, chosen.context, chosen.layers, chosen.heads, chosen.width))
    pairs = None
    if chosen.weights is not None:
        folder = pathlib.Path(chosen.weights)
        try:
            pairs = BytePairs(folder)
            model.load_pretrained(kiln.load(folder / "model.safetensors"))
        except (OSError, ValueError) as error:
            raise SystemExit(f"--weights: {error}") from None
    result = {"parameters": sum(parameter.numel() for parameter in model.parameters())}
    if chosen.steps:
        result.update(train(chosen, model, tokens_of(chosen, pairs)))
    if pairs is not None and chosen.sample:
        numbers = pairs.encode(chosen.prompt)
        result["text"] = chosen.prompt + pairs.decode(
            Writer(model, chosen.temperature).write(numbers, chosen.sample))
    if chosen.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name.replace('_', ' ')}: {value:.4g}" if isinstance(value, float) else (
            f"{name.replace('_', ' ')}: {value}"))


if __name__ == "__main__":
    main()
