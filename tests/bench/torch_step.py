"""PyTorch's side of a training step: the model named by the first argument, with kiln_step.py's batch, optimizer and
weights.

Reads a number N from each line of standard input, does N steps and prints the seconds that each took and the last loss, as a
JSON object. The second argument is the number of threads, the third the mode: eager, channels-last (images have their
channels next to each other in memory) or compile (torch.compile).
"""

import functools
import json
import sys
import time

import same_start
import torch
from torch import nn


def convnet() -> nn.Module:
    """Two blocks of two convolutions, batch norm and pooling, then a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5), nn.ReLU(),
        nn.Conv2d(32, 32, 5), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.Conv2d(64, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 3 * 3, 10),
    )  # fmt: skip


def normalized(channels: int, out: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """A convolution and its batch norm."""
    return nn.Sequential(nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out))


class Block(nn.Module):
    """A bottleneck, or two 3 x 3 convolutions, with a shortcut."""

    def __init__(self, channels: int, width: int, stride: int, bottleneck: bool):
        super().__init__()
        out = 4 * width if bottleneck else width
        parts = [(channels, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)] if bottleneck else [
            (channels, width, 3, stride), (width, width, 3, 1)]
        layers = []
        for part in parts:
            layers += [normalized(*part), nn.ReLU()]
        self.body = nn.Sequential(*layers[:-1])
        self.shortcut = nn.Identity() if stride == 1 and channels == out else normalized(channels, out, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, channels, H, W) to (N, out, H / stride, W / stride)."""
        return (self.body(x) + self.shortcut(x)).relu()


def residual(counts: tuple, bottleneck: bool, classes: int) -> nn.Module:
    """A residual network, with the stem for large images if it has bottlenecks."""
    layers = [normalized(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)] if bottleneck else [normalized(3, 64, 3), nn.ReLU()]
    channels = 64
    for i, count in enumerate(counts):
        for j in range(count):
            layers.append(Block(channels, 64 << i, 2 if i > 0 and j == 0 else 1, bottleneck))
            channels = (64 << i) * (4 if bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class GPT2(nn.Module):
    """GPT-2 small: pre-norm blocks with a causal mask, and logits from the embedding of the tokens."""

    def __init__(self, vocabulary: int = 50257, context: int = 1024, layers: int = 12, heads: int = 12, width: int = 768):
        super().__init__()
        gelu = functools.partial(nn.functional.gelu, approximate="tanh")
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([
            nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, gelu, batch_first=True, norm_first=True)
            for _ in range(layers)
        ])  # fmt: skip
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Integers (N, T) to logits (N, vocabulary, T), as cross_entropy takes them."""
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.wte(tokens) + self.wpe.weight[:length]
        for block in self.blocks:
            x = block(x, mask)
        return nn.functional.linear(self.ln_f(x), self.wte.weight).transpose(1, 2)


def setup(model: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Returns the model and its optimizer."""
    if model == "convnet":
        net = convnet()
        return net, torch.optim.Adam(net.parameters())
    if model == "gpt2":
        net = GPT2()
        return net, torch.optim.AdamW(net.parameters(), lr=3e-4)
    net = residual((3, 4, 6, 3), True, 1000) if model == "resnet50" else residual((2, 2, 2, 2), False, 10)
    return net, torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)


def in_kilns_order(net: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Returns the model's parameters and their names. Blocks of a transformer begin with their norm."""
    named = list(net.named_parameters())
    if not isinstance(net, GPT2):
        return named
    parts = ["norm1", "self_attn", "norm2", "linear1", "linear2"]

    def place(item: tuple[str, nn.Parameter]) -> tuple[int, int]:
        name = item[0].split(".")
        if name[0] != "blocks":
            return (-1 if name[0] in ("wte", "wpe") else len(net.blocks)), 0
        return int(name[1]), parts.index(name[2])

    return sorted(named, key=place)


def main() -> None:
    torch.set_num_threads(int(sys.argv[2]))
    net, optimizer = setup(sys.argv[1])
    with torch.no_grad():
        for number, (name, parameter) in enumerate(in_kilns_order(net)):
            parameter.copy_(torch.from_numpy(same_start.weight(number, name, tuple(parameter.shape))))
    x, y = (torch.from_numpy(array) for array in same_start.batch(sys.argv[1]))
    mode = sys.argv[3]
    if mode == "channels-last":
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)

    def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(net(x), y)

    if mode == "compile":
        loss_of = torch.compile(loss_of)

    def step() -> float:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    for request in sys.stdin:
        seconds = []
        for _ in range(int(request)):
            begin = time.perf_counter()
            loss = step()
            seconds.append(time.perf_counter() - begin)
        print(json.dumps({"seconds": seconds, "loss": loss}), flush=True)


if __name__ == "__main__":
    main()
