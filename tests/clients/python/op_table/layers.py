"""Convolutions of one and three dimensions, transposed ones, pools, borders, more norms."""

import jax.numpy as jnp
from jax import lax

from op_table.neural import ZEROS_COUNT, distinct, pool
from op_table.row import ANY, Domain, Row, cases


def _conv(x, weight, bias=None, stride=None, padding=None, dilation=None, groups=1):
    ones = (1,) * (x.ndim - 2)
    y = lax.conv_general_dilated(x, weight, stride or ones,
                                 [(p, p) for p in padding or (0,) * (x.ndim - 2)],
                                 rhs_dilation=dilation or ones, feature_group_count=groups)
    return y if bias is None else y + bias.reshape(-1, *ones)


def _conv_transpose(x, weight, bias=None, stride=None, padding=None, dilation=None, groups=1,
                    output_padding=None):
    """Computes the convolution of x with zeros between its elements, with mirrored weights."""
    ones = (1,) * (x.ndim - 2)
    stride, dilation = stride or ones, dilation or ones
    zeros = (0,) * len(ones)
    padding, more = padding or zeros, output_padding or zeros
    inputs, outputs, *size = weight.shape
    kernel = weight.reshape(groups, inputs // groups, outputs, *size)
    kernel = jnp.swapaxes(kernel, 1, 2).reshape(groups * outputs, inputs // groups, *size)
    kernel = jnp.flip(kernel, tuple(range(2, kernel.ndim)))
    reach = [d * (k - 1) for d, k in zip(dilation, size)]
    around = [(r - p, r - p + m) for r, p, m in zip(reach, padding, more)]
    y = lax.conv_general_dilated(x, kernel, ones, around, lhs_dilation=stride,
                                 rhs_dilation=dilation, feature_group_count=groups)
    return y if bias is None else y + bias.reshape(-1, *ones)


def _max_pool(x, kernel, stride=(), padding=None):
    lowest = (-jnp.inf if jnp.issubdtype(x.dtype, jnp.floating)
              else jnp.asarray(jnp.iinfo(x.dtype).min, x.dtype))
    return pool(x, kernel, stride, padding or (0,) * len(kernel), lowest, lax.max)


def _avg_pool(x, kernel, stride=(), padding=None):
    count = 1
    for size in kernel:
        count *= size
    return pool(x, kernel, stride, padding or (0,) * len(kernel), 0.0, lax.add) / count


def _pad(mode):
    def reference(x, padding, **more):
        pairs = [tuple(padding[i:i + 2]) for i in range(0, len(padding), 2)]
        return jnp.pad(x, pairs, mode=mode, **more)

    return reference


def _pad_constant(x, padding, value=0.0):
    return _pad("constant")(x, padding, constant_values=jnp.asarray(value, x.dtype))


def _pixel_shuffle(x, factor):
    *rest, channels, height, width = x.shape
    y = x.reshape(*rest, channels // factor**2, factor, factor, height, width)
    n = len(rest)
    y = jnp.transpose(y, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return y.reshape(*rest, channels // factor**2, height * factor, width * factor)


def _group_norm(x, weight=None, bias=None, groups=1, epsilon=1e-5):
    y = x.reshape(x.shape[0], groups, -1)
    y = y - y.mean(-1, keepdims=True)
    y = (y / jnp.sqrt(jnp.square(y).mean(-1, keepdims=True) + epsilon)).reshape(x.shape)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def _instance_norm(x, weight=None, bias=None, epsilon=1e-5):
    return _group_norm(x, weight, bias, x.shape[1], epsilon)


_SUMS = {"factor": 512, "gradient_factor": 1024}
_PRODUCTS = {**_SUMS, "exempt": ZEROS_COUNT}
_BORDERS = cases(((7,), {"padding": (2, 1)}), ((3, 5), {"padding": (0, 2, 3, 0)}),
                 ((2, 33, 17), {"padding": (0, 0, 1, 4, 2, 2)}))

ROWS = {
    "conv1d": Row(_conv, (ANY, ANY, ANY), **_PRODUCTS, cases=cases(
        ((1, 1, 5), (1, 1, 3)), ((2, 4, 19), (6, 2, 3), (6,), {"stride": (2,), "padding": (1,),
                                                              "groups": 2}),
        ((2, 8, 65), (5, 8, 4), {"dilation": (3,)}))),
    "conv3d": Row(_conv, (ANY, ANY, ANY), **_PRODUCTS, cases=cases(
        ((1, 2, 4, 5, 3), (3, 2, 2, 3, 1), (3,)),
        ((2, 3, 5, 7, 6), (4, 3, 3, 3, 3), {"stride": (2, 1, 2), "padding": (1, 1, 1)}))),
    "conv_transpose1d": Row(_conv_transpose, (ANY, ANY, ANY), **_PRODUCTS, cases=cases(
        ((1, 1, 4), (1, 1, 3)), ((2, 4, 9), (4, 3, 4), (6,), {
            "stride": (3,), "padding": (1,), "output_padding": (2,), "groups": 2}))),
    "conv_transpose2d": Row(_conv_transpose, (ANY, ANY, ANY), **_PRODUCTS, cases=cases(
        ((1, 2, 3, 4), (2, 3, 3, 2), (3,)), ((2, 3, 7, 6), (3, 5, 3, 3), {
            "stride": (2, 2), "padding": (1, 1), "output_padding": (1, 0)}))),
    "conv_transpose3d": Row(_conv_transpose, (ANY, ANY, ANY), **_PRODUCTS, cases=cases(
        ((1, 2, 3, 2, 4), (2, 3, 2, 2, 2), (3,), {"stride": (1, 2, 2)}))),
    "max_pool1d": Row(_max_pool, (Domain(values=distinct),), cases=cases(
        ((1, 1, 6), {"kernel": (2,)}), ((2, 3, 17), {"kernel": (3,), "stride": (2,),
                                                   "padding": (1,)}))),
    "max_pool3d": Row(_max_pool, (Domain(values=distinct),), cases=cases(
        ((1, 2, 5, 4, 6), {"kernel": (2, 2, 3), "stride": (1, 2, 2)}))),
    "avg_pool1d": Row(_avg_pool, factor=16, cases=cases(
        ((1, 1, 6), {"kernel": (2,)}), ((2, 3, 17), {"kernel": (3,), "stride": (2,),
                                                   "padding": (1,)}))),
    "avg_pool3d": Row(_avg_pool, factor=16, cases=cases(
        ((1, 2, 5, 4, 6), {"kernel": (2, 2, 3), "stride": (1, 2, 2)}))),
    "pad_constant": Row(_pad_constant, cases=cases(
        ((7,), {"padding": (2, 1), "value": 1.0}), ((3, 5), {"padding": (0, 2, 3, 0)}),
        ((129, 67), {"padding": (1, 0, 0, 5), "value": 1.0}))),
    "pad_reflect": Row(_pad("reflect"), cases=_BORDERS),
    "pad_replicate": Row(_pad("edge"), cases=_BORDERS),
    "pad_circular": Row(_pad("wrap"), cases=_BORDERS),
    "pixel_shuffle": Row(_pixel_shuffle, cases=cases(
        ((4, 1, 1), {"factor": 2}), ((2, 18, 5, 3), {"factor": 3}))),
    "group_norm": Row(_group_norm, (ANY, ANY, ANY), factor=64, gradient_factor=512, cases=cases(
        ((2, 6, 5), {"groups": 3}), ((3, 4, 9, 7), (4,), (4,), {"groups": 2}))),
    "instance_norm": Row(_instance_norm, (ANY, ANY, ANY), factor=64, gradient_factor=512,
                         cases=cases(((2, 3, 9),), ((2, 3, 9, 7), (3,), (3,)))),
}
