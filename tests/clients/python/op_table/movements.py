"""Movement, indexing, casts and sources: exact in every dtype, including storage formats."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np

from op_table.row import (
    ALL,
    ANY,
    FLOAT8,
    FLOATS,
    INTEGERS,
    Domain,
    Row,
    cases,
    numpy_dtype,
)


def _moves(reference, *given, **more):
    return Row(reference, cases=cases(*given), **more)


def _pairs(flat):
    return [tuple(flat[i:i + 2]) for i in range(0, len(flat), 2)]


def _shrink(x, bounds):
    return x[tuple(slice(low, high) for low, high in _pairs(bounds))]


def _window(x, axis, size, stride=1, dilation=1):
    x = jnp.moveaxis(x, axis, -1)
    count = (x.shape[-1] - (size - 1) * dilation - 1) // stride + 1
    places = np.arange(count)[:, None] * stride + np.arange(size) * dilation
    return jnp.moveaxis(x[..., places], -2, axis)


def _unwindow(x, axis, length, stride=1, dilation=1):
    size = x.shape[-1]
    x = jnp.moveaxis(x, axis, -2)
    out = jnp.zeros((*x.shape[:-2], length, size), x.dtype)
    for k in range(size):
        places = np.arange(x.shape[-2]) * stride + k * dilation
        out = out.at[..., places, k].set(x[..., k])
    return jnp.moveaxis(out, -2, axis)


def _take(x, index, axis=0):
    """Returns zero where the index is out of range or negative."""
    inside = (index >= 0) & (index < x.shape[axis])
    taken = jnp.take(x, jnp.where(inside, index, 0), axis=axis)
    shape = [1] * taken.ndim
    shape[axis:axis + index.ndim] = index.shape
    return jnp.where(inside.reshape(shape), taken, jnp.zeros((), x.dtype))


def _from_end(index, size):
    return jnp.where(index < 0, index + size, index)


def _gather_elements(x, index, axis=0):
    inside = (index >= 0) & (index < x.shape[axis])
    taken = jnp.take_along_axis(x, jnp.where(inside, index, 0), axis)
    return jnp.where(inside, taken, jnp.zeros((), x.dtype))


def _take_along_axis(x, index, axis=0):
    others = [list(part.shape) for part in (x, index)]
    for shape in others:
        shape[axis] = 1
    wide = list(np.broadcast_shapes(*others))
    wide[axis] = x.shape[axis]
    return _gather_elements(jnp.broadcast_to(x, wide), _from_end(index, x.shape[axis]), axis)


def _index(x, *indices, axis=0):
    """Treats several indices as one index into their merged dimensions."""
    place, inside = 0, True
    for i, index in enumerate(indices):
        size = x.shape[axis + i]
        row = _from_end(index, size)
        place, inside = place * size + row, inside & (row >= 0) & (row < size)
    shape = (*x.shape[:axis], -1, *x.shape[axis + len(indices):])
    return _take(x.reshape(shape), jnp.where(inside, place, -1), axis)


def _scatter_add(x, index, values, axis=0):
    inside = (index >= 0) & (index < x.shape[axis])
    places = jnp.where(inside, index, x.shape[axis]).reshape(-1)
    moved = jnp.moveaxis(x, axis, 0)
    rows = jnp.moveaxis(values.reshape(
        *values.shape[:axis], -1, *values.shape[axis + index.ndim:]), axis, 0)
    return jnp.moveaxis(moved.at[places].add(rows, mode="drop"), 0, axis)


_FLOAT8 = [numpy_dtype(name) for name in FLOAT8]


def _cast(x, dtype, saturate=True):
    """Integers wrap; floats are truncated and saturate, NaN gives 0; float8 as in ONNX's Cast."""
    wanted = numpy_dtype(dtype)
    if x.dtype in _FLOAT8:
        x = x.astype(np.float32)
    if dtype in INTEGERS and x.dtype.name in FLOATS:
        limits = np.iinfo(wanted)
        wide = np.trunc(np.nan_to_num(x.astype(np.longdouble), nan=0.0))
        return np.clip(wide, limits.min, limits.max).astype(wanted)
    if dtype == "bool":
        return x != 0
    if dtype in FLOAT8 and saturate and x.dtype != bool:
        most = float(ml_dtypes.finfo(wanted).max)
        x = np.clip(x.astype(np.float64), -most, most)
    if dtype in FLOAT8 or dtype == "bfloat16":
        return x.astype(np.float64).astype(wanted)
    return x.astype(wanted)


def _mixed(generator, shape):
    """Returns numbers of all sizes, in and out of the range of float8 and int8."""
    return generator.choice([0, 1, -1, 0.3, -2.5, 7.75, 100, -100, 96, 448, -448, 464, 465, -500,
                             60000, 61440, -62000], shape)


def _one_hot(x, classes):
    return (x.astype(jnp.int64)[..., None] == jnp.arange(classes)).astype(jnp.int64)


def _of_one_size(dtype):
    size = numpy_dtype(dtype).itemsize
    return cases(*[((4, 9), {"dtype": other}) for other in ALL
                   if numpy_dtype(other).itemsize == size and other != "bool"])


_INDEX = Domain(-2.0, 3.0, dtype="int64")

ROWS = {
    "cast": Row(_cast, (Domain(values=_mixed),), raw=True, differentiable=False,
                cases=cases(*[((4, 9), {"dtype": dtype}) for dtype in ALL])),
    "bitcast": Row(lambda x, dtype: x.view(numpy_dtype(dtype)), raw=True, differentiable=False,
                   cases=_of_one_size,
                   refused={"bool": "of eight bits only two values are bools"}),
    "reshape": _moves(lambda x, shape: x.reshape(shape), ((), {"shape": (1, 1)}),
                      ((0, 3), {"shape": (3, 0)}), ((3, 5), {"shape": (5, 3)}),
                      ((129, 67), {"shape": (8643,)})),
    "permute": _moves(lambda x, axes: jnp.transpose(x, axes), ((7,), {"axes": (0,)}),
                      ((3, 5), {"axes": (1, 0)}), ((2, 0, 3), {"axes": (2, 0, 1)}),
                      ((4, 33, 17), {"axes": (1, 2, 0)})),
    "expand": _moves(lambda x, shape: jnp.broadcast_to(x, shape), ((1,), {"shape": (4,)}),
                     ((3, 1), {"shape": (3, 5)}), ((1, 1, 67), {"shape": (2, 64, 67)}),
                     gradient_factor=128),
    "pad": _moves(lambda x, padding: jnp.pad(x, _pairs(padding)), ((3,), {"padding": (1, 2)}),
                  ((3, 5), {"padding": (0, 0, 2, 1)}), ((0,), {"padding": (1, 1)}),
                  ((129, 67), {"padding": (3, 0, 0, 5)})),
    "shrink": _moves(_shrink, ((7,), {"bounds": (2, 5)}), ((3, 5), {"bounds": (0, 3, 1, 1)}),
                     ((129, 67), {"bounds": (5, 120, 3, 64)})),
    "shard": _moves(lambda x, spec: x, ((), {"spec": ()}), ((3, 5), {"spec": (0, 2, 1, 0)})),
    "send": _moves(lambda x, source, target: x, ((3, 5), {"source": 0, "target": 1})),
    "flip": _moves(lambda x, axes=(): jnp.flip(x, axes or None), ((7,), {}),
                   ((3, 5), {"axes": (1,)}), ((2, 64, 67), {"axes": (0, 2)})),
    "window": _moves(_window, ((7,), {"axis": 0, "size": 3}),
                     ((3, 12), {"axis": 1, "size": 2, "stride": 3, "dilation": 2}),
                     ((65, 4), {"axis": 0, "size": 5, "stride": 2})),
    "unwindow": _moves(_unwindow, ((5, 3), {"axis": 0, "length": 7}),
                       ((3, 4, 2), {"axis": 1, "length": 12, "stride": 3, "dilation": 2})),
    "gather": Row(_take, (ANY, _INDEX), cases=cases(
        ((7,), (4,)), ((5, 3), (2, 3)), ((3, 5), (4,), {"axis": 1}), ((129, 67), (50,)),
        ((5, 3), ()), ((5, 3), (0,)))),
    "gather_elements": Row(_gather_elements, (ANY, _INDEX), cases=cases(
        ((7,), (4,)), ((5, 3), (2, 3)), ((5, 3), (4, 1)), ((3, 5), (3, 4), {"axis": 1}),
        ((129, 67), (50, 67)), ((5, 3), (0, 3)))),
    "take": Row(
        lambda x, index, axis=0: _take(x, _from_end(index, x.shape[axis]), axis), (ANY, _INDEX),
        cases=cases(
            ((7,), (4,)), ((5, 3), (2, 3)), ((3, 5), (4,), {"axis": 1}), ((5, 3), ()))),
    "take_along_axis": Row(_take_along_axis, (ANY, _INDEX), cases=cases(
        ((7,), (4,)), ((5, 1), (2, 3)), ((3, 5), (1, 4), {"axis": 1}), ((129, 67), (50, 67)))),
    "index": Row(_index, (ANY, _INDEX, _INDEX), cases=cases(
        ((7,), (4,)), ((5, 3), (2, 1), (4,)), ((2, 5, 3), (4,), (4,), {"axis": 1}),
        ((129, 67), (50,)), ((5, 3), ()))),
    "scatter_add": Row(_scatter_add, (ANY, _INDEX, ANY), factor=16, cases=cases(
        ((7,), (4,), (4,)), ((5, 3), (2, 3), (2, 3, 3)), ((3, 5), (4,), (3, 4), {"axis": 1}),
        ((129, 67), (50,), (50, 67)), ((5, 3), (0,), (0, 3)))),
    "concat": Row(lambda *tensors, axis=0: jnp.concatenate(tensors, axis), (ANY,),
                  cases=cases(((7,),), ((3,), (0,), (4,)), ((3, 5), (3, 2), {"axis": 1}),
                              ((129, 67), (3, 67)))),
    "one_hot": Row(_one_hot, (Domain(-1.0, 2.0),), cases=cases(
        ((), {"classes": 3}), ((7,), {"classes": 5}), ((3, 5), {"classes": 4}),
        ((3,), {"classes": 300}))),
    "tril": _moves(lambda x, diagonal=0: jnp.tril(x, diagonal), ((3, 5), {}),
                   ((2, 5, 3), {"diagonal": -1}), ((67, 129), {"diagonal": 2})),
    "triu": _moves(lambda x, diagonal=0: jnp.triu(x, diagonal), ((3, 5), {}),
                   ((2, 5, 3), {"diagonal": -1}), ((67, 129), {"diagonal": 2})),
}
