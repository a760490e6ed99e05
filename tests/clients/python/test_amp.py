"""Mixed precision: the dtype of each computation, and how the scale changes."""

import numpy as np
import pytest

import kiln
from kiln import nn
from kiln._graph.node import TABLE
from kiln.amp import FLOAT32_OPS, HALF_OPS


def test_the_policy_names_ops_that_there_are():
    assert set(TABLE) >= HALF_OPS | FLOAT32_OPS
    assert not HALF_OPS & FLOAT32_OPS


def test_products_are_half_and_losses_float32():
    layer, x = nn.Linear(3, 2), kiln.zeros(4, 3)
    with kiln.autocast(kiln.float16):
        y = layer(x)
        assert y.dtype is kiln.float16
        assert (y @ y.T).dtype is kiln.float16
        assert y.softmax(-1).dtype is kiln.float32
        assert y.relu().dtype is kiln.float16
        assert (y + x[:, :2]).dtype is kiln.float32
        assert nn.functional.cross_entropy(y, kiln.zeros(4, dtype="int64")).dtype is kiln.float32
        assert nn.LayerNorm(2)(y).dtype is kiln.float32
        with kiln.autocast(enabled=False):
            assert layer(x).dtype is kiln.float32
        with kiln.autocast(kiln.bfloat16):
            assert layer(x).dtype is kiln.bfloat16
        assert (kiln.zeros(2, 2, dtype="float64") @ kiln.zeros(2, 2, dtype="float64")).dtype is (
            kiln.float64)
    assert layer(x).dtype is kiln.float32
    assert kiln.autocast(kiln.bfloat16)(layer)(x).dtype is kiln.bfloat16


def test_autocast_ends_with_an_error_inside():
    with pytest.raises(RuntimeError), kiln.autocast():
        raise RuntimeError
    assert not kiln.amp.is_autocast_enabled()
    with pytest.raises(kiln.InvalidArgument, match="float16 or bfloat16"):
        kiln.autocast(kiln.float64)


def test_gradients_have_their_parameters_dtype():
    layer = nn.Linear(3, 2)
    with kiln.autocast(kiln.float16):
        loss = layer(kiln.ones(4, 3)).square().mean()
    loss.backward()
    assert layer.weight.grad.dtype is layer.bias.grad.dtype is kiln.float32


def test_a_traced_function_is_traced_again_under_autocast(stand_in):
    layer, x = nn.Linear(3, 2), kiln.zeros(4, 3)
    run = kiln.jit(layer.forward)
    assert run(x).dtype is kiln.float32
    with kiln.autocast(kiln.float16):
        assert run(x).dtype is kiln.float16
    assert run(x).dtype is kiln.float32
    assert run.traces == 2


@pytest.mark.parametrize("jitted", [False, True])
def test_the_scale_shrinks_at_infinity_and_grows_with_patience(connection, jitted):
    parameter = nn.Parameter([1.0])
    optimizer = kiln.optim.Adam([parameter], lr=0.5)
    scaler = kiln.GradScaler(init_scale=8.0, growth_interval=2)

    def step(x):
        optimizer.zero_grad()
        scaler.scale((parameter * x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    run = kiln.jit(step) if jitted else step
    scales, places = [], []
    for x in (1.0, float("inf"), 1.0, 1.0, 1.0, float("nan")):
        run(kiln.tensor([x]))
        scales.append(scaler.get_scale())
        places.append(parameter.item())
    assert scales == [8, 4, 4, 8, 8, 4]
    np.testing.assert_allclose(places, [0.5, 0.5, 0.0, -0.5, -1.0, -1.0], atol=1e-5)
    assert not jitted or run.traces == 1
    other = kiln.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 4


def test_a_batch_that_overflows_is_left_out_of_an_accumulation(connection):
    parameter = nn.Parameter([1.0])
    accumulation = kiln.optim.GradientAccumulation(kiln.optim.SGD([parameter], lr=1.0), 2)
    scaler = kiln.GradScaler(init_scale=8.0)

    @kiln.jit
    def step(x):
        accumulation.zero_grad()
        scaler.scale((parameter * x).sum()).backward()
        scaler.step(accumulation)
        scaler.update()
        return parameter.detach()

    places = [step(kiln.tensor([x])).item() for x in (1.0, float("inf"), 3.0, 5.0, 7.0)]
    np.testing.assert_allclose(places, [1, 1, -1, -1, -7])
    assert scaler.get_scale() == 4


def test_unscaled_gradients_can_be_clipped(connection):
    parameter = nn.Parameter([3.0, 4.0])
    optimizer = kiln.optim.SGD([parameter], lr=1.0)
    scaler = kiln.GradScaler()
    scaler.scale(parameter.square().sum() / 2).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(kiln.InvalidArgument, match="twice"):
        scaler.unscale_(optimizer)
    assert nn.utils.clip_grad_norm_(parameter, 1.0).item() == pytest.approx(5)
    scaler.step(optimizer)
    scaler.update()
    np.testing.assert_allclose(parameter.numpy(), [2.4, 3.2], rtol=1e-5)


def network():
    kiln.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
        nn.Linear(8 * 36, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))


def losses_of(dtype):
    model = network()
    optimizer = kiln.optim.AdamW(model.parameters(), lr=3e-3)
    scaler = kiln.GradScaler(init_scale=1024.0, enabled=dtype is kiln.float16)
    numbers = np.random.default_rng(0)
    y = numbers.integers(0, 4, 32)
    x = numbers.standard_normal((32, 1, 6, 6)).astype(np.float32) + y[:, None, None, None]

    @kiln.jit
    def step(x, y):
        optimizer.zero_grad()
        with kiln.autocast(dtype or kiln.float16, enabled=dtype is not None):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return [step(kiln.tensor(x), kiln.tensor(y)).item() for _ in range(25)]


@pytest.mark.parametrize("dtype", [kiln.float16, kiln.bfloat16])
def test_training_in_half_precision_follows_float32(connection, dtype):
    exact, half = losses_of(None), losses_of(dtype)
    assert exact[-1] < 0.3 * exact[0]
    np.testing.assert_allclose(half, exact, atol=0.05 * exact[0])
    assert half != exact
