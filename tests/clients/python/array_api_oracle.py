"""Compares calls of Kiln's namespace with array-api-strict's."""

import array_api_strict as strict
import numpy as np

import kiln
from kiln._basics import dtypes

FLOATS = ["float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS = INTEGERS + FLOATS
ALL = ["bool", *NUMBERS]
TOLERANCE = {"float32": 2e-6, "float64": 2e-13}


def data(dtype, seed=0, shape=(4, 5), low=-9, high=9):
    """Returns numbers of a dtype; floats have fractions."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, size=shape).astype(bool)
    if dtype in FLOATS:
        return (random.normal(size=shape) * 2).astype(dtype)
    return random.integers(0 if dtype[0] == "u" else low, high, size=shape).astype(dtype)


def compare(results):
    """Computes all results in one program and compares them with array-api-strict's."""
    kiln.realize(*[got for got, _, _ in results])
    for got, wanted, what in results:
        wanted = np.asarray(wanted._array if hasattr(wanted, "_array") else wanted)
        assert got.dtype.name == wanted.dtype.name, what
        assert got.shape == wanted.shape, what
        value = got.numpy()
        if wanted.dtype.kind == "f":
            tolerance = TOLERANCE[wanted.dtype.name]
            np.testing.assert_allclose(
                value, wanted, rtol=tolerance, atol=tolerance, err_msg=str(what))
        else:
            np.testing.assert_array_equal(value, wanted, err_msg=str(what))


def run(name, arguments, module=None, **keywords):
    """Calls one function in both namespaces, with the arrays converted to each one's own type."""
    ours = getattr(kiln if module is None else getattr(kiln, module), name)
    theirs = getattr(strict if module is None else getattr(strict, module), name)

    def convert(value, make):
        if isinstance(value, np.ndarray):
            return make(value)
        if isinstance(value, list):
            return [convert(part, make) for part in value]
        return value

    mine = {key: dtypes.as_dtype(value) if key == "dtype" else convert(value, kiln.asarray)
            for key, value in keywords.items()}  # fmt: skip
    other = {key: getattr(strict, value) if key == "dtype" else convert(value, strict.asarray)
             for key, value in keywords.items()}  # fmt: skip
    with np.errstate(all="ignore"):
        wanted = theirs(*convert(arguments, strict.asarray), **other)
    got = ours(*convert(arguments, kiln.asarray), **mine)
    what = (name, [getattr(a, "dtype", a) for a in arguments], keywords)
    if isinstance(got, kiln.Tensor):
        return [(got, wanted, what)]
    assert len(got) == len(wanted)
    return [(part, other, what) for part, other in zip(got, wanted)]
