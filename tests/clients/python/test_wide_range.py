"""Norms, deviations and factorizations of numbers whose squares and products leave the range."""

import math

import numpy as np
import pytest
import scipy.special

import kiln
from kiln import functional as F

ONE_SESSION = True

LARGE = {"float32": 1e30, "float64": 1e200}
RTOL = {"float32": 2e-5, "float64": 1e-12}
DTYPES = tuple(LARGE)
BASE = np.array([[1.5, -2.0, 0.5, 3.0], [0.25, 1.0, -4.0, 2.0]])


def scales(dtype):
    """Returns scales from where squares underflow to where they overflow."""
    large = LARGE[dtype]
    return [1.0, large, 1 / large, large**0.7, large**-0.7]


def scaled(dtype, scale):
    return (BASE * scale).astype(dtype)


def near(dtype, got, wanted):
    np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(wanted, np.float64),
                               rtol=RTOL[dtype], atol=0)


def both(function, x):
    """Returns the function's value and the gradient of its sum."""
    leaf = kiln.tensor(x, requires_grad=True)
    value = function(leaf)
    value.sum().backward()
    kiln.realize(value, leaf.grad)
    return value.numpy(), leaf.grad.numpy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", [2, 3, 1.5, 0.5, -1, -2.5, 7, 1, np.inf])
def test_norms(connection, dtype, order):
    unit = scaled(dtype, 1).astype(np.longdouble)
    size = np.linalg.norm(unit, order, axis=1)
    slope = np.sign(unit) * (np.abs(unit) / size[:, None]) ** (order - 1)
    if order == np.inf:
        slope = np.where(np.abs(unit) == size[:, None], np.sign(unit), 0)
    for scale in scales(dtype):
        x = scaled(dtype, scale)
        value, gradient = both(lambda t: kiln.linalg.vector_norm(t, axis=1, ord=order), x)
        near(dtype, value / scale, size)
        np.testing.assert_allclose(gradient, slope.astype(np.float64), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_norms_are_for(connection, dtype):
    unit = scaled(dtype, 1).astype(np.longdouble)
    length = np.linalg.norm(unit, axis=1)
    cosine = (unit[0] * unit[1]).sum() / length.prod()
    for scale in scales(dtype):
        t = kiln.tensor(scaled(dtype, scale))
        found = [F.normalize(t, eps=0.1 * scale), F.cosine_similarity(t[0], t[1], 0, 0.1 * scale),
                 F.cdist(t[:1], t[1:]) / scale, F.pairwise_distance(t[0], t[1], eps=0.0) / scale,
                 kiln.linalg.matrix_norm(t) / scale, t.norm() / scale, t[0].dist(t[1]) / scale,
                 t.std(1) / scale, t.std(1, correction=0) / scale]  # fmt: skip
        kiln.realize(*found)
        apart = np.linalg.norm(unit[0] - unit[1])
        whole = np.linalg.norm(unit)
        wanted = [unit / length[:, None], cosine, [[apart]], apart, whole, whole, apart,
                  unit.std(1, ddof=1), unit.std(1)]
        for got, exact in zip(found, wanted):
            near(dtype, got.numpy(), exact)


@pytest.mark.parametrize("norm_type", [2.0, 3.0, 1.0, np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_clipped(connection, dtype, norm_type):
    for scale in (1.0, LARGE["float32"] ** 0.9, LARGE["float32"] ** -0.9):
        weights = [kiln.zeros(4, dtype=dtype, requires_grad=True) for _ in range(2)]
        for weight, gradient in zip(weights, scaled(dtype, scale)):
            weight.grad = kiln.tensor(gradient)
        norm = kiln.nn.utils.clip_grad_norm_(weights, 1e-6 * scale, norm_type)
        size = np.linalg.norm(BASE.ravel(), norm_type)
        assert norm.dtype is kiln.float32
        np.testing.assert_allclose(norm.item() / scale, size, rtol=1e-5)
        if scale > 1:  # PyTorch adds 1e-6 to the norm
            clipped = np.concatenate([weight.grad.numpy() for weight in weights]) / scale
            np.testing.assert_allclose(clipped, 1e-6 * BASE.ravel() / size, rtol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_deviations_have_gradients(connection, dtype):
    unit = BASE - BASE.mean(1, keepdims=True)
    slope = unit / 3 / BASE.std(1, ddof=1)[:, None]
    for scale in scales(dtype):
        _, gradient = both(lambda t: t.std(1), scaled(dtype, scale))
        np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("function", [
    lambda t: t.std(), lambda t: t.std(correction=0), lambda t: t.norm(), lambda t: t.norm(3),
    lambda t: t.norm(0.5), lambda t: t.norm(1), lambda t: t.norm(-1), lambda t: t.norm(kiln.inf),
    lambda t: kiln.hypot(t, t), lambda t: kiln.atan2(t, t),
    lambda t: F.cdist(t.reshape(1, 3), t.detach().reshape(1, 3)), lambda t: t.abs(),
    lambda t: kiln.linalg.matrix_norm(t.reshape(1, 3)),
    lambda t: F.pairwise_distance(t, t.detach(), eps=0.0), lambda t: kiln.copysign(t, t),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", *DTYPES])
def test_gradients_at_nothing_are_nothing(connection, dtype, function):
    leaf = kiln.zeros(3, dtype=dtype, requires_grad=True)
    function(leaf).sum().backward()
    assert leaf.grad.float().tolist() == [0.0, 0.0, 0.0]


MATRICES = [
    [[1e20, 1], [1e20, 2]], [[1e-22, 3], [2e-22, 1]], [[1e30, 1e-30], [2e30, 3e-30]],
    [[3e-30, 1e30], [1e-30, 1e30], [2e-30, -1e30]], [[0, 1e30], [0, 1]], [[0, 0], [0, 1e-30]],
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("matrix", MATRICES)
def test_qr(connection, dtype, matrix):
    power = 1 if dtype == "float32" else 6
    x = np.sign(matrix) * np.abs(np.array(matrix)) ** power
    x = x.astype(dtype)
    q, r = (part.numpy().astype(np.float64) for part in kiln.linalg.qr(kiln.tensor(x)))
    exact = np.linalg.qr(x.astype(np.float64))
    near(dtype, np.abs(r.diagonal()), np.abs(exact[1].diagonal()))
    columns = np.maximum(np.abs(x).max(0), np.finfo(dtype).tiny)
    np.testing.assert_allclose(r / columns, exact[1] / columns, rtol=RTOL[dtype], atol=RTOL[dtype])
    np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), atol=RTOL[dtype])
    np.testing.assert_allclose(q @ (r / columns), x / columns, atol=RTOL[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_systems_of_rows_and_columns_far_apart(connection, dtype):
    near_one = np.array([[2.0, 1.0, 0.5], [1.0, -3.0, 2.0], [0.5, 1.0, 4.0]])
    power = LARGE[dtype] ** 0.5
    for rows in ([1.0, power, 1 / power], [power] * 3, [1 / power] * 3):
        for columns in ([1.0, 1.0, 1.0], [power, 1.0, 1 / power], [1 / power, power, 1.0]):
            d, e = np.array(rows), np.array(columns)
            a = (d[:, None] * near_one * e).astype(dtype)
            x = np.array([1.0, 2.0, -3.0])
            rhs = (d * (near_one @ x)).astype(dtype)
            near(dtype, kiln.linalg.solve(kiln.tensor(a), kiln.tensor(rhs)).numpy() * e, x)
            inverse = kiln.linalg.inv(kiln.tensor(a)).numpy().astype(np.longdouble)
            near(dtype, e[:, None] * inverse * d, np.linalg.inv(near_one))
            sign, logabs = kiln.linalg.slogdet(kiln.tensor(a))
            logarithm = np.log(abs(np.linalg.det(near_one))) + np.log(d).sum() + np.log(e).sum()
            np.testing.assert_allclose(logabs.item(), logarithm, rtol=1e-5, atol=1e-4)
            assert sign.item() == np.sign(np.linalg.det(near_one))


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinants_whose_partial_products_leave_the_range(connection, dtype):
    large = LARGE[dtype]
    for diagonal in ([large, large, 1 / large, 1 / large], [1 / large, 1 / large, large, large],
                     [large, large, large, 2.0], [2.0, -3.0, 0.5, 1.0], [1 / large] * 4,
                     [large, large, 0.0, 1 / large]):
        x = np.diag(diagonal).astype(dtype)
        with np.errstate(all="ignore"):
            exact = x.diagonal().astype(np.longdouble).prod().astype(dtype)
        value, gradient = both(kiln.linalg.det, x)
        np.testing.assert_allclose(value, exact, rtol=RTOL[dtype])
        if np.isfinite(exact) and exact:
            near(dtype, gradient.diagonal() * x.diagonal(), [exact] * 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky(connection, dtype):
    factor = np.array([[2.0, 0.0, 0.0], [1.0, 3.0, 0.0], [-1.0, 0.5, 1.0]])
    for scale in (1.0, LARGE[dtype] ** 0.6, LARGE[dtype] ** -0.6):
        wide = factor * np.array([[1.0], [scale], [1 / scale]]) ** 0.9
        found = kiln.linalg.cholesky(kiln.tensor((wide @ wide.T).astype(dtype))).numpy()
        np.testing.assert_allclose(found, wide, rtol=1e-4)


def test_sums_of_exponentials(connection):
    x = kiln.tensor([[1e30, 1e30], [-1e30, -1e30], [-np.inf, -np.inf], [88.0, 89.0], [-200, -201]])
    with np.errstate(all="ignore"):
        wanted = np.logaddexp(x.numpy()[:, 0], x.numpy()[:, 1])
    np.testing.assert_allclose(x.logsumexp(1).numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(kiln.logaddexp(x[:, 0], x[:, 1]).numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(x[:2].softmax(1).numpy(), 0.5)


def test_gates_far_to_the_left_are_closed(connection):
    x = np.array([-3e38, -1e20, -200.0], np.float32)
    for function in (F.silu, F.sigmoid, F.mish, F.gelu):
        value, gradient = both(function, x)
        assert not value.any() and not gradient.any()
    assert not F.gelu(kiln.tensor(x), approximate="tanh").numpy().any()


def test_special_functions_near_their_poles(connection):
    x = np.array([-1e-300, 1e-300, -1e-5, -1 + 2.0**-53, -2.5])
    wanted = [math.lgamma(value) for value in x]
    np.testing.assert_allclose(kiln.lgamma(kiln.tensor(x)).numpy(), wanted, rtol=1e-12)
    x = np.array([1 - 2.0**-53, 1 - 2.0**-40, 0.999])
    np.testing.assert_allclose(kiln.erfinv(kiln.tensor(x)).numpy(), scipy.special.erfinv(x),
                               rtol=1e-12)
    x = np.array([0.0, -0.0, -1e-300, -1e-5])
    np.testing.assert_allclose(kiln.digamma(kiln.tensor(x)).numpy(), scipy.special.psi(x),
                               rtol=1e-12)
