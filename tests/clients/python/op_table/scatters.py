"""Writing at places that are data, each place once. For repeated places see test_scatter."""

import jax.numpy as jnp
import numpy as np

from op_table.row import ANY, NUMBERS, Domain, Row, cases

_COMBINE = {"set": lambda old, new: new, "add": jnp.add, "mul": jnp.multiply,
            "max": jnp.maximum, "min": jnp.minimum}  # fmt: skip


def _places(generator, shape):
    """Returns distinct places, some counted from the end; of several, one is far outside."""
    count = int(np.prod(shape))
    places = generator.permutation(np.arange(-2, count))[:count]
    if count > 2:
        places[count // 2] = 10_000
    return places.reshape(shape)


def _written(x, places, inside, values, mode):
    """`places` has an index for each dimension."""
    held = tuple(jnp.where(inside, place, 0) for place in places)
    outside = jnp.where(inside, places[0], x.shape[0])  # dropped
    combined = _COMBINE[mode](x[held], values)
    return x.at[(outside, *places[1:])].set(combined, mode="drop")


def _scatter_elements(x, index, values, axis=0, mode="set", from_end=False):
    index = jnp.broadcast_to(index, values.shape)
    if from_end:
        index = jnp.where(index < 0, index + x.shape[axis], index)
    places = list(jnp.indices(values.shape))
    places[axis] = index
    x, places = jnp.moveaxis(x, axis, 0), [places.pop(axis), *places]
    inside = (index >= 0) & (index < x.shape[0])
    return jnp.moveaxis(_written(x, places, inside, values, mode), 0, axis)


def _rows(x, index, values, axis, mode):
    """`values` has x's shape with the index's shape in place of the axis."""
    x = jnp.moveaxis(x, axis, 0)
    shape = (*values.shape[:axis], -1, *values.shape[axis + index.ndim:])
    values = jnp.moveaxis(values.reshape(shape), axis, 0)
    index = index.reshape(-1)
    inside = (index >= 0) & (index < x.shape[0])
    inside = inside.reshape(-1, *[1] * (x.ndim - 1))
    places = [index.reshape(inside.shape), *jnp.indices(x.shape, sparse=True)[1:]]
    return jnp.moveaxis(_written(x, places, inside, values, mode), 0, axis)


def _scatter(x, index, values, axis=0, mode="set"):
    return _rows(x, index, values, axis, mode)


def _put_along_axis(x, index, values, axis=0, mode="set"):
    shape = list(np.broadcast_shapes(index.shape, values.shape))
    for i, size in enumerate(x.shape):
        shape[i] = shape[i] if i == axis else size
    values = jnp.broadcast_to(values, shape)
    return _scatter_elements(x, index, values, axis, mode, from_end=True)


def _index_put(x, values, *indices, axis=0, mode="set"):
    """Treats several indices as one index into their merged dimensions."""
    place, inside = 0, True
    for i, index in enumerate(indices):
        size = x.shape[axis + i]
        row = jnp.where(index < 0, index + size, index)
        place, inside = place * size + row, inside & (row >= 0) & (row < size)
    rest = x.shape[axis + len(indices):]
    joined = x.reshape(*x.shape[:axis], -1, *rest)
    values = jnp.broadcast_to(values, (*x.shape[:axis], *place.shape, *rest))
    return _rows(joined, jnp.where(inside, place, -1), values, axis, mode).reshape(x.shape)


def _modes(*given):
    """Returns every case with every mode that the dtype has."""

    def of(dtype):
        modes = _COMBINE if dtype in NUMBERS else ("set",)
        return cases(*[(*one[:-1], {**one[-1], "mode": mode}) for one in given for mode in modes])

    return of


_INDEX = Domain(dtype="int64", values=_places)

ROWS = {
    "scatter_elements": Row(_scatter_elements, (ANY, _INDEX, ANY), cases=_modes(
        ((7,), (4,), (4,), {}), ((9, 3), (2, 3), (2, 3), {}), ((3, 9), (1, 4), (3, 4), {"axis": 1}),
        ((129, 67), (100, 1), (100, 67), {}), ((5, 3), (0, 3), (0, 3), {}))),
    "scatter": Row(_scatter, (ANY, _INDEX, ANY), cases=_modes(
        ((7,), (4,), (4,), {}), ((9, 3), (2, 3), (2, 3, 3), {}),
        ((3, 9), (4,), (3, 4), {"axis": 1}), ((5, 3), (), (3,), {}),
        ((129, 67), (100,), (100, 67), {}), ((5, 3), (0,), (0, 3), {}))),
    "put_along_axis": Row(_put_along_axis, (ANY, _INDEX, ANY), cases=_modes(
        ((7,), (4,), (4,), {}), ((9, 3), (2, 3), (1, 3), {}),
        ((3, 9), (1, 4), (3, 4), {"axis": 1}), ((129, 67), (100, 1), (100, 67), {}))),
    "index_put": Row(_index_put, (ANY, ANY, _INDEX, Domain(dtype="int64", low=0.0, high=0.3)),
                     cases=_modes(
        ((7,), (4,), (4,), {}), ((9, 3), (), (2, 3), {}), ((9, 3), (4,), (4,), (4,), {}),
        ((3, 9), (3, 4), (4,), {"axis": 1}), ((129, 67), (100, 67), (100,), {}))),
}  # fmt: skip
