"""Numbers that are inputs of a program give the same values as constants, bit for bit."""

import numpy as np
import pytest

import kiln
from op_table.row import FLOAT8, FLOATS, INTEGERS

ONE_SESSION = True
RANDOM = np.random.default_rng(0)

# 1 + 2**-8 + 2**-40 exceeds the midpoint of two bfloat16 numbers, but not as float32.
FLOAT_NUMBERS = [0.1, -0.0, 0.0, 1 / 3, 2.5, 1.0, 1 + 2**-8 + 2**-40, 1 + 2**-11 + 2**-40, 3e-5, 1e-42, float("inf"),
                 float("-inf"), float("nan"), -7, 2]  # fmt: skip
INTEGER_NUMBERS = [3, 0, 1, 2, 7, 5, 63, 100]

FLOAT_OPS = {
    "add": lambda x, n: x + n,
    "subtracted": lambda x, n: n - x,
    "mul": lambda x, n: x * n,
    "div": lambda x, n: x / n,
    "divided": lambda x, n: n / x,
    "floor_divide": lambda x, n: x // n,
    "mod": lambda x, n: x % n,
    "less": lambda x, n: x < n,
    "equal": lambda x, n: x == n,
    "where": lambda x, n: kiln.where(x > 0, n, x),
    "maximum": lambda x, n: x.clamp_min(n),
    "clamp": lambda x, n: x.clamp(n, n),
    "power of": lambda x, n: n**x,
    "full": lambda x, n: kiln.full((3,), n, dtype=x.dtype) + x[:3],
    "fill": lambda x, n: kiln.zeros(3, dtype=x.dtype).fill_(n) + x[:3],
    "assigned": lambda x, n: _assigned(x, n),
    "gradient of mul": lambda x, n: _gradient(x, lambda y: y * n),
    "gradient of div": lambda x, n: _gradient(x, lambda y: n / y),
    "gradient of clamp": lambda x, n: _gradient(x, lambda y: y.clamp_max(n)),
}
INTEGER_OPS = {
    "add": lambda x, n: x + n,
    "subtracted": lambda x, n: n - x,
    "mul": lambda x, n: x * n,
    "div": lambda x, n: x / n,
    "floor_divide": lambda x, n: x // n,
    "mod": lambda x, n: x % n,
    "and": lambda x, n: x & n,
    "xor": lambda x, n: x ^ n,
    "left": lambda x, n: x << n,
    "right": lambda x, n: x >> n,
    "less": lambda x, n: x < n,
    "where": lambda x, n: kiln.where(x > 2, n, x),
    "clamp": lambda x, n: x.clamp(n, n),
    "float number": lambda x, n: x * (n + 0.5),
    "assigned": lambda x, n: _assigned(x, n),
}


def _assigned(x, n):
    y = x + 0
    y[1:3] = n
    return y


def _gradient(x, function):
    y = x.detach().requires_grad_()
    function(y).sum().backward()
    return y.grad


def _values(dtype):
    if dtype in FLOATS:
        x = np.concatenate([RANDOM.normal(size=20) * 3, [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan]])
        return kiln.tensor(x).cast(dtype)
    x = RANDOM.integers(0, 120, 20)
    return kiln.tensor(np.concatenate([x, -x if dtype.startswith("int") else x])).cast(dtype)


def _text(tensor):
    return [repr(abs(value) if value != value else value) for value in tensor.flatten().tolist()]


def _same(op, x, numbers):
    for number in numbers:
        got = op(x, number)
        constant = kiln.jit(lambda x, number=number: op(x, number))(x)
        assert got.dtype is constant.dtype
        # The signs of zeros count, those of NaN do not.
        assert _text(got) == _text(constant), number


@pytest.mark.parametrize("name", FLOAT_OPS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_of_floats(name, dtype, connection):
    numbers = FLOAT_NUMBERS
    if dtype == "float16":
        numbers = [number for number in numbers if number != 1e-42]
    _same(FLOAT_OPS[name], _values(dtype).realize(), numbers)


@pytest.mark.parametrize("name", INTEGER_OPS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_of_integers(name, dtype, connection):
    _same(INTEGER_OPS[name], _values(dtype).realize(), INTEGER_NUMBERS)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_of_large_integers(dtype, connection):
    numbers = [5, 2**62 + 1, 2**63 - 1] + ([2**63, 2**64 - 1] if dtype == "uint64" else [-(2**63)])
    for op in ("add", "xor", "mod", "where"):
        _same(INTEGER_OPS[op], _values(dtype).realize(), numbers)


@pytest.mark.parametrize("exponent", [[2, 3, 0, 1, -1, 0.5, 2.5, 9, 1 / 3, -0.7], [2.5, 1.5, 3.5, 4.5]])
def test_of_exponents(exponent, connection):
    x = (_values("float32").abs() + 0.5).realize()
    _same(lambda x, n: x**n, x, exponent)
    _same(lambda x, n: _gradient(x, lambda y: y**n), x, exponent)


def test_of_bools(connection):
    x = _values("float32").realize()
    _same(lambda x, n: x * n + n, x, [True, False, True])
    _same(lambda x, n: kiln.where(x > 0, n, x < -1), x, [True, False, True])


@pytest.mark.parametrize("dtype", FLOAT8)
def test_of_floats_of_a_byte(dtype, connection):
    numbers = [1.0, 3.3, float("inf"), -0.0, float("nan"), 7.7]
    x = kiln.ones(3).realize()
    _same(lambda x, n: kiln.full((3,), n, dtype=dtype).float() + x, x, numbers)


def test_a_number_of_another_type_keeps_its_dtype(connection):
    x = kiln.tensor([1, 2, 3])
    for number, dtype in [(2, "int64"), (3, "int64"), (2.5, "float32"), (3.5, "float32"), (4, "int64"), (True, "int64")]:
        result = x * number
        assert result.dtype.name == dtype
        assert result.tolist() == [number, 2 * number, 3 * number]


def test_indices_out_of_range_are_errors_in_a_loop(connection):
    x = kiln.arange(10).realize()
    assert [x[i].item() for i in range(-10, 10)] == [*range(10)] * 2
    for i in (10, -11, 100):
        with pytest.raises(IndexError):
            x[i]
    assert [x[i : i + 4].tolist() for i in range(-3, 12)] == [[*range(10)][i : i + 4] for i in range(-3, 12)]


def test_slices_in_gradients(connection):
    x = kiln.tensor(RANDOM.normal(size=(12, 3)).astype(np.float32))
    for i in range(8):
        w = x.detach().requires_grad_()
        (w[i : i + 4] * (i + 1)).sum().backward()
        wanted = np.zeros((12, 3), np.float32)
        wanted[i : i + 4] = i + 1
        np.testing.assert_array_equal(w.grad.numpy(), wanted)
