"""Elementwise functions: accuracy in units in the last place, special values, gradients."""

import math

import numpy as np
import pytest

import kiln

LIMITS = {"float32": 4, "float64": 6}
# Its formula subtracts two large numbers.
LGAMMA_LIMIT = 24
RANDOM = np.random.default_rng(5)


def both_signs(low, high, count=400):
    magnitudes = np.exp(RANDOM.uniform(math.log(low), math.log(high), count))
    return np.concatenate([magnitudes, -magnitudes])


# The function, its reference in NumPy or Python in float64, and the arguments.
FUNCTIONS = {
    "expm1": (np.expm1, both_signs(1e-6, 80)),
    "log1p": (np.log1p, np.concatenate([both_signs(1e-6, 0.9), np.geomspace(1, 1e6, 100)])),
    "log10": (np.log10, np.geomspace(1e-30, 1e30, 400)),
    "sinh": (np.sinh, both_signs(1e-6, 80)),
    "cosh": (np.cosh, both_signs(1e-6, 80)),
    "asin": (np.arcsin, both_signs(1e-6, 1)),
    "acos": (np.arccos, both_signs(1e-6, 0.99)),
    "atan": (np.arctan, both_signs(1e-6, 1e6)),
    "asinh": (np.arcsinh, both_signs(1e-6, 1e25)),
    "acosh": (np.arccosh, np.geomspace(1.0001, 1e25, 400)),
    "atanh": (np.arctanh, both_signs(1e-6, 0.999)),
    "cbrt": (np.cbrt, both_signs(1e-30, 1e30)),
    "erfc": (np.vectorize(math.erfc), both_signs(1e-6, 9)),
    "lgamma": (np.vectorize(math.lgamma), np.geomspace(2.5, 1e6, 400)),
}


def units(got, wanted):
    """Returns distances in units in the last place of the wanted value, rounded to got's dtype."""
    spacing = np.spacing(np.abs(wanted.astype(got.dtype))).astype(np.float64)
    return np.abs(got.astype(np.float64) - wanted) / spacing


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_accuracy(connection, dtype):
    given = {name: places.astype(dtype) for name, (_, places) in FUNCTIONS.items()}
    results = {name: getattr(kiln, name)(kiln.tensor(x)) for name, x in given.items()}
    kiln.realize(*results.values())
    worst = {name: units(result.numpy(), FUNCTIONS[name][0](given[name].astype(np.float64))).max()
             for name, result in results.items()}  # fmt: skip
    assert worst.pop("lgamma") <= LGAMMA_LIMIT
    assert {name: far for name, far in worst.items() if far > LIMITS[dtype]} == {}


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, -2.0], np.float32)


def test_special_values(connection):
    pairs = {"arctan2": "atan2", "hypot": "hypot", "logaddexp": "logaddexp",
             "copysign": "copysign", "nextafter": "nextafter",
             "logaddexp2": "logaddexp2"}  # fmt: skip
    x1, x2 = np.meshgrid(SPECIAL, SPECIAL)
    singles = {"expm1": "expm1", "log1p": "log1p", "log10": "log10", "sinh": "sinh",
               "cosh": "cosh", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
               "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "cbrt": "cbrt",
               "sign": "sign", "signbit": "signbit"}  # fmt: skip
    results = {theirs: getattr(kiln, ours)(kiln.tensor(x1), kiln.tensor(x2))
               for theirs, ours in pairs.items()}  # fmt: skip
    results |= {theirs: getattr(kiln, ours)(kiln.tensor(SPECIAL))
                for theirs, ours in singles.items()}  # fmt: skip
    kiln.realize(*results.values())
    for name, result in results.items():
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(*((x1, x2) if name in pairs else (SPECIAL,)))
        np.testing.assert_allclose(result.numpy(), wanted, rtol=2e-6, atol=1e-30, err_msg=name)


def test_gradients_where_plain_formulas_have_none(connection):
    x = kiln.tensor([1e-6, 0.0, 1e10, -1e10], requires_grad=True)
    y = kiln.tensor([1e-6, 0.0, 1e10, 1.0], requires_grad=True)
    parts = [kiln.log1p(x[:2]), kiln.expm1(x[:2]), kiln.atan(x), kiln.asinh(x), kiln.hypot(x, y),
             kiln.logaddexp(x, y), kiln.linalg.vector_norm(x[1:2])]  # fmt: skip
    sum(part.sum() for part in parts).backward()
    assert np.isfinite(x.grad.numpy()).all() and np.isfinite(y.grad.numpy()).all()


def test_gradients_do_not_see_squares_overflow(connection):
    for size in (1e-30, 1.0, 1e30):
        x = kiln.tensor([3 * size, 0.0], dtype="float32", requires_grad=True)
        y = kiln.tensor([4 * size, 0.0], dtype="float32", requires_grad=True)
        kiln.hypot(x, y).sum().backward()
        np.testing.assert_allclose([*x.grad.tolist(), *y.grad.tolist()], [0.6, 0, 0.8, 0], 1e-6)
        x.grad = y.grad = None
        kiln.atan2(y[0], x[0]).backward()
        wanted = np.float32([-0.16 / size, 0.12 / size])
        np.testing.assert_allclose([y.grad.tolist()[0], x.grad.tolist()[0]], wanted[::-1], 1e-6)


def test_second_gradients_of_products_with_zeros(connection):
    for at in ([1.0, 2.0, 0.0, 3.0], [1.0, 0.0, 0.0, 3.0]):
        x = kiln.tensor(at, dtype="float64", requires_grad=True)
        seconds = []
        for product in (x.prod(), x.cumprod(0)[3], x[0] * x[1] * x[2] * x[3]):
            first, = kiln.autograd.gradients(product, [x])
            second, = kiln.autograd.gradients((first * kiln.tensor([1.0, 2, 4, 8])).sum(), [x])
            seconds.append(second.tolist())
        assert seconds[0] == seconds[1] == seconds[2]


def test_the_gradient_of_a_product_whose_rest_overflows(connection):
    x = kiln.tensor([0.0, 1e30, 1e30], dtype="float32", requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == [np.inf, 0, 0]


def test_isclose_and_nan_to_num(connection):
    a = np.array([1.0, np.nan, np.inf, -np.inf, 3.0])
    b = np.array([1.0 + 1e-9, np.nan, np.inf, np.inf, 3.1])
    for equal_nan in (False, True):
        got = kiln.isclose(kiln.tensor(a), kiln.tensor(b), equal_nan=equal_nan)
        np.testing.assert_array_equal(got.numpy(), np.isclose(a, b, equal_nan=equal_nan))
    np.testing.assert_array_equal(kiln.nan_to_num(kiln.tensor(a)).numpy(), np.nan_to_num(a))
