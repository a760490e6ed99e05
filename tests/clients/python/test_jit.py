"""kiln.jit on a live kilnd: values equal those of the function without it."""

import numpy as np
import pytest

import kiln
from kiln import nn


def test_results_are_fresh(connection):
    double = kiln.jit(lambda x: x * 2)
    first = double(kiln.tensor([1.0]))
    second = double(kiln.tensor([5.0]))
    assert (first.item(), second.item()) == (2, 10)


def test_kernels_may_be_fixed_or_live(connection):
    @kiln.jit(update="live")
    def double(x):
        return x * 2

    assert double(kiln.tensor([1.0])).item() == 2
    assert kiln.jit(lambda x: x * 2, update="fixed")(kiln.tensor([2.0])).item() == 4
    with pytest.raises(ValueError, match='update is "fixed" or "live"'):
        kiln.jit(lambda x: x, update="never")


def test_every_call_sees_the_arguments_it_is_given(connection):
    f = kiln.jit(lambda x, k: x * k)
    assert [f(kiln.tensor([3.0]), k).item() for k in (1, 2, 1, 5)] == [3, 6, 3, 15]


def test_closure_and_attribute_tensors_are_read_anew(connection):
    weight = kiln.tensor([1.0, 2.0])
    model = nn.Linear(2, 1, bias=False)
    model.weight.assign(kiln.tensor([[1.0, 1.0]]))

    @kiln.jit
    def f(x):
        return model(x * weight)

    x = kiln.tensor([[1.0, 1.0]])
    assert f(x).item() == 3
    weight.assign(kiln.tensor([3.0, 4.0]))
    assert f(x).item() == 7
    weight = kiln.tensor([5.0, 6.0])
    assert f(x).item() == 11
    model.weight = nn.Parameter([[2.0, 0.0]])
    assert f(x).item() == 10
    assert f.traces == 1


def test_state_moves_on_by_one_at_each_call(connection):
    count = kiln.tensor(0)

    @kiln.jit
    def f():
        count.assign(count + 1)
        return count * 10

    assert [f().item() for _ in range(5)] == [10, 20, 30, 40, 50]
    assert count.item() == 5
    count.assign(100)
    assert f().item() == 1010


def test_old_values_are_kept_where_somebody_holds_them(connection):
    count = kiln.tensor([0.0])
    count.realize()
    before = count.detach()
    lazy = count + 0.5

    @kiln.jit
    def f():
        count.assign(count + 1)

    f()
    assert (before.item(), lazy.item(), count.item()) == (0, 0.5, 1)
    kept = count.detach()
    f()
    assert (kept.item(), count.item()) == (1, 2)


def test_an_argument_returned_is_a_new_tensor(connection):
    f = kiln.jit(lambda x: (x, x * 2))
    x = kiln.tensor([1.0])
    same, _ = f(x)
    x.assign(kiln.tensor([9.0]))
    x.realize()
    assert same.item() == 1


def test_random_numbers_go_on_and_are_those_without_jit(connection):
    def draw():
        return kiln.rand(3), kiln.randn(2)

    kiln.manual_seed(5)
    plain = [[part.numpy() for part in draw()] for _ in range(3)]
    kiln.manual_seed(5)
    jitted = kiln.jit(draw)
    traced = [[part.numpy() for part in jitted()] for _ in range(3)]
    for a, b in zip(plain, traced):
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_allclose(a[1], b[1], rtol=1e-6)
    assert not np.array_equal(traced[0][0], traced[1][0])
    kiln.manual_seed(5)
    np.testing.assert_array_equal(jitted()[0].numpy(), plain[0][0])


def test_random_numbers_mix_with_draws_outside(connection):
    kiln.manual_seed(1)
    wanted = [kiln.rand(2).numpy() for _ in range(4)]
    kiln.manual_seed(1)
    f = kiln.jit(lambda: kiln.rand(2))
    got = [f().numpy(), kiln.rand(2).numpy(), f().numpy(), kiln.rand(2).numpy()]
    np.testing.assert_array_equal(got, wanted)


def test_dropout_differs_from_call_to_call(connection):
    layer = kiln.jit(nn.Dropout(0.5))
    x = kiln.ones(1000)
    a, b = layer(x).numpy(), layer(x).numpy()
    assert not np.array_equal(a, b)
    assert set(np.unique(a)) == {0.0, 2.0} and 400 < (a == 0).sum() < 600


def test_batch_norm_trains_and_evaluates(connection):
    layer = nn.BatchNorm2d(3)
    f = kiln.jit(layer)
    x = np.random.default_rng(0).normal(2, 3, size=(4, 3, 5, 5)).astype(np.float32)
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    got = f(kiln.tensor(x)).numpy()
    wanted = (x - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.1 * mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        layer.running_var.numpy(), 0.9 + 0.1 * x.var((0, 2, 3), ddof=1), rtol=1e-5)
    layer.eval()
    scale = np.sqrt(layer.running_var.numpy() + 1e-5)[:, None, None]
    wanted = (x - layer.running_mean.numpy()[:, None, None]) / scale
    np.testing.assert_allclose(f(kiln.tensor(x)).numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_gradients_inside(connection):
    weight = kiln.tensor([1.0, 2.0], requires_grad=True)

    @kiln.jit
    def f(x):
        weight.grad = None
        loss = (weight * x).square().sum()
        loss.backward()
        return loss, weight.grad

    for scale in (1.0, 3.0):
        loss, gradient = f(kiln.tensor([scale, scale]))
        assert loss.item() == pytest.approx(5 * scale**2)
        np.testing.assert_allclose(gradient.numpy(), [2 * scale**2, 4 * scale**2], rtol=1e-6)


def test_gradient_functions_inside(connection):
    f = kiln.jit(kiln.grad(lambda x: (x**3).sum()))
    np.testing.assert_allclose(f(kiln.tensor([2.0])).numpy(), [12], rtol=1e-6)
    np.testing.assert_allclose(f(kiln.tensor([3.0])).numpy(), [27], rtol=1e-6)


def test_training_gives_what_it_gives_without_jit(connection):
    def train(jitted):
        kiln.manual_seed(3)
        model = nn.Sequential(
            nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 3))
        optimizer = kiln.optim.Adam(model.parameters(), lr=0.01)

        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = kiln.jit(step) if jitted else step
        data = np.random.default_rng(0)
        losses = []
        for i in range(6):
            if i == 3:
                optimizer.lr = 0.001
            x = kiln.tensor(data.normal(size=(16, 4)).astype(np.float32))
            losses.append(run(x, kiln.tensor(data.integers(0, 3, 16))).item())
        return losses

    np.testing.assert_allclose(train(False), train(True), rtol=1e-5)


def test_an_error_on_the_device_is_raised_and_names_the_line(connection):
    f = kiln.jit(lambda x: x.expand(1 << 18, 1 << 20) * 2)  # a tebibyte
    with pytest.raises(kiln.ResourceExhausted):
        f(kiln.tensor([1.0])).numpy()


def test_an_update_that_fails_is_not_silent(connection):
    state = kiln.tensor([1.0]).realize()

    @kiln.jit
    def f():
        state.assign(state.expand(1 << 18, 1 << 20).contiguous().sum(0)[:1])

    f()
    with pytest.raises(kiln.ResourceExhausted):
        connection.synchronize()


def test_a_gradient_through_a_result_is_an_error_and_not_a_wrong_number(connection):
    model = nn.Linear(2, 1)
    forward = kiln.jit(model.forward)
    x = kiln.ones(3, 2)
    message = "a gradient through a result of Linear.forward, which kiln.jit traced"
    with pytest.raises(kiln.InvalidArgument, match=message):
        forward(x).sum().backward()
    # Other uses of the weight would hide that a part of its gradient is missing.
    result = forward(x) * 2
    result.numpy()
    with pytest.raises(kiln.InvalidArgument, match=message):
        (result + model.weight.sum()).sum().backward()
    increment = kiln.jit(lambda v: v + 1)
    with pytest.raises(kiln.InvalidArgument, match="or detach"):
        kiln.grad(lambda v: increment(v).sum())(x)
    with pytest.raises(kiln.InvalidArgument, match="detach"):
        (increment(model.weight * 2).sum() + model.bias.sum()).backward()
    assert kiln.jit(kiln.grad(lambda v: increment(v).sum()))(kiln.ones(2)).tolist() == [1, 1]


def test_a_result_that_wants_no_gradient_is_a_constant(connection):
    model = nn.Linear(2, 1)
    forward = kiln.jit(model.forward)
    x = kiln.ones(1, 2)
    target = forward(x)
    value = target.item()
    (target.detach() * model.weight.sum()).sum().backward()
    np.testing.assert_allclose(model.weight.grad.numpy(), value, rtol=1e-6)
    model.weight.grad = None
    with kiln.no_grad():
        target = forward(x)
    (target * model.weight.sum()).sum().backward()
    np.testing.assert_allclose(model.weight.grad.numpy(), value, rtol=1e-6)
    # A function that kiln.grad differentiates may read values that were computed before.
    target = forward(x)
    slope = kiln.grad(lambda w: ((w - target) ** 2).sum())(kiln.zeros(1, 1))
    np.testing.assert_allclose(slope.item(), -2 * value, rtol=1e-6)
    state = kiln.zeros(1, 1).assign(target)
    (state * model.bias).sum().backward()
    np.testing.assert_allclose(model.bias.grad.item(), value, rtol=1e-6)


def test_gradients_from_outside_are_no_hindrance(connection):
    kiln.manual_seed(0)  # with some other weights the values almost cancel out
    model = nn.Linear(2, 1)
    x = kiln.ones(3, 2)
    optimizer = kiln.optim.SGD(model.parameters(), lr=0.1)
    model(x).square().mean().backward()

    @kiln.jit
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(x).item() for _ in range(4)]
    np.testing.assert_allclose(losses, losses[0] * 0.16 ** np.arange(4), rtol=1e-3)


@pytest.mark.parametrize("gradients", [True, False])
def test_a_traced_value_and_grad(connection, gradients):
    def loss(w, x):
        return ((x * w) ** 2).sum()

    step = kiln.jit(kiln.value_and_grad(loss, argnums=(0, 1)))
    with kiln.enable_grad() if gradients else kiln.no_grad():
        for w in (2.0, 3.0):
            value, slopes = step(kiln.tensor(w), kiln.tensor([1.0, 2.0]))
            assert (value.item(), slopes[0].item()) == (5 * w * w, 10 * w)
            assert slopes[1].tolist() == [2 * w * w, 4 * w * w]
    assert step.traces == 1
