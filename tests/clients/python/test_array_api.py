"""The functions of the Python array API standard 2024.12 give the results of array-api-strict."""

import numpy as np
import pytest

import kiln
from array_api_oracle import ALL, FLOATS, INTEGERS, NUMBERS, compare, data, run

ONE_SESSION = True

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.0, 3.0]


UNARY = {
    **dict.fromkeys(["abs", "negative", "positive", "sign", "square"], NUMBERS),
    **dict.fromkeys(["ceil", "floor", "round", "trunc"], NUMBERS),
    **dict.fromkeys(["isfinite", "isinf", "isnan"], NUMBERS),
    **dict.fromkeys(
        ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log",
         "log10", "log1p", "log2", "reciprocal", "signbit", "sin", "sinh", "sqrt", "tan", "tanh"],
        FLOATS),
    "bitwise_invert": [*INTEGERS, "bool"], "logical_not": ["bool"],
}  # fmt: skip
DOMAINS = {"acosh": (1, 9), "acos": (-1, 1), "asin": (-1, 1), "atanh": (-1, 1), "log": (0, 9),
           "log2": (0, 9), "log10": (0, 9), "log1p": (-1, 9), "sqrt": (0, 9)}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(connection, name):
    results = []
    for dtype in UNARY[name]:
        x = data(dtype)
        if name in DOMAINS:
            low, high = DOMAINS[name]
            x = np.random.default_rng(1).uniform(low, high, size=(4, 5)).astype(dtype)
        results += run(name, [x])
        if dtype in FLOATS:
            results += run(name, [np.array(SPECIAL, dtype)])
    compare(results)


BINARY = {
    **dict.fromkeys(["add", "subtract", "multiply", "maximum", "minimum"], NUMBERS),
    **dict.fromkeys(["floor_divide", "remainder", "less", "less_equal", "greater"], NUMBERS),
    **dict.fromkeys(["greater_equal"], NUMBERS), **dict.fromkeys(["equal", "not_equal"], ALL),
    **dict.fromkeys(["divide", "atan2", "copysign", "hypot", "logaddexp", "nextafter"], FLOATS),
    "pow": NUMBERS,
    **{name: [*INTEGERS, "bool"] for name in ["bitwise_and", "bitwise_or", "bitwise_xor"]},
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], INTEGERS),
    **{name: ["bool"] for name in ["logical_and", "logical_or", "logical_xor"]},
}  # fmt: skip


def second(name, dtype):
    """Returns the other operand: no zero to divide by, no negative exponent or distance."""
    y = data(dtype, 1, (5,))
    if dtype not in ("bool", *FLOATS):
        if name in ("floor_divide", "remainder"):
            y[y == 0] = 3
        if name == "pow" or "shift" in name:
            y = np.abs(y) % 7
    return y


@pytest.mark.parametrize("name", BINARY)
def test_binary(connection, name):
    results = []
    for dtype in BINARY[name]:
        x, y = data(dtype), second(name, dtype)
        if name == "pow" and dtype in FLOATS:
            x = np.abs(x)
        results += run(name, [x, y])
        if dtype != "bool":
            results += run(name, [x, 2])
            if name != "pow" and "shift" not in name:
                results += run(name, [3, np.abs(y) + y.dtype.type(1)])
        if dtype in FLOATS and name not in ("remainder", "floor_divide"):
            results += run(name, [np.array(SPECIAL, dtype)[:, None], np.array(SPECIAL, dtype)])
    compare(results)


@pytest.mark.parametrize(("a", "b"), [
    ("int8", "uint8"), ("uint16", "int32"), ("uint32", "int8"), ("float32", "float64"),
    ("uint8", "uint64"), ("int16", "int64")])  # fmt: skip
def test_operands_of_two_dtypes_promote(connection, a, b):
    compare(run("add", [data(a), data(b)]) + run("less", [data(a), data(b, 1)]) + run(
        "where", [data("bool"), data(a), data(b)]) + run("concat", [[data(a), data(b)]]))


REDUCTIONS = {
    **dict.fromkeys(["sum", "prod", "max", "min", "count_nonzero"], NUMBERS),
    **dict.fromkeys(["mean", "std", "var"], FLOATS), **dict.fromkeys(["all", "any"], ALL),
    **dict.fromkeys(["argmax", "argmin"], NUMBERS),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(connection, name):
    results = []
    for dtype in REDUCTIONS[name]:
        x = data(dtype, shape=(2, 3, 4), low=-3, high=4)
        for axis in (None, 1, -1) + (((0, 2),) if "arg" not in name else ()):
            results += run(name, [x], axis=axis, keepdims=axis == 1)
    if name in ("std", "var"):
        results += run(name, [x], axis=0, correction=1)
    if name in ("sum", "prod"):
        results += run(name, [x], axis=0, dtype="float64")
    if name in ("sum", "prod", "all", "any"):
        results += run(name, [x[:0]], axis=0)
        results += run(name, [x], axis=())
    compare(results)


def test_cumulative(connection):
    results = []
    for dtype in NUMBERS:
        x = data(dtype, shape=(3, 7), low=-3, high=4)
        for name in ("cumulative_sum", "cumulative_prod"):
            results += run(name, [x], axis=1) + run(name, [x], axis=0, include_initial=True)
    results += run("cumulative_sum", [x[0]]) + run("cumulative_sum", [x], axis=0, dtype="float64")
    compare(results)


def test_a_dtype_of_a_cumulative_sum_is_the_results(connection):
    x = kiln.tensor([1, 2, 3], dtype=kiln.int64)
    for function in (kiln.cumulative_sum, kiln.cumulative_prod):
        assert function(x, dtype=kiln.int8).dtype is kiln.int8


def test_differences(connection):
    results = []
    for dtype in NUMBERS:
        x = data(dtype)
        results += run("diff", [x]) + run("diff", [x], axis=0, n=2)
        results += run("diff", [x], prepend=x[:, :1], append=x)
    compare(results)


def test_manipulation(connection):
    x, y = data("float32", shape=(2, 3, 4)), data("float32", 1, shape=(2, 3, 4))
    compare([
        *run("broadcast_arrays", [x, y[0, 0]]), *run("broadcast_to", [x[0], (5, 3, 4)]),
        *run("concat", [[x, y]], axis=1), *run("concat", [[x, y[0]]], axis=None),
        *run("expand_dims", [x], axis=1), *run("expand_dims", [x], axis=-1),
        *run("flip", [x]), *run("flip", [x], axis=(0, 2)), *run("flip", [x], axis=-1),
        *run("moveaxis", [x, 0, -1]), *run("moveaxis", [x, (0, 1), (2, 0)]),
        *run("permute_dims", [x, (2, 0, 1)]), *run("matrix_transpose", [x]),
        *run("repeat", [x, 2]), *run("repeat", [x, 3], axis=1),
        *run("repeat", [x, np.array([1, 0, 2])], axis=1),
        *run("reshape", [x, (4, -1)]), *run("reshape", [x, (24,)], copy=True),
        *run("roll", [x, 5]), *run("roll", [x, (1, -2)], axis=(0, 2)), *run("roll", [x, 1], axis=1),
        *run("squeeze", [x[:1]], axis=0), *run("squeeze", [x[:1, :, :1]], axis=(0, 2)),
        *run("stack", [[x, y]], axis=1), *run("stack", [[x, y]], axis=-1),
        *run("tile", [x, (2, 1, 3)]), *run("tile", [x, (2,)]), *run("tile", [x, (2, 1, 1, 1)]),
        *run("unstack", [x], axis=1),
        *run("tril", [x]), *run("triu", [x], k=1), *run("tril", [x], k=-1),
        *run("meshgrid", [x[0, 0], y[0, :, 0]]),
        *run("meshgrid", [x[0, 0], y[0, :, 0], x[:, 0, 0]], indexing="ij"),
    ])  # fmt: skip


def test_searching(connection):
    x = data("float32")
    sorted_values, looked_up = np.sort(x[0]), data("float32", 3)
    compare([
        *run("nonzero", [data("int32") % 3]), *run("where", [x > 0, x, -x]),
        *run("where", [x > 0, x, 1.5]), *run("where", [x > 0, 2, x]),
        *run("searchsorted", [sorted_values, looked_up]),
        *run("searchsorted", [sorted_values, looked_up], side="right"),
        *run("searchsorted", [x[0], looked_up], sorter=np.argsort(x[0])),
        *run("take", [x, np.array([3, 0, 3])], axis=1), *run("take", [x[0], np.array([1, 2])]),
        *run("take_along_axis", [x, np.argsort(x, 1)], axis=1),
        *run("take_along_axis", [x, np.array([[0], [1], [2], [1]])]),
    ])  # fmt: skip


def test_sorting(connection):
    results = []
    for dtype in NUMBERS:
        x = data(dtype, shape=(3, 7))
        for name in ("sort", "argsort"):
            results += run(name, [x]) + run(name, [x], axis=0, descending=True)
    compare(results)


@pytest.mark.parametrize("dtype", ALL)
def test_sets(connection, dtype):
    x = data(dtype, shape=(3, 5), low=-3, high=4)
    compare([
        *run("unique_all", [x]), *run("unique_counts", [x]), *run("unique_inverse", [x]),
        *run("unique_values", [x]),
    ])  # fmt: skip
    for invert in (False, True):  # array-api-strict takes only integers, and no invert
        got = kiln.isin(kiln.asarray(x), kiln.asarray(x[1, :2]), invert=invert)
        compare([(got, np.isin(x, x[1, :2], invert=invert), "isin")])


def test_matrix_products(connection):
    results = []
    for dtype in NUMBERS:
        a, b = data(dtype, shape=(2, 3, 4)), data(dtype, 1, shape=(4, 3))
        results += run("matmul", [a, b]) + run("matmul", [a, b[:, 0]])
        results += run("tensordot", [a, b], axes=1)
        results += run("tensordot", [a, b], axes=((1, 2), (1, 0)))
        results += run("vecdot", [a, a[:1]]) + run("vecdot", [b, b], axis=-2)
    compare(results)


def test_linear_algebra(connection):
    for dtype in FLOATS:
        a = data(dtype, shape=(2, 4, 4)) + 5 * np.eye(4, dtype=dtype)
        definite = a @ a.swapaxes(-1, -2) + np.eye(4, dtype=dtype)
        b = data(dtype, 1, shape=(2, 4, 3))
        calls = [
            *run("cholesky", [definite], "linalg"), *run("det", [a], "linalg"),
            *run("cholesky", [definite], "linalg", upper=True), *run("inv", [a], "linalg"),
            *run("solve", [a, b], "linalg"), *run("slogdet", [a], "linalg"),
            *run("matrix_power", [a, 3], "linalg"), *run("matrix_power", [a, -2], "linalg"),
            *run("diagonal", [b], "linalg", offset=1), *run("trace", [a], "linalg", offset=-1),
            *run("outer", [a[0, 0], b[0, 0]], "linalg"), *run("cross", [b, b[:, ::-1]], "linalg"),
            *run("vector_norm", [b], "linalg", axis=1), *run("matrix_norm", [b], "linalg"),
            *run("vector_norm", [b], "linalg", ord=1, axis=(0, 2), keepdims=True),
            *run("vector_norm", [b], "linalg", ord=float("inf")),
            *run("matrix_norm", [b], "linalg", ord=1, keepdims=True),
        ]
        q, r = kiln.linalg.qr(kiln.asarray(b))
        calls.append((q @ r, b, "qr"))
        calls.append((q.mT @ q, np.broadcast_to(np.eye(3, dtype=dtype), (2, 3, 3)), "qr's q"))
        tolerance = {"float64": 1e-11, "float32": 1e-4}[dtype]
        kiln.realize(*[got for got, _, _ in calls])
        for got, wanted, what in calls:
            wanted = np.asarray(getattr(wanted, "_array", wanted))
            assert (got.dtype.name, got.shape) == (wanted.dtype.name, wanted.shape), what
            np.testing.assert_allclose(
                got.numpy(), wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max(),
                err_msg=str(what))


def test_creation(connection):
    results = []
    for dtype in NUMBERS:
        results += run("arange", [2, 11, 3], dtype=dtype) + run("full", [(2, 3), 5], dtype=dtype)
        results += run("eye", [3, 4], k=1, dtype=dtype) + run("zeros", [4], dtype=dtype)
        results += run("ones_like", [data(dtype)]) + run("full_like", [data(dtype), 7])
        results += run("asarray", [[[1, 2], [3, 4]]], dtype=dtype)
    for dtype in FLOATS:
        results += run("linspace", [-1, 2, 7], dtype=dtype)
        results += run("linspace", [0.1, 2, 5], dtype=dtype, endpoint=False)
    compare(results + run("arange", [5, 0, -2]) + run("asarray", [data("bool")]))


def test_devices(connection):
    x = kiln.ones(2)
    info = kiln.__array_namespace_info__()
    assert x.device == info.default_device() == info.devices()[0] == "cpu:0"
    assert x.to_device("cpu:0") is x and kiln.zeros(2, device=x.device).shape == (2,)
    with pytest.raises(kiln.InvalidArgument, match="gpu:7"):
        x.to_device("gpu:7")
    with pytest.raises(kiln.InvalidArgument, match="gpu:7"):
        kiln.zeros(2, device="gpu:7")


def test_other_libraries_take_and_give_arrays(connection):
    x = kiln.arange(6).reshape(2, 3) * 2
    assert x.__array_namespace__() is kiln
    np.testing.assert_array_equal(np.from_dlpack(x), x.numpy())
    np.testing.assert_array_equal(np.asarray(x, dtype=np.float32), x.numpy())
    assert kiln.from_dlpack(np.ones((2, 2), np.int16)).dtype is kiln.int16
    assert kiln.from_dlpack(x).shape == (2, 3) and x.__dlpack_device__() == (1, 0)
    assert kiln.asarray(x) is x and kiln.asarray(x, copy=True) is not x
    for refused in (lambda: x.__dlpack__(copy=False), lambda: x.bfloat16().__dlpack__(),
                    lambda: x.__dlpack__(dl_device=(2, 0)),
                    lambda: kiln.from_dlpack(np.ones(2), copy=False)):  # fmt: skip
        with pytest.raises(BufferError):
            refused()
    with pytest.raises(ValueError):
        kiln.asarray([1.0], copy=False)
