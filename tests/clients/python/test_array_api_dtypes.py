"""Dtypes of the Python array API standard, and others."""

import array_api_strict as strict
import numpy as np
import pytest

import kiln
from array_api_oracle import ALL, FLOATS, INTEGERS, NUMBERS
from op_table.row import FLOAT8

ONE_SESSION = True


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


def test_python_numbers(connection):
    assert complex(kiln.tensor(2.5)) == 2.5 and int(kiln.tensor(-3)) == -3
    assert float(kiln.tensor(7)) == 7.0 and bool(kiln.tensor([[1]]))
    assert divmod(kiln.tensor(7), 2)[1].item() == 1
    for convert in (bool, int, float, complex):
        with pytest.raises(kiln.InvalidArgument, match=r"one element.*test_array_api_dtypes\.py:"):
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
    """float16 and bfloat16, which the standard lacks, give float32's result, rounded."""
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


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_is_for_storage(connection, dtype):
    kind = getattr(kiln, dtype)
    data = np.random.default_rng(2).normal(size=(5, 40)).astype(np.float32)
    stored = kiln.tensor(data).cast(kind)
    np.testing.assert_array_equal(stored.numpy(), kiln.tensor(data, kind).numpy())
    np.testing.assert_array_equal(stored.float().numpy(), stored.numpy())
    np.testing.assert_array_equal(stored[1:, ::3].numpy(), stored.numpy()[1:, ::3])
    place = r"test_array_api_dtypes\.py:"
    with pytest.raises(kiln.InvalidArgument, match=rf"{dtype}.*only stores.*{place}"):
        (stored * stored).numpy()
