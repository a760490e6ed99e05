"""Multi-head attention, with PyTorch's parameters and masks."""

import math
from typing import Any, List, Optional, Tuple

from kiln import functional
from kiln._array_api.creation import ones, zeros
from kiln._array_api.manipulation import cat
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln.nn import init
from kiln.nn.linear import Linear
from kiln.nn.module import Module
from kiln.nn.parameter import Parameter
from kiln.tensor import Tensor


class MultiheadAttention(Module):
    """Attention by several heads over projections of queries, keys and values.

    (Vaswani et al., 2017.) Parameters are PyTorch's: in_proj_weight (3 E, E) or, if keys or values
    have other sizes, q_, k_ and v_proj_weight; in_proj_bias; out_proj. Raises InvalidArgument
    unless num_heads divides embed_dim.

    >>> attention = kiln.nn.MultiheadAttention(16, 4, batch_first=True)
    >>> x = kiln.zeros(2, 5, 16)
    >>> y, weights = attention(x, x, x)
    >>> y.shape, weights.shape
    ((2, 5, 16), (2, 5, 5))
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False,
                 kdim: Optional[int] = None, vdim: Optional[int] = None,
                 batch_first: bool = False) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise InvalidArgument(
                f"an embed_dim of {embed_dim} does not divide into {num_heads} heads")
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        sizes = (embed_dim, kdim or embed_dim, vdim or embed_dim)
        if sizes == (embed_dim,) * 3:
            self.in_proj_weight: Optional[Parameter] = _xavier(3 * embed_dim, embed_dim)
        else:
            self.in_proj_weight = None
            self.q_proj_weight = _xavier(embed_dim, sizes[0])
            self.k_proj_weight = _xavier(embed_dim, sizes[1])
            self.v_proj_weight = _xavier(embed_dim, sizes[2])
        self.in_proj_bias = Parameter(zeros(3 * embed_dim)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        self.bias_k = _normal(embed_dim) if add_bias_kv else None
        self.bias_v = _normal(embed_dim) if add_bias_kv else None

    def forward(self, query: Tensor, key: Tensor, value: Tensor,
                key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
                attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
        """Maps queries (L, N, E), keys, values (S, N, …) to (L, N, E), weights (N, L, S) or None.

        With batch_first N comes first; all three may lack N. Weights are (N, heads, L, S) without
        average_attn_weights. Masks are PyTorch's: bools hide a key where they are true; floats are
        added to the scores. key_padding_mask is (N, S), attn_mask (L, S) or (N * heads, L, S).
        is_causal hides the keys after the query, unless attn_mask is given.
        """
        batched = query.ndim == 3
        if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
            raise InvalidArgument(
                f"attention of shapes {query.shape}, {key.shape} and {value.shape}; all must have "
                "three dimensions, or two without batch")
        if not batched:
            query, key, value = (part.unsqueeze(0) for part in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (part.transpose(0, 1) for part in (query, key, value))
        q, k, v = self._project(query, key, value)
        mask = self._mask(attn_mask, key_padding_mask, q, k, is_causal)
        out, weights = self._attend(q, k, v, mask, need_weights)
        out = self.out_proj(out.transpose(1, 2).reshape(*query.shape[:2], self.embed_dim))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), weights

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        """Returns (N, heads, …, E / heads) each; keys and values with those the module adds."""
        size = self.embed_dim
        bias: Any = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.split(size)
        if self.in_proj_weight is None:
            weights: List[Tensor] = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        # Self-attention: one product in place of three.
        elif query is key and key is value:
            joined = functional.linear(query, self.in_proj_weight, self.in_proj_bias)
            return self._with_extras(*joined.split(size, -1))
        else:
            weights = self.in_proj_weight.split(size)
        return self._with_extras(*[
            functional.linear(x, weight, part)
            for x, weight, part in zip((query, key, value), weights, bias)])

    def _with_extras(self, q: Tensor, k: Tensor, v: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        batch = q.shape[0]
        if self.bias_k is not None and self.bias_v is not None:
            k = cat([k, self.bias_k.expand(batch, 1, self.embed_dim)], 1)
            v = cat([v, self.bias_v.expand(batch, 1, self.embed_dim)], 1)
        if self.add_zero_attn:
            nothing = zeros((batch, 1, self.embed_dim), dtype=k.dtype)
            k, v = cat([k, nothing], 1), cat([v, nothing], 1)
        heads = (self.num_heads, self.embed_dim // self.num_heads)
        q, k, v = (x.reshape(*x.shape[:2], *heads).transpose(1, 2) for x in (q, k, v))
        return q, k, v

    def _mask(self, attn_mask: Optional[Tensor], padding: Optional[Tensor], q: Tensor, k: Tensor,
              is_causal: bool) -> Optional[Tensor]:
        """Returns the addend for scores (N, heads, L, S), or bools of keys to keep; None: all."""
        batch, heads, length = q.shape[:3]
        extra = (self.bias_k is not None) + self.add_zero_attn
        keys = k.shape[2] - extra
        masks = []
        if attn_mask is not None:
            shapes = ((length, keys), (batch * heads, length, keys))
            if attn_mask.shape not in shapes:
                raise InvalidArgument(
                    f"attn_mask of shape {attn_mask.shape}; it must be {shapes[0]} or {shapes[1]}")
            masks.append(attn_mask if attn_mask.ndim == 2 else attn_mask.reshape(
                batch, heads, length, keys))
        if padding is not None:
            if padding.shape != (batch, keys):
                raise InvalidArgument(
                    f"key_padding_mask of shape {padding.shape}; it must be {(batch, keys)}")
            masks.append(padding.reshape(batch, 1, 1, keys))
        if is_causal and attn_mask is None:
            masks.append(~ones((length, keys), dtype=dtypes.bool_).tril())
        # The keys that the module adds are never hidden.
        masks = [mask.pad((0, extra)) if extra else mask for mask in masks]
        if not masks:
            return None
        if all(mask.dtype is dtypes.bool_ for mask in masks):
            hidden = masks[0]
            for mask in masks[1:]:
                hidden = hidden | mask
            return ~hidden
        added = [zeros((), dtype=q.dtype).where(~mask, -math.inf)
                 if mask.dtype is dtypes.bool_ else mask for mask in masks]
        total = added[0]
        for mask in added[1:]:
            total = total + mask
        return total

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor],
                need_weights: bool) -> Tuple[Tensor, Optional[Tensor]]:
        share = self.dropout if self.training else 0.0
        if not need_weights:
            return functional.scaled_dot_product_attention(q, k, v, mask, share), None
        # The op does not return its weights, so they are computed here.
        scores = q @ k.transpose(2, 3) * (1 / math.sqrt(q.shape[-1]))
        if mask is not None:
            scores = scores.where(mask, -math.inf) if mask.dtype is dtypes.bool_ else (
                scores + mask.cast(scores.dtype))
        weights = functional.dropout(scores.softmax(-1), share)
        return weights @ v, weights

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        return f"{self.embed_dim}, {self.num_heads}, batch_first={self.batch_first}"


def _xavier(rows: int, columns: int) -> Parameter:
    weight = Parameter(zeros(rows, columns))
    init.xavier_uniform_(weight)
    return weight


def _normal(size: int) -> Parameter:
    bias = Parameter(zeros(1, 1, size))
    init.xavier_normal_(bias)
    return bias
