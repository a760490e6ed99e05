"""Contractions, normalizations, pooling and losses."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from op_table.row import ANY, POSITIVE, UNIT, Domain, Row, cases


def _linear(x, weight, bias=None):
    y = x @ weight.T
    return y if bias is None else y + bias


def _attention(query, key, value, mask=None, causal=False, scale=0.0):
    scores = query @ jnp.swapaxes(key, -1, -2) * (scale or query.shape[-1] ** -0.5)
    if causal:
        rows, columns = scores.shape[-2:]
        scores = jnp.where(jnp.tril(jnp.ones((rows, columns), bool)), scores, -jnp.inf)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return jax.nn.softmax(scores, -1) @ value


def _conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    y = lax.conv_general_dilated(x, weight, stride, [(p, p) for p in padding],
                                 rhs_dilation=dilation, feature_group_count=groups)
    return y if bias is None else y + bias[:, None, None]


def _rotary(x, cos, sin, interleaved=False):
    half = cos.shape[-1]
    turned, rest = x[..., :2 * half], x[..., 2 * half:]
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., :half], turned[..., half:]
    pair = [first * cos - second * sin, second * cos + first * sin]
    both = jnp.stack(pair, -1) if interleaved else jnp.stack(pair, -2)
    return jnp.concatenate([both.reshape(turned.shape), rest], -1)


def pool(x, kernel, stride, padding, start, function):
    rank = x.ndim - len(kernel)
    ones = (1,) * rank
    around = [(0, 0)] * rank + [(p, p) for p in padding]
    return lax.reduce_window(x, start, function, (*ones, *kernel), (*ones, *(stride or kernel)),
                             around)


def _max_pool2d(x, kernel, stride=(), padding=(0, 0)):
    if jnp.issubdtype(x.dtype, jnp.floating):
        return pool(x, kernel, stride, padding, -jnp.inf, lax.max)
    lowest = jnp.asarray(jnp.iinfo(x.dtype).min, x.dtype)
    return pool(x, kernel, stride, padding, lowest, lax.max)


def _avg_pool2d(x, kernel, stride=(), padding=(0, 0)):
    return pool(x, kernel, stride, padding, 0.0, lax.add) / (kernel[0] * kernel[1])


def _layer_norm(x, weight=None, bias=None, axes=1, epsilon=1e-5):
    over = tuple(range(-axes, 0))
    centred = x - x.mean(over, keepdims=True)
    y = centred / jnp.sqrt(jnp.square(centred).mean(over, keepdims=True) + epsilon)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _rms_norm(x, weight=None, axes=1, epsilon=1e-6):
    over = tuple(range(-axes, 0))
    y = x / jnp.sqrt(jnp.square(x).mean(over, keepdims=True) + epsilon)
    return y if weight is None else y * weight


def _batch_norm(x, mean, var, weight=None, bias=None, epsilon=1e-5):
    shape = (1, -1) + (1,) * (x.ndim - 2)
    y = (x - mean.reshape(shape)) / jnp.sqrt(var.reshape(shape) + epsilon)
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def _picked(log_probabilities, labels):
    moved = jnp.moveaxis(log_probabilities, 1, -1)
    return jnp.take_along_axis(moved, labels[..., None], -1)[..., 0]


def _clip(x, min=-jnp.inf, max=jnp.inf):
    """The gradient is 1 on both bounds, where jnp.clip's is a half. Not for a min above max."""
    return jnp.where(x < min, min, jnp.where(x > max, max, x)).astype(x.dtype)


# Padding is 0, which times NaN or an infinity is NaN where it is multiplied; JAX does not multiply it.
ZEROS_COUNT = {kind: "zeros around and between elements may be multiplied" for kind in ("nan", "inf")}


def distinct(generator, shape):
    """Returns distinct integers around 0: of equal ones the gradient could go to any."""
    count = math.prod(shape)
    return generator.permutation(count).reshape(shape) - count // 2


_LABELS = Domain(dtype="int64", values=lambda generator, shape: generator.integers(0, 4, shape))
_CHANCE = Domain(0.0, 1.0)
_LOSSES = cases(((7, 5), (7,)), ((3, 5, 4), (3, 4)), ((65, 31), (65,)))
_MATRICES = cases(
    ((7,), (7,)), ((3, 5), (5,)), ((5,), (5, 3)), ((3, 5), (5, 4)), ((0, 5), (5, 4)),
    ((2, 1, 3, 5), (4, 5, 2)), ((65, 130), (130, 67)), ((1, 300), (300, 70)))  # fmt: skip

ROWS = {
    "matmul": Row(jnp.matmul, (ANY, ANY), cases=_MATRICES, factor=512, gradient_factor=512),
    "linear": Row(_linear, (ANY, ANY, ANY), factor=512, gradient_factor=512, cases=cases(
        ((3, 5), (4, 5)), ((3, 5), (4, 5), (4,)), ((5,), (4, 5), (4,)),
        ((65, 130), (67, 130), (67,)))),
    "scaled_dot_product_attention": Row(
        _attention, (ANY, ANY, ANY, Domain(dtype="bool", values=lambda g, shape: g.random(shape)
                                           + (shape[-1] > 0) * (0.3) > 0.3)),
        factor=64, gradient_factor=128, cases=cases(
            ((3, 4), (5, 4), (5, 2)), ((2, 3, 4), (2, 5, 4), (2, 5, 4), (3, 5)),
            ((2, 2, 33, 16), (2, 2, 33, 16), (2, 2, 33, 16), {"causal": True}))),
    "rotary_embedding": Row(_rotary, (ANY, UNIT, UNIT), gradient_factor=32, cases=cases(
        ((4, 6), (4, 3), (4, 3)), ((2, 3, 5, 8), (5, 2), (5, 2), {"interleaved": True}),
        ((2, 33, 16), (33, 5), (33, 5)), ((0, 2), (0, 1), (0, 1)))),
    "conv2d": Row(_conv2d, (ANY, ANY, ANY), factor=512, gradient_factor=1024, exempt=ZEROS_COUNT,
                  cases=cases(
        ((1, 1, 3, 3), (1, 1, 3, 3)), ((2, 3, 7, 6), (4, 3, 3, 2), (4,)),
        ((2, 4, 9, 9), (6, 2, 3, 3), {"stride": (2, 2), "padding": (1, 1), "groups": 2}),
        ((1, 2, 11, 8), (3, 2, 3, 3), {"dilation": (2, 1), "padding": (2, 0)}),
        ((2, 8, 17, 17), (8, 8, 5, 5), (8,), {"padding": (2, 2)}))),
    "max_pool2d": Row(_max_pool2d, (Domain(values=distinct),), cases=cases(
        ((1, 1, 4, 4), {"kernel": (2, 2)}), ((2, 3, 9, 7), {"kernel": (3, 2), "stride": (2, 2)}),
        ((2, 3, 9, 9), {"kernel": (3, 3), "stride": (2, 2), "padding": (1, 1)}))),
    "avg_pool2d": Row(_avg_pool2d, factor=16, cases=cases(
        ((1, 1, 4, 4), {"kernel": (2, 2)}), ((2, 3, 9, 7), {"kernel": (3, 2), "stride": (2, 2)}),
        ((2, 3, 9, 9), {"kernel": (3, 3), "stride": (2, 2), "padding": (1, 1)}))),
    "layer_norm": Row(_layer_norm, (ANY, ANY, ANY), factor=32, gradient_factor=128, cases=cases(
        ((3, 5),), ((3, 5), (5,), (5,)), ((2, 3, 4), (3, 4), (3, 4), {"axes": 2}),
        ((65, 130), (130,), (130,)))),
    "rms_norm": Row(_rms_norm, (ANY, ANY), factor=32, gradient_factor=128, cases=cases(
        ((3, 5),), ((3, 5), (5,)), ((65, 130), (130,)))),
    "batch_norm": Row(_batch_norm, (ANY, ANY, POSITIVE, ANY, ANY), factor=32, gradient_factor=256,
                      cases=cases(((7, 3), (3,), (3,)), ((7, 3), (3,), (3,), (3,), (3,)),
                                  ((2, 3, 9, 9), (3,), (3,), (3,), (3,)))),
    "cross_entropy": Row(lambda x, labels: -_picked(jax.nn.log_softmax(x, 1), labels).mean(),
                         (ANY, _LABELS), factor=32, cases=_LOSSES),
    "nll_loss": Row(lambda x, labels: -_picked(x, labels).mean(), (ANY, _LABELS), factor=32,
                    cases=_LOSSES),
    "mse_loss": Row(lambda x, y: jnp.square(x - y).mean(), (ANY, ANY), factor=64, cases=cases(
        ((), ()), ((7,), (7,)), ((65, 31), (65, 31)))),
    "binary_cross_entropy_with_logits": Row(
        lambda x, y: (jax.nn.softplus(x) - x * y).mean(), (ANY, _CHANCE), factor=32,
        cases=cases(((), ()), ((7,), (7,)), ((65, 31), (65, 31)))),
    "clip": Row(_clip, cases=cases(
        ((7,), {"min": -1.0}), ((3, 5), {"max": 1.0}), ((129, 67), {"min": 0.0, "max": 2.0}))),
}
