"""Sums of millions of terms are as exact as NumPy's pairwise ones, with one thread and with several."""

import numpy as np
import pytest

import kiln
from kiln._session import connection as _connection
from kilnd_process import Kilnd

RANDOM = np.random.default_rng(0)
TENTH = float(np.float32(0.1))
MILLIONS = 2**22


@pytest.fixture(scope="module", params=[1, 2], ids=["one_thread", "two_threads"])
def session(request):
    """A session with a daemon of that many threads."""
    with Kilnd(threads=request.param) as daemon:
        opened = kiln.connect(daemon.address)
        yield opened
        _connection._default = None
        opened.close()


@pytest.fixture
def positive():
    return RANDOM.random(MILLIONS, dtype=np.float32)


def close(actual, expected, rtol=1e-6):
    np.testing.assert_allclose(np.asarray(actual.numpy(), np.float64), expected, rtol=rtol)


def test_equal_values(session):
    """All roundings have one direction. A single chain of additions would be off by 1e-3."""
    close(kiln.full(2**26, 0.1).sum(), 2**26 * TENTH, 4e-6)
    close(kiln.full((2**22, 3), 0.1).sum(axis=0), np.full(3, 2**22 * TENTH), 4e-6)
    assert kiln.ones(100_000_000).sum().item() == 1e8


def test_means_of_fills(session):
    """A fill takes no memory. A single chain would end at 2^24."""
    assert kiln.ones(2**32).mean().item() == 1
    assert (kiln.ones((2**25, 32)).mean(axis=0).numpy() == 1).all()


@pytest.mark.parametrize("shape", [(MILLIONS,), (2**18, 16), (16, 2**18), (3, 1_000_003), (1_000_003, 3)])
def test_axes(session, positive, shape):
    data = positive[: np.prod(shape)].reshape(shape)
    x = kiln.asarray(data)
    for axis in (None, *range(len(shape))):
        close(x.sum(axis=axis), data.sum(axis=axis, dtype=np.float64))
        close(x.mean(axis=axis), data.mean(axis=axis, dtype=np.float64))


def test_statistics(session, positive):
    x, exact = kiln.asarray(positive), positive.astype(np.float64)
    close(x.var(), exact.var())
    close(kiln.linalg.vector_norm(x), np.sqrt((exact**2).sum()))
    close(kiln.logsumexp(x, 0), np.log(np.exp(exact).sum()))
    weights = np.exp(exact)
    close(kiln.softmax(x, 0).sum(), 1)
    close(kiln.softmax(x, 0)[:100], weights[:100] / weights.sum())


@pytest.mark.parametrize("rows, columns, terms", [(1, 1, MILLIONS), (4, 4, 2**19), (64, 32, 2**15)])
def test_products(session, rows, columns, terms):
    a = RANDOM.random((rows, terms), dtype=np.float32)
    b = RANDOM.random((terms, columns), dtype=np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    close(kiln.asarray(a) @ kiln.asarray(b), exact, 2e-6)
    close(kiln.asarray(np.ascontiguousarray(a.T)).T @ kiln.asarray(b), exact, 2e-6)


def test_product_of_equal_values(session):
    product = kiln.full((1, MILLIONS), 0.1) @ kiln.full((MILLIONS, 1), 0.1)
    close(product, [[MILLIONS * TENTH**2]], 1e-5)


def test_gradient_of_a_broadcast(session):
    x = kiln.full((3,), 2.0, requires_grad=True)
    (x * kiln.full((1_000_003, 3), 0.1)).sum().backward()
    close(x.grad, np.full(3, 1_000_003 * TENTH), 4e-6)


def test_cumulative_sums(session):
    counts = np.arange(1, MILLIONS + 1)
    assert (kiln.cumulative_sum(kiln.ones(MILLIONS)).numpy() == counts).all()
    close(kiln.cumulative_sum(kiln.full(MILLIONS, 0.1)), counts * TENTH, 2e-6)


def test_short_floats_add_up_in_float32(session):
    x = kiln.full(MILLIONS, 0.5, dtype="bfloat16")
    assert x.sum().item() == MILLIONS / 2
    assert x.cast("float16").mean().item() == 0.5
