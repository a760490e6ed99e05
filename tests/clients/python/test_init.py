"""Initial values have the distributions that their names say."""

import math

import numpy as np
import pytest

import kiln
from kiln import nn


@pytest.fixture(autouse=True)
def seed(connection):
    kiln.manual_seed(0)


def filled(function, *args, shape=(60, 40, 3), **options):
    tensor = kiln.zeros(shape)
    assert function(tensor, *args, **options) is tensor
    return tensor.numpy()


UNIFORM = [
    (nn.init.uniform_, (-2.0, 3.0), -2.0, 3.0),
    (nn.init.xavier_uniform_, (2.0,), -2 * math.sqrt(6 / 300), 2 * math.sqrt(6 / 300)),
    (nn.init.kaiming_uniform_, (math.sqrt(5),), -1 / math.sqrt(120), 1 / math.sqrt(120)),
]
NORMAL = [
    (nn.init.normal_, (3.0, 0.5), {}, 3.0, 0.5),
    (nn.init.xavier_normal_, (), {}, 0.0, math.sqrt(2 / 300)),
    (nn.init.kaiming_normal_, (), {"mode": "fan_out", "nonlinearity": "relu"}, 0.0,
     math.sqrt(2 / 180)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args", "low", "high"), UNIFORM)
def test_uniform(function, args, low, high):
    values = filled(function, *args)
    assert low <= values.min() < low + 0.01 * (high - low)
    assert high >= values.max() > high - 0.01 * (high - low)
    assert values.mean() == pytest.approx((low + high) / 2, abs=0.02 * (high - low))


@pytest.mark.parametrize(("function", "args", "options", "mean", "std"), NORMAL)
def test_normal(function, args, options, mean, std):
    values = filled(function, *args, **options)
    assert values.mean() == pytest.approx(mean, abs=0.05 * std)
    assert values.std() == pytest.approx(std, rel=0.05)


def test_truncated_normal_is_normal_within_its_bounds():
    values = filled(nn.init.trunc_normal_, 1.0, 2.0, -1.0, 4.0, shape=(40000,))
    assert values.min() >= -1 and values.max() <= 4
    # Means of normal numbers that were drawn again until they were within the bounds.
    draws = np.random.default_rng(0).normal(1.0, 2.0, 400000)
    draws = draws[(draws >= -1) & (draws <= 4)]
    quantiles = np.linspace(0.02, 0.98, 25)
    np.testing.assert_allclose(
        np.quantile(values, quantiles), np.quantile(draws, quantiles), atol=0.06)


@pytest.mark.parametrize("shape", [(5, 8), (8, 5), (6, 2, 2)])
def test_orthogonal(shape):
    matrix = filled(nn.init.orthogonal_, 3.0, shape=shape).reshape(shape[0], -1)
    small = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(small, 9 * np.eye(len(small)), atol=1e-4)


def test_what_is_not_drawn():
    np.testing.assert_array_equal(filled(nn.init.eye_, shape=(3, 4)), np.eye(3, 4))
    assert (filled(nn.init.constant_, 2.5) == 2.5).all() and (filled(nn.init.ones_) == 1).all()
    x = kiln.randn(1, 4, 5, 6)
    weight = kiln.tensor(filled(nn.init.dirac_, shape=(4, 4, 3, 3)))
    np.testing.assert_allclose(nn.functional.conv2d(x, weight, padding=1).numpy(), x.numpy())
    zeros = (filled(nn.init.sparse_, 0.3, shape=(10, 20)) == 0).sum(0)
    assert (zeros == 3).all()


def test_numbers_repeat_with_the_seed_and_differ_between_draws():
    first = filled(nn.init.orthogonal_, shape=(4, 4))
    second = filled(nn.init.orthogonal_, shape=(4, 4))
    kiln.manual_seed(0)
    np.testing.assert_array_equal(filled(nn.init.orthogonal_, shape=(4, 4)), first)
    assert np.abs(second - first).max() > 0.1


def test_parameters_still_require_gradients():
    layer = nn.Linear(3, 2)
    nn.init.kaiming_normal_(layer.weight)
    assert layer.weight.requires_grad and layer.weight.is_leaf
    for wrong in (lambda: nn.init.xavier_normal_(kiln.zeros(3)),
                  lambda: nn.init.eye_(kiln.zeros(3)),
                  lambda: nn.init.kaiming_normal_(kiln.zeros(3, 3), nonlinearity="cube")):
        with pytest.raises(kiln.InvalidArgument):
            wrong()
