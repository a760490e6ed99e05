"""The namespace against the Python array API standard 2024.12, by way of array-api-strict."""

import inspect

import array_api_strict as strict
import numpy as np
import pytest

import kiln

# Complex numbers and the Fourier extension are out of scope; the rest is array-api-strict's own.
NOT_OURS = {
    "ArrayAPIStrictFlags", "Device", "__version__", "complex128", "complex64", "conj", "fft",
    "get_array_api_strict_flags", "imag", "real", "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
}  # fmt: skip
NAMES = sorted(set(strict.__all__) - NOT_OURS)
LINEAR = sorted(strict.linalg.__all__)
# Decompositions that need iterations.
LINEAR_NOT_OURS = {"eig", "eigh", "eigvals", "eigvalsh", "matrix_rank", "pinv", "svd", "svdvals"}


def parameters(function):
    return list(inspect.signature(function).parameters.values())


def takes(mine, theirs, place):
    """Whether a parameter can be given as the standard has it."""
    by_name = {parameter.name: parameter for parameter in mine}
    positional = [p for p in mine if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if theirs.kind == theirs.VAR_POSITIONAL:
        return any(p.kind == p.VAR_POSITIONAL for p in mine)
    found = by_name.get(theirs.name)
    if theirs.kind in (theirs.POSITIONAL_ONLY, theirs.POSITIONAL_OR_KEYWORD):
        if place >= len(positional):
            return False
        if theirs.kind == theirs.POSITIONAL_ONLY:
            found = positional[place]
    if found is None or (theirs.kind != theirs.POSITIONAL_ONLY
                         and found.kind == found.POSITIONAL_ONLY):
        return False
    if theirs.default is theirs.empty:
        return True
    plain = theirs.default is None or isinstance(theirs.default, (bool, int, float, str))
    return found.default is not found.empty and (not plain or found.default == theirs.default)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_the_standard_is_there(name):
    ours, theirs = getattr(kiln, name), getattr(strict, name)
    assert name in kiln.__all__ or name.startswith("__")
    if not inspect.isfunction(theirs):
        return
    for place, parameter in enumerate(parameters(theirs)):
        assert takes(parameters(ours), parameter, place), f"{name}{inspect.signature(ours)}"


@pytest.mark.parametrize("name", sorted(set(LINEAR) - LINEAR_NOT_OURS))
def test_every_name_of_the_linear_algebra_extension_is_there(name):
    for place, parameter in enumerate(parameters(getattr(strict.linalg, name))):
        assert takes(parameters(getattr(kiln.linalg, name)), parameter, place)


@pytest.mark.parametrize("name", [
    name for name in dir(strict.asarray(1.0))
    if name.startswith("__") and name != "__buffer__"])
def test_every_method_of_the_standard_is_there(name):
    assert hasattr(kiln.Tensor, name)


FLOATS = ["float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS = INTEGERS + FLOATS
ALL = ["bool", *NUMBERS]
TOLERANCE = {"float32": 2e-6, "float64": 2e-13}

RANDOM = np.random.default_rng(11)
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.0, 3.0]


def data(dtype, seed=0, shape=(4, 5), low=-9, high=9):
    """Numbers of a dtype; floats are no whole numbers."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, size=shape).astype(bool)
    if dtype in FLOATS:
        return (random.normal(size=shape) * 2).astype(dtype)
    return random.integers(0 if dtype[0] == "u" else low, high, size=shape).astype(dtype)


def compare(results):
    """Computes all of them in one program and compares with array-api-strict."""
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
    """One call of ours and of theirs; arrays among the arguments become each one's own."""
    ours = getattr(kiln if module is None else getattr(kiln, module), name)
    theirs = getattr(strict if module is None else getattr(strict, module), name)

    def convert(value, make):
        if isinstance(value, np.ndarray):
            return make(value)
        if isinstance(value, list):
            return [convert(part, make) for part in value]
        return value

    mine = {key: kiln._dtypes.as_dtype(value) if key == "dtype" else convert(value, kiln.asarray)
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
    """The other operand: no zero to divide by, no negative exponent or distance."""
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
    for invert in (False, True):  # array-api-strict takes integers alone, and no invert
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


@pytest.mark.parametrize("a", ALL)
@pytest.mark.parametrize("b", ALL)
def test_promotion_is_the_standards(a, b):
    try:
        wanted = strict.result_type(getattr(strict, a), getattr(strict, b))
    except TypeError:  # mixed kinds, which the standard leaves open
        return
    ours = kiln.result_type(getattr(kiln, a), getattr(kiln, b))
    assert ours.name == str(wanted).rpartition(".")[2]
    assert kiln.can_cast(getattr(kiln, a), getattr(kiln, b)) == strict.can_cast(
        getattr(strict, a), getattr(strict, b))


def test_questions_about_dtypes():
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating",
             "complex floating", "numeric")  # fmt: skip
    for name in ALL:
        for kind in kinds:
            assert kiln.isdtype(getattr(kiln, name), kind) == strict.isdtype(
                getattr(strict, name), kind)
    for name in FLOATS:
        ours, theirs = kiln.finfo(getattr(kiln, name)), strict.finfo(getattr(strict, name))
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(ours, field) == getattr(theirs, field)
    for name in INTEGERS:
        ours, theirs = kiln.iinfo(getattr(kiln, name)), strict.iinfo(getattr(strict, name))
        assert (ours.bits, ours.min, ours.max) == (theirs.bits, theirs.min, theirs.max)
    assert kiln.result_type(kiln.zeros(2, dtype="int8"), 3) is kiln.int8
    assert kiln.result_type(kiln.float32, 3, 2.5) is kiln.float32
    info = kiln.__array_namespace_info__()
    assert set(info.dtypes(kind="numeric")) == set(NUMBERS) and info.capabilities()
    for question in (kiln.finfo, kiln.iinfo):
        with pytest.raises(kiln.InvalidArgument, match="bool"):
            question(kiln.bool)


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


def test_python_numbers(connection):
    assert complex(kiln.tensor(2.5)) == 2.5 and int(kiln.tensor(-3)) == -3
    assert float(kiln.tensor(7)) == 7.0 and bool(kiln.tensor([[1]]))
    assert divmod(kiln.tensor(7), 2)[1].item() == 1
    for convert in (bool, int, float, complex):
        with pytest.raises(kiln.InvalidArgument, match=r"one element.*test_array_api\.py:"):
            convert(kiln.zeros(2))
    with pytest.raises(TypeError):
        range(kiln.tensor(1.5))


HALF = {"float16": 2**-10, "bfloat16": 2**-7}
HALF_UNARY = [
    "abs", "ceil", "cos", "exp", "expm1", "floor", "log", "log1p", "log2", "log10", "negative",
    "reciprocal", "round", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip
HALF_BINARY = [
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "maximum", "minimum",
    "pow", "atan2", "hypot", "logaddexp",
]  # fmt: skip


@pytest.mark.parametrize("dtype", HALF)
def test_half_types(connection, dtype):
    """float16 and bfloat16 are more than the standard has: float32's result, rounded."""
    kind = getattr(kiln, dtype)
    x = kiln.tensor(np.random.default_rng(2).uniform(0.2, 3, size=(4, 33)), kind)
    y = kiln.tensor(np.random.default_rng(3).uniform(0.5, 2, size=33), kind)
    a, b = x.numpy().astype(np.float32), y.numpy().astype(np.float32)
    pairs = [(getattr(kiln, name)(x), getattr(np, name)(a), name) for name in HALF_UNARY]
    pairs += [(getattr(kiln, name)(x, y), getattr(np, name)(a, b), name) for name in HALF_BINARY]
    pairs += [(getattr(kiln, name)(x, axis=1), getattr(np, name)(a, axis=1), name)
              for name in ("sum", "mean", "max", "min", "std", "var")]  # fmt: skip
    pairs.append((kiln.prod(x[:, :6], axis=1), np.prod(a[:, :6], axis=1), "prod"))
    pairs += [(x @ y, a @ b, "matmul"), (x[:, ::-2], a[:, ::-2], "index"),
              (x[[1, 3]], a[[1, 3]], "take"),
              (kiln.where(x > 1, x, y), np.where(a > 1, a, b), "where"),
              (kiln.concat([x, x], axis=1), np.concatenate([a, a], 1), "concat")]  # fmt: skip
    kiln.realize(*[got for got, _, _ in pairs])
    for got, wanted, name in pairs:
        assert got.dtype is kind, name
        np.testing.assert_allclose(got.numpy(), wanted, rtol=2 * HALF[dtype], err_msg=name)
    x[1:, 3] = 7
    assert x[2, 3].item() == 7 and (x == 7).sum().item() == 3


@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2"])
def test_float8_is_for_storage(connection, dtype):
    kind = getattr(kiln, dtype)
    data = np.random.default_rng(2).normal(size=(5, 40)).astype(np.float32)
    stored = kiln.tensor(data).cast(kind)
    np.testing.assert_array_equal(stored.numpy(), kiln.tensor(data, kind).numpy())
    np.testing.assert_array_equal(stored.float().numpy(), stored.numpy())
    np.testing.assert_array_equal(stored[1:, ::3].numpy(), stored.numpy()[1:, ::3])
    with pytest.raises(kiln.InvalidArgument, match=rf"{dtype}.*only stores.*test_array_api\.py:"):
        (stored * stored).numpy()
