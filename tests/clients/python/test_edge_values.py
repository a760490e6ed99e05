"""Elementwise ops at the ends of every dtype's range, at both zeros, infinities and NaN."""

import ml_dtypes
import numpy as np
import pytest

import kiln
from op_table.row import FLOAT8, INTEGERS, numpy_dtype

ONE_SESSION = True

UNARY = {
    "neg": np.negative, "abs": np.abs, "square": np.square, "sqrt": np.sqrt, "cbrt": np.cbrt,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
    "reciprocal": np.reciprocal, "sign": np.sign,
}  # fmt: skip
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "fmod": np.fmod, "hypot": np.hypot,
    "atan2": np.arctan2, "logaddexp": np.logaddexp, "copysign": np.copysign,
}  # fmt: skip
# Rounded to the nearest from the float64 result; quotients and remainders depend on every digit.
EXACT = ("floor_divide", "remainder", "fmod")
WHOLE_UNARY = {"neg": np.negative, "abs": np.abs, "square": np.square, "not_": np.invert,
               "sign": np.sign}  # fmt: skip
WHOLE_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "floor_divide": np.floor_divide,
    "remainder": np.remainder, "fmod": np.fmod, "maximum": np.maximum, "minimum": np.minimum,
    "shl": np.left_shift, "shr": np.right_shift, "xor": np.bitwise_xor,
}  # fmt: skip


def floats(dtype):
    """Returns both ends of the range, numbers near 1, halves, and limits of exponentials."""
    info = np.finfo(dtype)
    most, least, smallest, eps = (
        float(x) for x in (info.max, info.tiny, info.smallest_subnormal, info.eps))
    sizes = [0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 20.0, 100.0, 1e4, most, most / 2,
             most * 0.6, np.sqrt(most), least, least * 0.37, np.sqrt(least), smallest, eps, 1 + eps,
             1 - eps / 2, 1e-5, 88.9, 709.9, np.inf]  # fmt: skip
    return np.array([*sizes, *[-size for size in sizes], np.nan]).astype(dtype)


def integers(dtype):
    ends = np.iinfo(dtype)
    small = [0, 1, 2, 3, 7, 8, 15, 31, 32, 63, 64, 100]
    negative = [-1, -2, -3, -7, -100, ends.min, ends.min + 1] if ends.min < 0 else []
    return np.array([*small, *negative, ends.max, ends.max - 1, ends.max // 2], dtype)


def assert_close(name, arrays, got, wanted):
    """Allows 16 units in the last place, or of 1; zeros must have the same sign."""
    eps = float(ml_dtypes.finfo(got.dtype).eps)
    wanted = wanted.astype(got.dtype)
    near = np.isclose(got.astype(np.float64), wanted.astype(np.float64), rtol=16 * eps,
                      atol=16 * eps, equal_nan=True)  # fmt: skip
    zeros = (got == 0) & (wanted == 0)
    wrong = np.argwhere(~near | (zeros & (np.signbit(got) != np.signbit(wanted))))
    at = [tuple(place) for place in wrong[:5]]
    operands = np.broadcast_arrays(*arrays)
    found = [([operand[i] for operand in operands], got[i], wanted[i]) for i in at]
    assert not found, f"{name}: {len(wrong)} differ: {found}"


def compare_floats(dtype, functions, arrays):
    results = {name: getattr(kiln.ops, name)(*map(kiln.tensor, arrays)) for name in functions}
    kiln.realize(*results.values())
    with np.errstate(all="ignore"):
        for name, function in functions.items():
            wide = arrays if name in EXACT else [array.astype(np.float64) for array in arrays]
            assert_close(f"{name} of {dtype}", arrays, results[name].numpy(), function(*wide))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats(connection, dtype):
    edges = floats(dtype)
    compare_floats(dtype, UNARY, [edges])
    compare_floats(dtype, BINARY, [edges[:, None], edges])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(connection, dtype):
    edges = integers(dtype)
    results = {name: getattr(kiln.ops, name)(kiln.tensor(edges)) for name in WHOLE_UNARY}
    wanted = {}
    with np.errstate(all="ignore"):
        for name, function in WHOLE_UNARY.items():
            wanted[name] = function(edges)
        for name, function in WHOLE_BINARY.items():
            results[name] = getattr(kiln.ops, name)(kiln.tensor(edges[:, None]), kiln.tensor(edges))
            wanted[name] = function(edges[:, None], edges)
    kiln.realize(*results.values())
    for name, result in results.items():
        np.testing.assert_array_equal(result.numpy(), wanted[name], f"{name} of {dtype}")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_of_constants_are_numpys(connection, dtype):
    amounts = [0, 1, 7, 8, 31, 32, 63, 64, 100] + [-1] * (dtype[0] == "i")
    results = []
    for amount in amounts:
        x = kiln.full((3,), 100 if dtype[0] == "u" else -100, dtype)
        results += [x >> amount, x << amount]
    kiln.realize(*results)
    x = np.full(3, 100 if dtype[0] == "u" else -100, dtype)
    for i, amount in enumerate(amounts):
        by = np.array(amount, dtype)
        np.testing.assert_array_equal(results[2 * i].numpy(), x >> by, f"{dtype} by {amount}")
        np.testing.assert_array_equal(results[2 * i + 1].numpy(), x << by, f"{dtype} by {amount}")


def test_numbers_keep_the_sign_of_zero(connection):
    """This also holds if an equal number was given before."""
    functional = kiln.nn.functional
    ops = {
        "threshold": lambda zero: functional.threshold(kiln.ones(1), 2.0, zero),
        "hardtanh": lambda zero: functional.hardtanh(kiln.ones(1), -1.0, zero),
        "nan_to_num": lambda zero: kiln.nan_to_num(kiln.tensor([np.nan]), nan=zero),
        "full": lambda zero: kiln.full((1,), zero),
    }
    for name, op in ops.items():
        for call in (op, kiln.jit(op)):
            signs = [bool(np.signbit(call(zero).item())) for zero in (0.0, -0.0, 0.0, -0.0)]
            assert signs == [False, True, False, True], name


def test_ints_beyond_int64_stay_ints(connection):
    large = [4, 2**64 - 1]
    assert kiln.tensor(large).tolist() == large and kiln.tensor(large).dtype is kiln.uint64
    assert kiln.tensor([large], dtype="uint64").tolist() == [large]
    assert kiln.tensor([4, 2.0**64]).dtype is kiln.float32
    assert kiln.tensor([4.0, np.inf]).dtype is kiln.float32
    with pytest.raises(kiln.InvalidArgument, match="no integer dtype holds all"):
        kiln.tensor([-1, 2**64 - 1])
    assert kiln.tensor([-1.0, 2**64 - 1], dtype="float64").tolist() == [-1.0, 2.0**64]
    assert kiln.tensor([-1, 2**64 - 1], dtype="float64").tolist() == [-1.0, 2.0**64]


SOURCES = ("float16", "float32", "float64", *INTEGERS)


@pytest.mark.parametrize("target", FLOAT8)
@pytest.mark.parametrize("source", SOURCES)
def test_casts_to_float8_saturate_unless_told_not_to(connection, source, target):
    """As in ONNX's Cast. For float16, all numbers are tested."""
    if source == "float16":
        x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    elif source[0] == "f":
        middle = [400, 448, 463, 464, 465, 480, 57344, 61439, 61440, 65536, 1e30, 1e-3, 1e-9]
        x = np.concatenate([floats(source), np.array([*middle, *np.negative(middle)], source)])
    else:
        near = [value for value in (447, 464, 465, 480, 57344, 61440, 61441, -465, -61441)
                if np.iinfo(source).min <= value <= np.iinfo(source).max]
        x = np.concatenate([integers(source), np.array(near, source)])
    held = kiln.tensor(x).cast(target).float()
    free = kiln.tensor(x).cast(target, saturate=False).float()
    kiln.realize(held, free)
    most = float(ml_dtypes.finfo(numpy_dtype(target)).max)
    wide = x.astype(np.float64)
    for got, exact in ((held, np.clip(wide, -most, most)), (free, wide)):
        with np.errstate(all="ignore"):
            wanted = exact.astype(numpy_dtype(target)).astype(np.float32)
        np.testing.assert_array_equal(got.numpy(), wanted)
        assert (np.signbit(got.numpy()) == np.signbit(wanted))[wanted == 0].all()


def test_casts_between_the_float8_dtypes(connection):
    bits = np.arange(256, dtype=np.uint8)
    x = kiln.tensor(bits).bitcast("float8_e5m2")
    wide = bits.view(ml_dtypes.float8_e5m2).astype(np.float32)
    with np.errstate(invalid="ignore"):
        wanted = np.clip(wide, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
        free = wide.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(x.cast("float8_e4m3").float().numpy(), wanted)
    np.testing.assert_array_equal(x.cast("float8_e4m3", saturate=False).float().numpy(), free)
    # Ops that only move and choose elements keep infinities.
    np.testing.assert_array_equal(x.maximum(x.flip(0)).float().numpy(),
                                  np.maximum(wide, wide[::-1]))


def test_the_gradient_of_a_cast_goes_through_float8(connection):
    x = kiln.tensor([500.0, 1.0, -1e9], requires_grad=True)
    x.cast("float8_e4m3").float().sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_data_beyond_float8_saturates_and_keeps_its_infinities():
    x = np.array([500.0, 1e9, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(kiln.tensor(x, "float8_e4m3").numpy(), [448, 448, -448, np.nan])
    np.testing.assert_array_equal(kiln.tensor(x, "float8_e5m2").numpy(),
                                  [512, 57344, -np.inf, np.nan])


@pytest.mark.parametrize("k", [0, 1, -2, 5, 2**31, 2**63, -(2**63), 2**70, -(2**70)])
def test_diagonals_beyond_the_matrix(connection, k):
    np.testing.assert_array_equal(kiln.eye(3, 4, k=k).numpy(), np.eye(3, 4, k=k))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int64])
def test_labels_of_narrow_dtypes_name_one_class_of_many(connection, dtype):
    classes = 70_000 if dtype in (np.int16, np.uint16) else 300
    labels = np.array([0, 1, 100, 127], dtype)
    places = np.arange(4), labels.astype(np.int64)
    expected = np.zeros((4, classes), np.int64)
    expected[places] = 1
    given = kiln.tensor(labels)
    np.testing.assert_array_equal(kiln.nn.functional.one_hot(given, classes).numpy(), expected)
    scores = np.random.default_rng(1).standard_normal((4, classes), np.float32)
    loss = kiln.nn.functional.nll_loss(kiln.tensor(scores), given, reduction="none")
    np.testing.assert_array_equal(loss.numpy(), -scores[places])
    loss = kiln.nn.functional.cross_entropy(kiln.tensor(scores), given, reduction="none")
    total = np.log(np.exp(scores.astype(np.float64)).sum(1))
    np.testing.assert_allclose(loss.numpy(), total - scores[places], rtol=1e-5)


@pytest.mark.parametrize("name", ["layer_norm", "batch_norm"])
def test_an_infinite_bias_is_added_and_no_weight(connection, name):
    x = kiln.tensor([[1.0, 3.0], [3.0, 1.0]])
    bias = kiln.tensor([np.inf, 0.5])
    if name == "layer_norm":
        result = kiln.nn.functional.layer_norm(x, (2,), bias=bias)
    else:
        result = kiln.nn.functional.batch_norm(x, None, None, bias=bias, training=True)
    result = result.numpy()
    np.testing.assert_array_equal(result[:, 0], [np.inf, np.inf])
    np.testing.assert_allclose(np.abs(result[:, 1] - 0.5), 1, rtol=1e-4)
