"""Dropout modules: which elements are dropped together, and which averages are preserved."""

import numpy as np
import pytest

import kiln
from kiln import nn


@pytest.fixture(autouse=True)
def seed(connection):
    kiln.manual_seed(0)


def test_elements_are_left_out_and_the_others_scaled():
    y = nn.Dropout(0.25)(kiln.ones(200, 100)).numpy()
    np.testing.assert_allclose(np.unique(y), [0, 1 / 0.75], rtol=1e-6)
    assert (y == 0).mean() == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(("module", "shape"), [
    (nn.Dropout1d(0.5), (40, 50, 3)), (nn.Dropout2d(0.5), (40, 50, 2, 3)),
    (nn.Dropout3d(0.5), (40, 50, 2, 2, 2)),
])  # fmt: skip
def test_channels_are_left_out_whole(module, shape):
    y = module(kiln.ones(shape)).numpy().reshape(40 * 50, -1)
    assert (y == y[:, :1]).all()
    assert (y[:, 0] == 0).mean() == pytest.approx(0.5, abs=0.04)


def test_alpha_dropout_keeps_mean_and_variance():
    y = nn.AlphaDropout(0.3)(nn.SELU()(kiln.randn(300, 300))).numpy()
    assert y.mean() == pytest.approx(0, abs=0.03) and y.var() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("kind", [nn.Dropout, nn.Dropout2d, nn.AlphaDropout, nn.RReLU])
def test_nothing_is_random_in_eval(kind):
    x = kiln.randn(2, 3, 4, 5)
    module = kind().eval()
    np.testing.assert_array_equal(module(x).numpy(), module(x).numpy())


def test_each_call_of_a_traced_function_draws_anew():
    module = nn.Dropout(0.5)
    run = kiln.jit(lambda x: module(x))
    x = kiln.ones(1000)
    first, second = run(x).numpy(), run(x).numpy()
    assert run.traces == 1 and 200 < (first != second).sum() < 800


def test_a_transformers_dropout_is_in_training_alone():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5)
    x = kiln.randn(4, 2, 8)
    assert np.abs(layer(x).numpy() - layer(x).numpy()).max() > 0.1
    layer.eval()
    np.testing.assert_array_equal(layer(x).numpy(), layer(x).numpy())


def test_a_probability_is_one():
    with pytest.raises(kiln.InvalidArgument, match=r"1\.5"):
        nn.Dropout(1.5)
