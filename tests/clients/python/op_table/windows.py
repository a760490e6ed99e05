"""Windows that are read, added up or pooled, resized images, and neighbouring channels."""

import jax.numpy as jnp
import numpy as np

from op_table.neural import distinct
from op_table.row import INTEGERS, POSITIVE, Domain, Row, cases


def _taps(x, kernel, stride, padding, dilation):
    """Returns what each place of the kernel reads of x (N, C, H, W): (N, C, KH * KW, windows)."""
    on = np if isinstance(x, np.ndarray) else jnp
    x = on.pad(x, ((0, 0), (0, 0), *[(p, p) for p in padding]))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    counts = [(size - span) // s + 1 for size, span, s in zip(x.shape[2:], spans, stride)]
    parts = [x[(..., *[slice(i * d, i * d + (n - 1) * s + 1, s)
                       for i, d, n, s in zip(place, dilation, counts, stride)])]
             for place in np.ndindex(*kernel)]
    return on.stack(parts, 2).reshape(*x.shape[:2], len(parts), -1)


def _unfold(x, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1)):
    taps = _taps(x, kernel, stride, padding, dilation)
    return taps.reshape(x.shape[0], -1, taps.shape[-1])


def _fold(x, size, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1)):
    """Adds each element of x to the place that unfold reads it from."""
    channels = x.shape[1] // (kernel[0] * kernel[1])
    numbered = np.arange(1, size[0] * size[1] + 1).reshape(1, 1, *size)  # 0: the padding
    places = _taps(numbered, kernel, stride, padding, dilation).reshape(-1)
    flat = jnp.zeros((x.shape[0], channels, size[0] * size[1] + 1), x.dtype)
    flat = flat.at[..., places].add(x.reshape(x.shape[0], channels, -1))
    return flat[..., 1:].reshape(x.shape[0], channels, *size)


def _lp_pool(x, kernel, stride=(), norm=2.0):
    """Handles any number of dimensions: the windows of each, one after the other."""
    powers = x**norm
    for axis, size in enumerate(kernel, start=2):
        step = stride[axis - 2] if stride else size
        starts = range(0, powers.shape[axis] - size + 1, step)
        powers = jnp.stack([jnp.take(powers, jnp.arange(start, start + size), axis).sum(axis)
                            for start in starts], axis)
    safe = jnp.where(powers <= 0, 1, powers)
    return jnp.where(powers <= 0, 0, safe ** (1 / norm))


def _adaptive(reduce):
    def reference(x, size):
        # From the last dimension on, to find the first of equal elements in row-major order.
        for axis, count in reversed([*enumerate(size, start=x.ndim - len(size))]):
            length = x.shape[axis]
            parts = [jnp.take(x, jnp.arange(o * length // count, -(-(o + 1) * length // count)),
                              axis) for o in range(count)]
            x = jnp.stack([reduce(part, axis=axis) for part in parts], axis)
        return x

    return reference


def _first_largest(x, axis):
    """Returns the largest element; the first of equal ones gets the gradient."""
    place = jnp.argmax(x, axis, keepdims=True)
    return jnp.take_along_axis(x, place, axis).squeeze(axis)


def _cubic(t):
    t, a = abs(t), -0.75
    if t <= 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return (((t - 5) * t + 8) * t - 4) * a if t < 2 else 0.0


def _weights(length, size, mode, align_corners, ratio):
    """Row o has the weights of x's elements in element o of the result."""
    matrix = np.zeros((size, length))
    for o in range(size):
        place = (o + 0.5) * ratio - 0.5
        if align_corners:
            place = o * (length - 1) / (size - 1) if size > 1 else 0.0
        if mode.startswith("nearest"):
            inside = (o + (0.5 if mode == "nearest-exact" else 0.0)) * ratio
            taken = {int(inside): 1.0}
        elif mode == "linear":
            place = max(place, 0.0)
            below = int(place)
            taken = {below: 1 - (place - below), below + 1: place - below}
        else:
            below = int(np.floor(place))
            taken = {below + k: _cubic(place - below - k) for k in range(-1, 3)}
        for i, weight in taken.items():
            matrix[o, min(max(i, 0), length - 1)] += weight
    return matrix


def _interpolate(x, size, mode="nearest", align_corners=False, scale=0.0):
    dtype = x.dtype
    for axis, count in enumerate(size, start=x.ndim - len(size)):
        length = x.shape[axis]
        ratio = 1 / scale if scale else length / count
        matrix = _weights(length, count, mode, align_corners, ratio)
        x = jnp.moveaxis(jnp.tensordot(matrix, x, (1, axis)), 0, axis)
    if dtype.kind == "f":
        return x
    whole = jnp.round(x)
    return (jnp.maximum(whole, 0) if dtype.kind == "u" else whole).astype(dtype)


def _interpolations(dtype):
    """Integers use modes and scales with exact weights, so that no half is rounded twice."""
    exact = cases(((1, 1, 3), {"size": (6,)}), ((2, 3, 7), {"size": (3,)}),
                  ((1, 2, 6, 4), {"size": (3, 6), "mode": "nearest-exact"}),
                  ((1, 1, 33), {"size": (65,), "mode": "linear", "scale": 2.0}),
                  ((1, 2, 5, 7), {"size": (10, 14), "mode": "cubic", "scale": 2.0}))
    return exact if dtype in INTEGERS else exact + cases(
        ((1, 2, 5, 7), {"size": (9, 4), "mode": "linear"}),
        ((2, 1, 5, 3), {"size": (8, 7), "mode": "linear", "align_corners": True}),
        ((1, 2, 6, 5), {"size": (9, 4), "mode": "cubic"}))


def _pixel_unshuffle(x, factor):
    *rest, channels, height, width = x.shape
    n = len(rest)
    y = x.reshape(*rest, channels, height // factor, factor, width // factor, factor)
    y = jnp.transpose(y, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return y.reshape(*rest, channels * factor**2, height // factor, width // factor)


def _local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0):
    around = ((0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2))
    squares = jnp.pad(x * x, around)
    total = sum(squares[:, i:i + x.shape[1]] for i in range(size))
    return x / (k + alpha / size * total) ** beta


_KERNELS = cases(
    ((1, 1, 3, 3), {"kernel": (2, 2)}),
    ((2, 3, 9, 8), {"kernel": (3, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}),
    ((1, 2, 17, 33), {"kernel": (4, 3), "stride": (3, 3)}))  # fmt: skip
_SIZES = cases(
    ((1, 1, 4), {"size": (2,)}), ((2, 3, 7), {"size": (3,)}), ((1, 2, 9, 10), {"size": (4, 5)}),
    ((2, 3, 33, 17), {"size": (7, 1)}), ((1, 2, 3), {"size": (5,)}))  # fmt: skip

ROWS = {
    "unfold": Row(_unfold, cases=_KERNELS),
    "fold": Row(_fold, factor=16, cases=cases(
        ((1, 4, 4), {"size": (3, 3), "kernel": (2, 2)}),
        ((2, 18, 30), {"size": (9, 8), "kernel": (3, 2), "stride": (2, 1), "padding": (1, 0),
                       "dilation": (1, 2)}))),
    "lp_pool1d": Row(_lp_pool, (POSITIVE,), factor=32, gradient_factor=64, cases=cases(
        ((1, 1, 6), {"kernel": (2,)}), ((2, 3, 17), {"kernel": (3,), "stride": (2,),
                                                   "norm": 3.0}))),
    "lp_pool2d": Row(_lp_pool, factor=32, gradient_factor=64, cases=cases(
        ((1, 1, 4, 4), {"kernel": (2, 2)}),
        ((2, 3, 9, 7), {"kernel": (3, 2), "stride": (2, 2)}))),
    "lp_pool3d": Row(_lp_pool, (POSITIVE,), factor=32, gradient_factor=64, cases=cases(
        ((1, 2, 5, 4, 6), {"kernel": (2, 2, 3), "norm": 1.5}))),
    "adaptive_avg_pool": Row(_adaptive(jnp.mean), factor=16, cases=_SIZES),
    "adaptive_max_pool": Row(_adaptive(_first_largest), (Domain(values=distinct),), cases=_SIZES),
    "interpolate": Row(_interpolate, factor=64, gradient_factor=64, cases=_interpolations, exempt={
        kind: "the reference multiplies by weights of 0" for kind in ("nan", "inf")}),
    "pixel_unshuffle": Row(_pixel_unshuffle, cases=cases(
        ((1, 2, 2), {"factor": 2}), ((2, 2, 15, 9), {"factor": 3}))),
    "local_response_norm": Row(_local_response_norm, factor=16, gradient_factor=32, cases=cases(
        ((2, 3), {"size": 1}), ((2, 7, 5), {"size": 3, "alpha": 0.5}),
        ((1, 6, 9, 4), {"size": 4, "alpha": 1.0, "beta": 0.5, "k": 2.0}))),
}  # fmt: skip
