"""Samples and reductions without NaN, compared with NumPy."""

import numpy as np

import kiln

RANDOM = np.random.default_rng(13)


def check(pairs):
    kiln.realize(*[got for got, _ in pairs])
    for i, (got, wanted) in enumerate(pairs):
        np.testing.assert_allclose(
            got.numpy(), wanted, rtol=1e-12, atol=1e-12, err_msg=f"pair {i}")


def test_counts(connection):
    whole = RANDOM.integers(0, 7, 40)
    weights = RANDOM.normal(size=40)
    values = np.round(RANDOM.normal(size=60), 1)
    x = kiln.tensor(values)
    wanted, edges = np.histogram(values, 5)
    counts, bounds = kiln.histogram(x, 5)
    inner = np.array([-1.0, 0.0, 0.5, 2.0])
    check([
        (kiln.bincount(kiln.tensor(whole)), np.bincount(whole)),
        (kiln.bincount(kiln.tensor(whole), minlength=12), np.bincount(whole, minlength=12)),
        (kiln.bincount(kiln.tensor(whole), kiln.tensor(weights), length=4),
         np.bincount(whole, weights)[:4]),
        (counts, wanted), (bounds, edges),
        (kiln.histogram(x, kiln.tensor(inner))[0], np.histogram(values, inner)[0]),
        (kiln.histogram(x, 4, (-1.0, 1.0))[0], np.histogram(values, 4, (-1.0, 1.0))[0]),
    ])  # fmt: skip


def test_correlation(connection):
    x = RANDOM.normal(size=(3, 20))
    check([
        (kiln.cov(kiln.tensor(x)), np.cov(x)), (kiln.cov(kiln.tensor(x[0])), np.cov(x[0])),
        (kiln.corrcoef(kiln.tensor(x)), np.corrcoef(x)),
    ])  # fmt: skip


def test_curves(connection):
    xp, fp = np.sort(RANDOM.normal(size=9)), RANDOM.normal(size=9)
    x = np.concatenate([RANDOM.normal(size=20) * 2, xp])
    y = RANDOM.normal(size=(4, 5))
    places = np.sort(RANDOM.normal(size=4))
    given = [kiln.tensor(part) for part in (x, xp, fp)]
    check([
        (kiln.interp(*given), np.interp(x, xp, fp)),
        (kiln.interp(*given, left=-9.0, right=9.0), np.interp(x, xp, fp, -9.0, 9.0)),
        (kiln.trapezoid(kiln.tensor(y)), np.trapezoid(y)),
        (kiln.trapezoid(kiln.tensor(y), kiln.tensor(places), axis=0),
         np.trapezoid(y, places, axis=0)),
        (kiln.vander(kiln.tensor(xp), 4), np.vander(xp, 4)),
        (kiln.vander(kiln.tensor(xp), increasing=True), np.vander(xp, increasing=True)),
    ])  # fmt: skip


def test_without_nan(connection):
    x = RANDOM.normal(size=(4, 6))
    x[1, 2] = x[3, 0] = x[3, 5] = np.nan
    t = kiln.tensor(x)
    for axis in (None, 0, 1):
        check([(getattr(kiln, name)(t, axis=axis), getattr(np, name)(x, axis=axis)) for name in (
            "nansum", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd")])  # fmt: skip


def test_random_of_every_float_dtype(connection):
    kiln.manual_seed(1)
    for dtype in (kiln.float32, kiln.float64):
        x = kiln.rand(4000, dtype=dtype).numpy()
        assert x.dtype == dtype.name and (x >= 0).all() and (x < 1).all()
        assert abs(x.mean() - 0.5) < 0.03 and len(np.unique(x)) > 3900
        y = kiln.randn(4000, dtype=dtype).numpy()
        assert abs(y.mean()) < 0.08 and abs(y.std() - 1) < 0.06
    z = kiln.random.truncated_normal((4000,), -1.0, 2.0).numpy()
    assert z.min() >= -1 and z.max() <= 2 and 0.1 < z.mean() < 0.35
    e = kiln.random.exponential((4000,), 2.0).numpy()
    assert (e >= 0).all() and abs(e.mean() - 0.5) < 0.05
    classes = kiln.random.categorical(kiln.tensor([0.1, 0.7, 0.2]).log(), 4000).numpy()
    np.testing.assert_allclose(np.bincount(classes) / 4000, [0.1, 0.7, 0.2], atol=0.05)
