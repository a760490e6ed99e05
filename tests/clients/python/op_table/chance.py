"""Ops without operands, and random numbers from a key."""

import jax.numpy as jnp
import numpy as np

from op_table.row import FLOATS, INTEGERS, Case, Domain, Row, cases, numpy_dtype


def _iota(shape, dtype, axis=0):
    steps = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.broadcast_to(steps, shape).astype(numpy_dtype(dtype))


def _constants(dtype):
    numbers = {"bool": [False, True], "uint64": [0, 200]}.get(dtype, [0, 1, 100])
    if dtype in INTEGERS and not dtype.startswith("u"):
        numbers = [*numbers, -128]
    if dtype not in ("bool", *INTEGERS):
        numbers = [*numbers, -0.0, 0.3, float("nan")]
    if dtype in FLOATS:
        numbers = [*numbers, float("inf"), -float("inf")]
    return [Case((), {"value": number, "shape": shape, "dtype": dtype})
            for number in numbers for shape in ((), (0,), (3, 5))]


def _threefry(key, shape):
    """Threefry-2x32 with 20 rounds, from its paper (Salmon et al., 2011)."""
    key = key.astype(np.uint32)
    count = np.arange(int(np.prod(shape)), dtype=np.uint64)
    x = [(count >> np.uint64(32)).astype(np.uint32), count.astype(np.uint32)]
    keys = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)]
    rotations = [[13, 15, 26, 6], [17, 29, 16, 24]]
    with np.errstate(over="ignore"):
        x = [x[0] + keys[0], x[1] + keys[1]]
        for block in range(5):
            for turn in rotations[block % 2]:
                x[0] = x[0] + x[1]
                x[1] = (x[1] << np.uint32(turn)) | (x[1] >> np.uint32(32 - turn))
                x[1] = x[1] ^ x[0]
            x[0] = x[0] + keys[(block + 1) % 3]
            x[1] = x[1] + keys[(block + 2) % 3] + np.uint32(block + 1)
    return x


def _bits(key, shape):
    x = _threefry(key, shape)
    return (x[0] ^ x[1]).reshape(shape)


def _upper(word):
    return (word >> np.uint32(8)).astype(np.float64)


def _uniform(key, shape):
    return _upper(_bits(key, shape)) * 2.0**-24


def _normal(key, shape):
    """Box and Muller (1958)."""
    first, second = _threefry(key, shape)
    radius = np.sqrt(-2 * np.log((_upper(first) + 1) * 2.0**-24))
    return (radius * np.cos(2 * np.pi * _upper(second) * 2.0**-24)).reshape(shape)


def _dropout(x, key, p=0.5, shared_axes=()):
    shape = [1 if i in shared_axes or i - x.ndim in shared_axes else size
             for i, size in enumerate(x.shape)]
    goes = _upper(_bits(key, shape)) < np.ceil(p * 2**24)
    return jnp.where(goes, 0, x / (1 - p) if p < 1 else 0 * x)


_KEY = Domain(0.0, 1e9)
_SHAPES = cases(*[((2,), {"shape": shape}) for shape in ((), (7,), (0, 3), (129, 67))])
_NO_KEY = dict.fromkeys([name for name in INTEGERS if name != "uint32"], "a key is uint32")

ROWS = {
    "const": Row(lambda value, shape, dtype: np.full(shape, value, numpy_dtype(dtype)), (),
                 raw=True, cases=_constants),
    "iota": Row(_iota, (), raw=True, cases=lambda dtype: [
        Case((), {"shape": shape, "axis": axis, "dtype": dtype})
        for shape in ((5, 16), (0, 3), (1, 1)) for axis in (0, 1)],
        refused={"bool": "there are but two of them"}),
    "random_bits": Row(_bits, (_KEY,), raw=True, cases=_SHAPES, refused=_NO_KEY),
    "random_uniform": Row(_uniform, (_KEY,), raw=True, cases=_SHAPES, refused=_NO_KEY),
    "random_normal": Row(_normal, (_KEY,), raw=True, cases=_SHAPES, refused=_NO_KEY, factor=16),
    "dropout": Row(
        _dropout, (Domain(), Domain(0.0, 1e9, dtype="uint32", gradient=False)), cases=cases(
            ((), (2,)), ((7,), (2,), {"p": 0.25}), ((0, 3), (2,)), ((129, 67), (2,)),
            ((3, 5), (2,), {"p": 0.0}), ((3, 5), (2,), {"p": 1.0}),
            ((9, 7, 2), (2,), {"p": 0.3, "shared_axes": (0, -1)}))),
}
