"""Transformer layers and stacks of them (Vaswani et al., 2017), with PyTorch's parameters."""

import copy
import math
from typing import Any, Callable, Optional, Union

from kiln import functional
from kiln._array_api.creation import ones, zeros
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln.nn import init
from kiln.nn.attention import MultiheadAttention
from kiln.nn.containers import ModuleList
from kiln.nn.dropout import Dropout
from kiln.nn.linear import Linear
from kiln.nn.module import Module
from kiln.nn.normalization import LayerNorm
from kiln.tensor import Tensor

Activation = Union[str, Callable[[Tensor], Tensor]]


def _activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    if callable(activation):
        return activation
    if activation not in ("relu", "gelu"):
        raise InvalidArgument(
            f'activation {activation!r}; it must be "relu", "gelu" or a function of a tensor')
    return {"relu": functional.relu, "gelu": functional.gelu}[activation]


class TransformerEncoderLayer(Module):
    """Self-attention and a perceptron; the result of each, with dropout, is added to its input.

    The sums are normalized or, with norm_first, the inputs.

    >>> layer = kiln.nn.TransformerEncoderLayer(16, 4, dim_feedforward=32, batch_first=True)
    >>> layer(kiln.zeros(2, 5, 16)).shape
    (2, 5, 16)
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048,
                 dropout: float = 0.1, activation: Activation = "relu",
                 layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps)
        self.norm2 = LayerNorm(d_model, layer_norm_eps)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(self, src: Tensor, src_mask: Optional[Tensor] = None,
                src_key_padding_mask: Optional[Tensor] = None, is_causal: bool = False) -> Tensor:
        """Maps (S, N, d_model), or (N, S, d_model) with batch_first, to the same shape."""

        def attend(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(
                x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0])

        if self.norm_first:
            src = src + attend(self.norm1(src))
            return src + self._feed_forward(self.norm2(src))
        src = self.norm1(src + attend(src))
        return self.norm2(src + self._feed_forward(src))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to an encoder's result, and a perceptron.

    >>> layer = kiln.nn.TransformerDecoderLayer(8, 2, 16)
    >>> layer(kiln.ones(3, 1, 8), kiln.ones(5, 1, 8)).shape
    (3, 1, 8)
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048,
                 dropout: float = 0.1, activation: Activation = "relu",
                 layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps)
        self.norm2 = LayerNorm(d_model, layer_norm_eps)
        self.norm3 = LayerNorm(d_model, layer_norm_eps)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor] = None,
                memory_mask: Optional[Tensor] = None,
                tgt_key_padding_mask: Optional[Tensor] = None,
                memory_key_padding_mask: Optional[Tensor] = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        """Maps (T, N, d_model) and the encoder's (S, N, d_model) to the shape of the first."""

        def attend(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(
                x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0])

        def look(x: Tensor) -> Tensor:
            return self.dropout2(self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask,
                is_causal=memory_is_causal)[0])

        if self.norm_first:
            tgt = tgt + attend(self.norm1(tgt))
            tgt = tgt + look(self.norm2(tgt))
            return tgt + self._feed_forward(self.norm3(tgt))
        tgt = self.norm1(tgt + attend(tgt))
        tgt = self.norm2(tgt + look(tgt))
        return self.norm3(tgt + self._feed_forward(tgt))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """num_layers copies of an encoder layer, followed by a norm if given.

    >>> layer = kiln.nn.TransformerEncoderLayer(8, 2, 16)
    >>> kiln.nn.TransformerEncoder(layer, 2)(kiln.ones(5, 1, 8)).shape
    (5, 1, 8)
    """

    def __init__(self, encoder_layer: TransformerEncoderLayer, num_layers: int,
                 norm: Optional[Module] = None) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src: Tensor, mask: Optional[Tensor] = None,
                src_key_padding_mask: Optional[Tensor] = None, is_causal: bool = False) -> Tensor:
        """See TransformerEncoderLayer.forward."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """num_layers copies of a decoder layer, followed by a norm if given.

    >>> layer = kiln.nn.TransformerDecoderLayer(8, 2, 16)
    >>> kiln.nn.TransformerDecoder(layer, 2)(kiln.ones(3, 1, 8), kiln.ones(5, 1, 8)).shape
    (3, 1, 8)
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int,
                 norm: Optional[Module] = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, *masks: Any, **keywords: Any) -> Tensor:
        """See TransformerDecoderLayer.forward."""
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, **keywords)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder, as in the paper.

    >>> model = kiln.nn.Transformer(16, 4, 2, 2, 32, batch_first=True)
    >>> model(kiln.zeros(2, 7, 16), kiln.zeros(2, 5, 16)).shape
    (2, 5, 16)
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
                 num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = "relu", custom_encoder: Optional[Module] = None,
                 custom_decoder: Optional[Module] = None, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                   batch_first, norm_first)
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*options), num_encoder_layers,
            LayerNorm(d_model, layer_norm_eps))
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*options), num_decoder_layers,
            LayerNorm(d_model, layer_norm_eps))
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Optional[Tensor] = None,
                tgt_mask: Optional[Tensor] = None, memory_mask: Optional[Tensor] = None,
                src_key_padding_mask: Optional[Tensor] = None,
                tgt_key_padding_mask: Optional[Tensor] = None,
                memory_key_padding_mask: Optional[Tensor] = None) -> Tensor:
        """Maps (S, N, d_model) and (T, N, d_model) to (T, N, d_model); batch_first puts N first."""
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                            memory_key_padding_mask)

    @staticmethod
    def generate_square_subsequent_mask(size: int) -> Tensor:
        """Returns a float mask (size, size) that hides later positions: 0 or -inf.

        >>> kiln.nn.Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        keep = ones((size, size), dtype=dtypes.bool_).tril()
        return zeros((size, size)).where(keep, -math.inf)
