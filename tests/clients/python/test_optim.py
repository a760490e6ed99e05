"""Optimizers and schedulers compared with PyTorch's, LAMB and Muon with NumPy, and other tests."""

import math

import numpy as np
import pytest

import kiln
from kiln import nn, optim
from kiln.optim import lr_scheduler
from torch_oracle import RATES, START, STEPS, TARGET, loss_of, measure_at

OPTIMIZERS = [
    "optim.SGD([p, q], lr=0.02)",
    "optim.SGD([p, q], lr=0.02, momentum=0.9, dampening=0.3, weight_decay=0.1)",
    "optim.SGD([{'params': [p], 'lr': 0.05}, {'params': q, 'momentum': 0.5}], lr=0.01)",
    "optim.SGD([p, q], lr=0.02, momentum=0.5, weight_decay=0.1, maximize=True)",
    "optim.Adam([p, q], lr=0.1)",
    "optim.Adam([p, q], lr=0.1, maximize=True)",
    "optim.Adam([p, q], lr=0.1, betas=(0.5, 0.6), eps=1e-3, weight_decay=0.2, amsgrad=True)",
    "optim.AdamW([{'params': [p], 'weight_decay': 0.0}, {'params': [q]}], lr=0.1)",
    "optim.RAdam([p, q], lr=0.1)",
    "optim.RAdam([p, q], lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)",
    "optim.Adamax([p, q], lr=0.1)",
    "optim.Adamax([p, q], lr=0.1, betas=(0.5, 0.8), eps=1e-3, weight_decay=0.1)",
    "optim.Adadelta([p, q])",
    "optim.Adadelta([p, q], lr=2.0, rho=0.7, eps=1e-3, weight_decay=0.1)",
    "optim.RMSprop([p, q], lr=0.05)",
    "optim.RMSprop([p, q], lr=0.05, momentum=0.5, centered=True, weight_decay=0.1)",
    "optim.Adagrad([p, q], lr=0.2, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.1)",
]
SCHEDULERS = [
    "LambdaLR(o, lambda epoch: 0.9 ** epoch)",
    "LambdaLR(o, [lambda epoch: 1 / (1 + epoch), lambda epoch: 0.5])",
    "StepLR(o, 5, gamma=0.3)",
    "MultiStepLR(o, [4, 9, 9, 15])",
    "ExponentialLR(o, 0.9)",
    "ConstantLR(o, factor=0.25, total_iters=7)",
    "LinearLR(o, start_factor=0.1, total_iters=8)",
    "PolynomialLR(o, total_iters=10, power=2.0)",
    "CosineAnnealingLR(o, 12, eta_min=0.01)",
    "CosineAnnealingWarmRestarts(o, 4, T_mult=2, eta_min=0.001)",
    "OneCycleLR(o, max_lr=[1.0, 0.5], total_steps=25, cycle_momentum=False)",
    "OneCycleLR(o, max_lr=1.0, epochs=5, steps_per_epoch=6, anneal_strategy='linear', "
    "three_phase=True, cycle_momentum=False)",
    "CyclicLR(o, [0.1, 0.2], 1.0, step_size_up=3, step_size_down=4, cycle_momentum=False)",
    "CyclicLR(o, 0.1, 1.0, step_size_up=2, mode='triangular2', cycle_momentum=False)",
    "CyclicLR(o, 0.1, 1.0, step_size_up=4, mode='exp_range', gamma=0.9, cycle_momentum=False)",
    "CyclicLR(o, 0.1, 1.0, 3, scale_fn=lambda n: 1 / n, cycle_momentum=False)",
    "ChainedScheduler([ConstantLR(o, 0.1, total_iters=4), ExponentialLR(o, 0.9)])",
    "SequentialLR(o, [LinearLR(o, 0.1, total_iters=5), ExponentialLR(o, 0.8)], [5])",
    "ReduceLROnPlateau(o, patience=2, factor=0.5, cooldown=1)",
    "ReduceLROnPlateau(o, 'max', patience=1, threshold=0.2, threshold_mode='abs', min_lr=0.05)",
]


@pytest.fixture(scope="module")
def expected(ask_torch):
    return ask_torch("training", {"optimizers": OPTIMIZERS, "schedulers": SCHEDULERS})


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_optimizer_is_pytorchs(connection, expected, make):
    parameters = [nn.Parameter(x) for x in START]
    optimizer = eval(make, {"optim": optim, "p": parameters[0], "q": parameters[1]})
    targets = [kiln.tensor(x) for x in TARGET]

    @kiln.jit
    def step():
        optimizer.zero_grad()
        loss_of(parameters, targets).backward()
        optimizer.step()
        return [parameter.detach() for parameter in parameters]

    for number in range(STEPS):
        for i, found in enumerate(step()):
            np.testing.assert_allclose(
                found.numpy(), expected[f"{make}/{number}/{i}"], rtol=2e-5, atol=2e-6)
    assert step.traces == 1


@pytest.mark.parametrize("make", SCHEDULERS)
def test_scheduler_is_pytorchs(expected, make):
    weights = [kiln.zeros(1, requires_grad=True) for _ in range(2)]
    optimizer = optim.SGD([{"params": weights[:1]}, {"params": weights[1:], "lr": 0.5}], lr=0.1)
    scheduler = eval(make, {**vars(lr_scheduler), "o": optimizer})
    rates = [scheduler.get_last_lr()]
    for epoch in range(RATES):
        scheduler.step(*[measure_at(epoch)] * make.startswith("ReduceLROnPlateau"))
        rates.append([group["lr"] for group in optimizer.param_groups])
    np.testing.assert_allclose(rates, expected[make], rtol=1e-9)


def test_a_scheduler_continues_from_its_state():
    def made():
        optimizer = optim.SGD([kiln.zeros(1, requires_grad=True)], lr=0.1)
        return lr_scheduler.CosineAnnealingLR(optimizer, 10), optimizer

    scheduler, optimizer = made()
    for _ in range(4):
        scheduler.step()
    other, other_optimizer = made()
    other.load_state_dict(scheduler.state_dict())
    assert other_optimizer.lr == optimizer.lr
    other.step()
    scheduler.step()
    assert other_optimizer.lr == optimizer.lr


def descend(optimizer, parameter, target, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        (parameter - kiln.tensor(target)).square().sum().backward()
        optimizer.step()
    return parameter.numpy()


def test_lamb_is_its_formula(connection):
    p, m, v = START[1].astype(np.float64), 0.0, 0.0
    for count in range(1, 6):
        g = 2 * (p - TARGET[1])
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        r = m / (1 - 0.9**count) / (np.sqrt(v / (1 - 0.99**count)) + 1e-6) + 0.1 * p
        p = p - 0.05 * np.linalg.norm(p) / np.linalg.norm(r) * r
    parameter = nn.Parameter(START[1])
    optimizer = optim.LAMB([parameter], lr=0.05, betas=(0.9, 0.99), weight_decay=0.1)
    np.testing.assert_allclose(descend(optimizer, parameter, TARGET[1], 5), p, rtol=1e-4)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_nadam_is_its_formula(connection, decay):  # PyTorch 1.13 multiplies mu in twice
    p, m, v, product = START[1].astype(np.float64), 0.0, 0.0, 1.0
    for count in range(1, 6):
        g = 2 * (p - TARGET[1]) + decay * p
        now, later = (0.9 * (1 - 0.5 * 0.96 ** (at * 0.2)) for at in (count, count + 1))
        product *= now
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        step = (1 - now) / (1 - product) * g + later / (1 - product * later) * m
        p = p - 0.05 * step / (np.sqrt(v / (1 - 0.99**count)) + 1e-8)
    parameter = nn.Parameter(START[1])
    optimizer = optim.NAdam([parameter], lr=0.05, betas=(0.9, 0.99), weight_decay=decay,
                            momentum_decay=0.2)
    np.testing.assert_allclose(descend(optimizer, parameter, TARGET[1], 5), p, rtol=1e-4)


def orthogonalized(x):
    wide = x.shape[0] <= x.shape[1]
    x = x if wide else x.T
    x = x / np.linalg.norm(x)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x if wide else x.T


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (4, 2, 3)])
def test_muon_is_its_formula_and_its_steps_are_nearly_orthogonal(connection, shape):
    numbers = np.random.default_rng(0)
    start, target = numbers.standard_normal((2, *shape))
    p, velocity = start.copy(), 0.0
    for _ in range(4):
        g = 2 * (p - target)
        velocity = 0.9 * velocity + 0.1 * g
        matrix = (0.1 * g + 0.9 * velocity).reshape(shape[0], -1)
        step = orthogonalized(matrix)
        assert np.linalg.svd(step)[1].min() > 0.5 and np.linalg.svd(step)[1].max() < 1.3
        step = step * max(1, matrix.shape[0] / matrix.shape[1]) ** 0.5
        p = p * (1 - 0.02 * 0.1) - 0.02 * step.reshape(shape)
    parameter = nn.Parameter(start.astype(np.float32))
    optimizer = optim.Muon([parameter], lr=0.02, momentum=0.9, weight_decay=0.1)
    np.testing.assert_allclose(
        descend(optimizer, parameter, target.astype(np.float32), 4), p, rtol=1e-3, atol=1e-4)


def adamw_by_parts(start, inputs, weights, parts):
    """Returns the matrix after three steps, with each part of its rows as a separate parameter."""
    parameters = [nn.Parameter(start[part]) for part in parts]
    columns = [kiln.tensor(inputs[:, part]) for part in parts]
    weights = kiln.tensor(weights)
    optimizer = optim.AdamW(parameters, lr=0.1, weight_decay=0.05)

    @kiln.jit
    def step():
        optimizer.zero_grad()
        for parameter, x in zip(parameters, columns):
            (weights * (x @ parameter)).sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    return np.concatenate([parameter.numpy() for parameter in parameters])


def test_a_matrix_larger_than_caches_is_updated_as_its_parts(connection):
    # The product that is its gradient and Adam's updates are then two kernels, not one.
    random = np.random.default_rng(5)
    start = random.normal(size=(1100, 1000)).astype(np.float32)
    inputs = random.normal(size=(8, 1100)).astype(np.float32)
    weights = random.normal(size=(8, 1000)).astype(np.float32)
    whole = adamw_by_parts(start, inputs, weights, [slice(None)])
    parts = adamw_by_parts(start, inputs, weights, [slice(0, 1000), slice(1000, None)])
    assert np.abs(whole - start).max() > 0.25
    np.testing.assert_allclose(whole, parts, rtol=1e-5, atol=1e-6)


def test_a_changed_learning_rate_traces_nothing_and_is_used(connection):
    parameter = nn.Parameter([1.0])
    optimizer = optim.SGD([parameter], lr=1.0)
    scheduler = lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

    @kiln.jit
    def step():
        optimizer.zero_grad()
        parameter.sum().backward()
        optimizer.step()

    places = []
    for _ in range(4):
        step()
        scheduler.step()
        places.append(parameter.item())
    assert places == [0.0, -0.5, -0.75, -0.875] and step.traces == 1


class Halving(optim.Optimizer):
    """A user's optimizer, with an attribute of its own."""

    def __init__(self, params):
        super().__init__(params, {"lr": 1.0})
        self.factor = 0.5

    def update(self, parameter, gradient, state, lr, count, options):
        parameter.assign(parameter * self.factor)


def test_what_a_users_optimizer_adds_is_watched(connection):
    parameter = nn.Parameter([16.0])
    optimizer = Halving([parameter])

    @kiln.jit
    def step():
        optimizer.zero_grad()
        parameter.sum().backward()
        optimizer.step()

    step()
    step()
    assert parameter.item() == 4 and step.traces == 1
    optimizer.factor = 0.25
    step()
    assert parameter.item() == 1 and step.traces == 2


def test_a_learning_rate_set_inside_jit_is_an_error(stand_in):
    optimizer = optim.SGD([nn.Parameter([1.0])], lr=1.0)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    with pytest.raises(kiln.TraceError, match="between calls"):
        kiln.jit(scheduler.step)()


def test_clipping_by_norm_and_value(connection):
    def made():
        parameters = [nn.Parameter([3.0, -4.0]), nn.Parameter([[12.0]])]
        sum((p.square() / 2).sum() for p in parameters).backward()
        return parameters

    for norm_type, norm in ((2.0, 13.0), (math.inf, 12.0), (1.0, 19.0)):
        parameters = made()
        assert nn.utils.clip_grad_norm_(parameters, 2.0, norm_type).item() == pytest.approx(norm)
        np.testing.assert_allclose(
            parameters[0].grad.numpy(), np.array([3, -4]) * 2 / norm, rtol=1e-5)
        np.testing.assert_allclose(parameters[1].grad.numpy(), [[24 / norm]], rtol=1e-5)
    parameters = made()
    nn.utils.clip_grad_norm_(parameters, 20.0)
    np.testing.assert_array_equal(parameters[0].grad.numpy(), [3, -4])
    nn.utils.clip_grad_value_(parameters, 3.5)
    np.testing.assert_array_equal(parameters[0].grad.numpy(), [3, -3.5])
    np.testing.assert_array_equal(parameters[1].grad.numpy(), [[3.5]])


def test_accumulated_gradients_step_as_one_batch(connection):
    x = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)

    def trained(accumulate):
        parameter = nn.Parameter(START[0])
        optimizer = optim.AdamW([parameter], lr=0.1)
        accumulation = optim.GradientAccumulation(optimizer, 4)

        @kiln.jit
        def step(rows):
            optimizer.zero_grad()
            (rows @ parameter).square().mean().backward()
            (accumulation if accumulate else optimizer).step()

        for _ in range(2):
            for part in np.split(x, 4) if accumulate else [x]:
                step(kiln.tensor(part))
        assert step.traces == 1
        return parameter.numpy()

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-5)


def test_nothing_changes_where_the_condition_is_false(connection):
    parameter = nn.Parameter(START[0])
    optimizer = optim.Adam([parameter], lr=0.1)
    parameter.square().sum().backward()
    optimizer.step(only_if=kiln.tensor(False))
    np.testing.assert_array_equal(parameter.numpy(), START[0])
    assert all(not np.any(np.asarray(value)) for name, value in optimizer.state_dict().items()
               if not name.endswith("lr"))
    optimizer.step(only_if=kiln.tensor(True))
    assert np.abs(parameter.numpy() - START[0]).min() > 0.09


def test_moving_averages(connection):
    parameter = nn.Parameter([0.0])
    ema = optim.EMA([parameter], decay=0.5)

    @kiln.jit
    def step(value):
        parameter.assign(value)
        ema.update()

    average = 0.0
    for n, value in enumerate([1.0, 5.0, 2.0, 8.0], 1):
        step(kiln.tensor([value]))
        decay = min(0.5, (1 + n) / (10 + n))
        average = decay * average + (1 - decay) * value
    with ema.applied():
        assert parameter.item() == pytest.approx(average, rel=1e-5)
    assert parameter.item() == 8.0
    other = optim.EMA([nn.Parameter([0.0])])
    other.load_state_dict(ema.state_dict())
    assert other.averages[0].item() == pytest.approx(average, rel=1e-5)


def test_decay_smaller_than_floats_steps_counts_in_doubles(connection):
    parameter = nn.Parameter(kiln.tensor(np.ones(1)))
    optimizer = optim.AdamW([parameter], lr=1e-6, weight_decay=1e-2)
    for _ in range(10):
        parameter.grad = kiln.zeros(1, dtype=kiln.float64)
        optimizer.step()
    assert 1 - parameter.item() == pytest.approx(1e-7, rel=1e-5)


def test_bad_groups_are_refused():
    p, q = (kiln.zeros(2, requires_grad=True) for _ in range(2))
    with pytest.raises(kiln.InvalidArgument, match="two groups"):
        optim.SGD([{"params": [p]}, {"params": [p, q]}])
    with pytest.raises(kiln.InvalidArgument, match="no option speed"):
        optim.SGD([{"params": [p], "speed": 3}])
    with pytest.raises(kiln.NotFound, match="speed"):
        optim.SGD([p]).param_groups[0]["speed"] = 3
    with pytest.raises(kiln.InvalidArgument, match="must be a matrix"):
        optim.Muon([p])
    with pytest.raises(kiln.NotFound, match="the same optimizer"):
        optim.Adam([p]).load_state_dict(optim.SGD([p]).state_dict())


@pytest.mark.parametrize("jitted", [False, True])
def test_a_float64_parameter_moves_by_the_whole_rate(connection, jitted):
    parameter = nn.Parameter(kiln.zeros(1, dtype="float64"))
    optimizer = optim.SGD([parameter], lr=0.05)

    def step():
        optimizer.zero_grad()
        (parameter - 1.0).sum().backward()
        optimizer.step()
        return parameter.detach() + 0.0

    step = kiln.jit(step) if jitted else step
    assert step().item() == -0.05
    optimizer.lr = 0.1
    assert step().item() == -0.05 - 0.1
