"""Attention, and encodings of positions for it."""

import math
from typing import Optional, Tuple

import numpy as np

from kiln._array_api.creation import arange
from kiln._basics.errors import InvalidArgument
from kiln._rules import flag, whole
from kiln.functional.activation import softmax
from kiln.functional.regularization import dropout
from kiln.tensor import Tensor, apply


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor,
                                 attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: Optional[float] = None,
                                 enable_gqa: bool = False) -> Tensor:
    """softmax(query key^T * scale + mask) value, of (…, L, E), (…, S, E) and (…, S, V).

    scale defaults to 1 / sqrt(E). A bool mask keeps positions where it is true, any other mask is
    added; it broadcasts to (…, L, S). With is_causal, query i keeps the keys up to i, both counted
    from the first. With enable_gqa the last leading dimension, the heads, of key and value divides
    the query's, and each of their heads serves as many heads of query. A row that keeps no key
    gives zeros. dropout_p and enable_gqa together raise InvalidArgument.

    With a half type, scores and softmax are float32. If query, key and value have the same
    one, the weights are rounded to it, as PyTorch's kernels do.

    >>> q = kiln.zeros(1, 2, 4)
    >>> F.scaled_dot_product_attention(q, q, q + 1, is_causal=True)[0, :, 0].tolist()
    [1.0, 1.0]
    """
    if dropout_p > 0:
        return _with_dropout(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    operands = [part for part in (query, key, value, attn_mask) if part is not None]
    return apply("scaled_dot_product_attention", operands, causal=flag(is_causal, "is_causal"),
                 scale=float(scale or 0.0), grouped=flag(enable_gqa, "enable_gqa"))


def _with_dropout(query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], p: float,
                  is_causal: bool, scale: Optional[float], grouped: bool) -> Tensor:
    if grouped:
        raise InvalidArgument("attention with both dropout_p and enable_gqa is not supported; "
                              "repeat the heads")
    weights = query @ key.transpose(-1, -2) * (scale or query.shape[-1] ** -0.5)
    rows, columns = weights.shape[-2:]
    if is_causal:
        kept = arange(rows).unsqueeze(1) >= arange(columns).unsqueeze(0)
        weights = weights.where(kept, -math.inf)
    if mask is None:
        return dropout(softmax(weights), p) @ value
    if mask.dtype.name == "bool":
        weights = weights.where(mask, -math.inf)
    else:
        weights = weights + mask.cast(weights.dtype)
    # A row that keeps no key would be NaN after the softmax, and its gradient NaN even if the value
    # is replaced. So its scores are replaced before, and its weights after the softmax.
    some = weights.detach().ne(-math.inf).any(-1, keepdim=True)
    safe = softmax(weights.where(some, 0.0))
    return dropout(safe.where(some, 0.0), p) @ value


def rotary_tables(positions: Tensor, features: int, base: float = 10000.0,
                  ) -> Tuple[Tensor, Tensor]:
    """Returns cosines and sines for rotary_embedding: positions' shape and features / 2 angles.

    Angle i of position p is p * base^(-2 i / features) (Su et al., 2021). Raises InvalidArgument
    for odd features.

    >>> cos, sin = F.rotary_tables(kiln.arange(3), 4)
    >>> cos.shape, sin[0].tolist()
    ((3, 2), [0.0, 0.0])
    """
    if whole(features, "features") < 2 or features % 2:
        raise InvalidArgument(f"rotary tables of {features} features; it must be an even number")
    angles = positions.float().unsqueeze(-1) * _frequencies(features, base)
    return angles.cos(), angles.sin()


def _frequencies(features: int, base: float) -> Tensor:
    # In float64: an error in a frequency is multiplied by the position.
    exponents = np.arange(0, features, 2, dtype=np.float64) / features
    return Tensor((base**-exponents).astype(np.float32))


def rotary_embedding(input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """Rotates pairs of features of input (…, L, E) by the angles of cos and sin (…, L, R / 2).

    A pair is features i and i + R / 2, as in GPT-NeoX and Llama, or with interleaved 2 i and 2 i +
    1, as in GPT-J and the paper (Su et al., 2021). Features from R on stay as they are. The result
    has input's dtype; half types are computed in float32.

    >>> cos, sin = F.rotary_tables(kiln.arange(5), 8)
    >>> F.rotary_embedding(kiln.ones(2, 5, 8), cos, sin)[0, 0].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    >>> F.rotary_embedding(kiln.ones(2, 5, 8, dtype="bfloat16"), cos, sin).dtype
    kiln.bfloat16
    """
    return input._op("rotary_embedding", cos, sin, interleaved=flag(interleaved, "interleaved"))


def sinusoidal_positions(positions: Tensor, features: int, base: float = 10000.0) -> Tensor:
    """Returns sines (even features) and cosines (odd ones) of positions (Vaswani et al., 2017).

    >>> F.sinusoidal_positions(kiln.arange(1), 4).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    cos, sin = rotary_tables(positions, features, base)
    pairs = apply("concat", (sin.unsqueeze(-1), cos.unsqueeze(-1)), axis=-1)
    return pairs.reshape(*positions.shape, features)


def alibi_bias(heads: int, rows: int, columns: int) -> Tensor:
    """Returns ALiBi's bias (heads, rows, columns): -slope * distance (Press et al., 2021).

    The last row corresponds to the last column. Head h has the slope 2^(-8 (h + 1) / heads). Raises
    InvalidArgument unless the number of heads is a power of two.

    >>> F.alibi_bias(8, 1, 3)[0, 0, :2].tolist()
    [-1.0, -0.5]
    """
    if whole(heads, "heads") < 1 or heads & (heads - 1):
        raise InvalidArgument(f"alibi_bias of {heads} heads; it must be a power of two")
    slopes = Tensor([2.0 ** (-8 * (h + 1) / heads) for h in range(heads)]).reshape(heads, 1, 1)
    rows, columns = whole(rows, "rows"), whole(columns, "columns")
    row = arange(rows).unsqueeze(1) + (columns - rows)
    distance = (row - arange(columns).unsqueeze(0)).abs()
    return distance.float().unsqueeze(0) * -slopes
