"""Sorting and accumulation compared with NumPy."""

import numpy as np
import pytest

import kiln

RANDOM = np.random.default_rng(7)
DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64"]


def data(dtype, shape):
    if dtype.startswith("float"):
        x = RANDOM.integers(-5, 5, shape).astype(dtype) / 2
        if x.size > 6:
            x.reshape(-1)[[1, 4]] = np.nan
            x.reshape(-1)[[0, 3, 5]] = [np.inf, -np.inf, -0.0]
        return x
    if dtype == "bool":
        return RANDOM.integers(0, 2, shape).astype(bool)
    limits = np.iinfo(dtype)
    x = RANDOM.integers(0 if dtype[0] == "u" else -3, 3, shape).astype(dtype)
    if x.size > 3:
        x.reshape(-1)[[0, 2]] = limits.min, limits.max
    return x


@pytest.mark.parametrize("shape,axis", [((37,), 0), ((3, 20), -1), ((20, 3), 0), ((1,), 0)])
def test_sort_and_argsort(connection, shape, axis):
    checks = []
    for dtype in DTYPES:
        x = data(dtype, shape)
        t = kiln.tensor(x)
        checks.append((kiln.sort(t, axis=axis), np.sort(x, axis=axis)))
        checks.append((kiln.argsort(t, axis=axis), np.argsort(x, axis=axis, kind="stable")))
        # Descending: the largest first, equal ones in their order, NaN before all.
        flipped = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
        order = x.shape[axis] - 1 - flipped
        checks.append((kiln.argsort(t, axis=axis, descending=True), order))
        checks.append((kiln.sort(t, axis=axis, descending=True),
                       np.take_along_axis(x, order, axis)))  # fmt: skip
    kiln.realize(*[got for got, _ in checks])
    for got, wanted in checks:
        np.testing.assert_array_equal(got.numpy(), wanted)


def test_empty_and_scalar(connection):
    assert kiln.sort(kiln.zeros(0)).shape == (0,)
    assert kiln.argsort(kiln.zeros(0, 3), axis=0).shape == (0, 3)
    assert kiln.cumulative_sum(kiln.zeros(0)).tolist() == []
    with pytest.raises(kiln.InvalidArgument, match=r"k must be in \[0, 3\]"):
        kiln.topk(kiln.zeros(3), 4)


@pytest.mark.parametrize("length,k", [(50, 3), (64, 1), (33, 20), (9, 9)])
def test_topk(connection, length, k):
    x = RANDOM.permutation(2 * length).astype(np.float32).reshape(2, length)
    values, places = kiln.topk(kiln.tensor(x), k)
    order = np.argsort(-x, axis=-1)[:, :k]
    np.testing.assert_array_equal(places.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, -1))
    smallest, _ = kiln.topk(kiln.tensor(x.T), k, axis=0, largest=False)
    np.testing.assert_array_equal(smallest.numpy(), np.sort(x.T, axis=0)[:k])


@pytest.mark.parametrize("shape,axis,k", [((40, 3000), 1, 17), ((3000, 40), 0, 50), ((20_011,), 0, 100), ((50, 4096), -1, 1)])
def test_topk_of_long_rows(connection, shape, axis, k):
    """Many equal elements, of which the first come first; NaN is larger than all."""
    checks = []
    for dtype in DTYPES:
        x = data(dtype, shape)
        order = np.take(np.argsort(x, axis=axis, kind="stable"), range(k), axis)
        smallest = kiln.topk(kiln.tensor(x), k, axis, largest=False)
        checks += [(smallest.indices, order), (smallest.values, np.take_along_axis(x, order, axis))]
        flipped = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
        order = np.take(x.shape[axis] - 1 - flipped, range(k), axis)
        largest = kiln.topk(kiln.tensor(x), k, axis)
        checks += [(largest.indices, order), (largest.values, np.take_along_axis(x, order, axis))]
    kiln.realize(*[got for got, _ in checks])
    for got, wanted in checks:
        np.testing.assert_array_equal(got.numpy(), wanted)


def test_the_gradient_of_topk_of_long_rows(connection):
    x = RANDOM.permutation(40 * 3000).astype(np.float32).reshape(40, 3000)
    t = kiln.tensor(x, requires_grad=True)
    (kiln.topk(t, 20).values * kiln.arange(1, 21)).sum().backward()
    wanted = np.zeros_like(x)
    np.put_along_axis(wanted, np.argsort(-x, axis=1)[:, :20], np.arange(1, 21, dtype=np.float32)[None], 1)
    np.testing.assert_array_equal(t.grad.numpy(), wanted)


def test_the_gradient_goes_where_elements_came_from(connection):
    x = kiln.tensor([3.0, 1.0, 2.0, 2.0], requires_grad=True)
    (kiln.sort(x) * kiln.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [4.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("length", [0, 1, 2, 31, 100])
def test_searchsorted(connection, length):
    known = np.sort(data("float64", (length,)))
    asked = np.concatenate([known, data("float64", (20,)), [np.nan, np.inf]])
    for side in ("left", "right"):
        got = kiln.searchsorted(kiln.tensor(known), kiln.tensor(asked), side=side)
        np.testing.assert_array_equal(got.numpy(), np.searchsorted(known, asked, side))


@pytest.mark.parametrize("values", [
    [1.0, 2.0, np.inf], [-np.inf, -np.inf, 3.0], [np.inf] * 3, [-np.inf], [-np.inf, -np.inf, 3.0, 3.0], [1.0, np.inf],
    [-np.inf, np.inf], [-3e38, 3e38], [1.0, np.inf, np.nan],
])
def test_the_median_of_infinities_is_that_of_numpy(connection, values):
    data = np.array(values, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        np.testing.assert_array_equal(kiln.median(kiln.tensor(data)).numpy(), np.median(data.astype(np.float64)).astype(np.float32))


def test_quantile_median_kthvalue(connection):
    x = RANDOM.normal(size=(5, 7))
    t = kiln.tensor(x)
    for axis in (None, 0, 1):
        np.testing.assert_allclose(kiln.median(t, axis=axis).numpy(), np.median(x, axis))
        got = kiln.quantile(t, kiln.tensor([0.1, 0.5, 1.0], dtype="float64"), axis=axis)
        np.testing.assert_allclose(got.numpy(), np.quantile(x, [0.1, 0.5, 1.0], axis))
    kept = kiln.quantile(t, 0.25, axis=1, keepdims=True)
    np.testing.assert_allclose(kept.numpy(), np.quantile(x, 0.25, 1, keepdims=True))
    value, place = kiln.kthvalue(t, 2, axis=1)
    np.testing.assert_array_equal(value.numpy(), np.sort(x, 1)[:, 1])
    np.testing.assert_array_equal(place.numpy(), np.argsort(x, 1)[:, 1])


@pytest.mark.parametrize("shape,axis", [((3000,), 0), ((2, 33, 3), 1), ((4, 5), 0)])
def test_cumulative(connection, shape, axis):
    x = RANDOM.uniform(-1.01, 1.01, shape)
    t = kiln.tensor(x)
    checks = [
        (t.cumsum(axis), np.cumsum(x, axis)),
        (t.cumprod(axis), np.cumprod(x, axis)),
        (t.cummax(axis).values, np.maximum.accumulate(x, axis)),
        (t.cummin(axis).values, np.minimum.accumulate(x, axis)),
        (t.logcumsumexp(axis), np.logaddexp.accumulate(x, axis)),
    ]
    kiln.realize(*[got for got, _ in checks])
    for got, wanted in checks:
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_infinities_stay_where_they_are(connection):
    x = np.array([1.0, -np.inf, 2.0, np.inf, 3.0], np.float32)
    t = kiln.tensor(x)
    np.testing.assert_array_equal(t.cumsum(0).numpy(), np.cumsum(x))
    np.testing.assert_allclose(t.logcumsumexp(0).numpy(), np.logaddexp.accumulate(x))
    masked = kiln.tensor([-np.inf, -np.inf, 1.0, 2.0], requires_grad=True)
    masked.logcumsumexp(0)[2:].sum().backward()
    np.testing.assert_allclose(masked.grad.numpy(), [0, 0, 1.268941, 0.731059], rtol=1e-5)


def test_random_orders(connection):
    kiln.manual_seed(3)
    draw = kiln.jit(lambda: kiln.randperm(40))
    first, second = draw().numpy(), draw().numpy()
    assert sorted(first) == sorted(second) == list(range(40))
    assert (first != second).any()
    rows = kiln.random.multinomial(kiln.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]), 5, True)
    assert rows.tolist() == [[1] * 5, [2] * 5]
