"""GPT: a decoder-only transformer (Radford et al., 2019), with GPT-2's parameter names.

Published GPT-2 weights (a safetensors file) are loaded with
`model.load_pretrained(kiln.load(path))`.
"""

import dataclasses
import math
from typing import Iterator, List, Mapping, Tuple

from kiln import nn
from kiln._array_api.creation import zeros
from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import no_grad
from kiln.tensor import Tensor
from kiln.variables import Dim, Variable


@dataclasses.dataclass(frozen=True)
class GPTConfig:
    """Sizes of a GPT. The defaults are GPT-2 small's: 124 million parameters.

    Raises InvalidArgument unless heads divides width.
    """

    vocabulary: int = 50257
    context: int = 1024
    layers: int = 12
    heads: int = 12
    width: int = 768
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise InvalidArgument(
                f"a width of {self.width} does not divide into {self.heads} heads")


Cache = List[Tuple[Tensor, Tensor]]
"""For each layer its keys and values (N, heads, context, width / heads), zero where none is yet."""


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)
        self.resid_dropout = nn.Dropout(config.dropout)

    def _split(self, x: Tensor) -> List[Tensor]:
        """Returns queries, keys and values (N, heads, T, width / heads)."""
        n, t, width = x.shape
        parts = self.c_attn(x).reshape(n, t, 3, self.heads, width // self.heads)
        return [parts[:, :, i].transpose(1, 2) for i in range(3)]

    def _join(self, x: Tensor) -> Tensor:
        n, heads, t, size = x.shape
        return self.resid_dropout(self.c_proj(x.transpose(1, 2).reshape(n, t, heads * size)))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, T, width) to the same shape."""
        query, key, value = self._split(x)
        return self._join(nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True))

    def decode(self, x: Tensor, length: Dim, cache: Tuple[Tensor, Tensor]) -> Tensor:
        """Handles the last of `length` tokens (N, 1, width); its key and value go to the cache."""
        query, key, value = self._split(x)
        keys, values = cache
        keys[:, :, length - 1 : length] = key
        values[:, :, length - 1 : length] = value
        return self._join(nn.functional.scaled_dot_product_attention(
            query, keys[:, :, :length], values[:, :, :length]))


class Block(nn.Module):
    """Attention and a two-layer perceptron, each with normalized input and added to its input."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.width)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (N, T, width) to the same shape."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))

    def decode(self, x: Tensor, length: Dim, cache: Tuple[Tensor, Tensor]) -> Tensor:
        """Handles one token, see Attention.decode."""
        x = x + self.attn.decode(self.ln_1(x), length, cache)
        return x + self.mlp(self.ln_2(x))


class MLP(nn.Module):
    """Two linear layers with GELU (the tanh form, as in GPT-2) between them."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.width, 4 * config.width)
        self.c_proj = nn.Linear(4 * config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (…, width) to the same shape."""
        return self.dropout(self.c_proj(nn.functional.gelu(self.c_fc(x), "tanh")))


class GPT(nn.Module):
    """Embeddings of tokens and positions, blocks, and logits from the token embedding."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocabulary, config.width)
        self.wpe = nn.Embedding(config.context, config.width)
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.ln_f = nn.LayerNorm(config.width)
        self._initialize()

    def _initialize(self) -> None:
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.ndim == 2:
                # Addends of the residual stream start smaller, the more layers there are.
                scale = math.sqrt(2 * self.config.layers) if "c_proj" in name else 1.0
                nn.init.normal_(parameter, std=0.02 / scale)

    def forward(self, tokens: Tensor) -> Tensor:
        """Maps integers (N, T), T up to the context, to logits (N, T, vocabulary).

        Raises InvalidArgument for more tokens.
        """
        length = tokens.shape[1]
        if length > self.config.context:
            raise InvalidArgument(
                f"{length} tokens do not fit into the model's context of {self.config.context}")
        x = self.drop(self.wte(tokens) + self.wpe.weight[:length])
        for block in self._blocks():
            x = block(x)
        return self._logits(x)

    def _blocks(self) -> Iterator[Block]:
        return (block for block in self.h if isinstance(block, Block))

    def _logits(self, x: Tensor) -> Tensor:
        return nn.functional.linear(self.ln_f(x), self.wte.weight)

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Returns the mean cross entropy of the next tokens, integers (N, T)."""
        logits = self(tokens)
        return nn.functional.cross_entropy(
            logits.reshape(-1, self.config.vocabulary), targets.reshape(-1))

    # Generation, token by token, with the keys and values of earlier tokens.

    def new_cache(self, batch: int = 1) -> Cache:
        """Returns an empty cache for `batch` sequences."""
        config = self.config
        shape = (batch, config.heads, config.context, config.width // config.heads)
        return [(zeros(shape), zeros(shape)) for _ in range(config.layers)]

    def length(self, tokens: int) -> Dim:
        """Returns a number of tokens, 1 to the context, for `decode`."""
        return Variable("length", 1, self.config.context).bind(tokens)

    @no_grad()
    def decode(self, token: Tensor, length: Dim, cache: Cache) -> Tensor:
        """Returns logits (N, vocabulary) after one more token each, integers (N,).

        `length` counts the tokens including this one: `model.length(1)` for the first. Changes the
        cache in place. In a kiln.jit function one program handles all lengths.
        """
        x = (self.wte(token) + self.wpe.weight[length - 1]).unsqueeze(1)
        for block, layer in zip(self._blocks(), cache):
            x = block.decode(x, length, layer)
        return self._logits(x).squeeze(1)

    def load_pretrained(self, state: Mapping[str, Tensor]) -> None:
        """Loads GPT-2's published weights, whose linear layers are stored transposed."""
        mine = dict(self.named_parameters())
        fitting = {}
        for full_name, value in state.items():
            name = full_name[len("transformer."):] if (
                full_name.startswith("transformer.")) else full_name
            if name in mine:
                turned = value.ndim == 2 and name.split(".")[-2].startswith("c_")
                fitting[name] = value.T if turned else value
        self.load_state_dict(fitting)
