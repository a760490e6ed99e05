"""Layers on several devices in one program: the results equal those of one device."""

import signal

import numpy as np
import pytest

import kiln
from kiln import nn
from kiln._session import connection as _connection
from kilnd_process import Kilnd
from sent_operations import sent_operations

BATCH = 24


@pytest.fixture(scope="module")
def three():
    """A daemon with three devices."""
    with Kilnd(threads=3, flags=["--cpu_devices=3"]) as daemon:
        yield daemon


@pytest.fixture
def session(three):
    opened = kiln.connect(three.address)
    yield opened
    _connection._default = None
    opened.close()


def data():
    random = np.random.default_rng(0)
    return random.normal(size=(BATCH, 12)).astype(np.float32), random.integers(0, 5, BATCH)


def layers():
    kiln.manual_seed(1)
    return [
        nn.Sequential(nn.Linear(12, 24), nn.ReLU()),
        nn.Sequential(nn.Linear(24, 24), nn.LayerNorm(24), nn.GELU()),
        nn.Linear(24, 5),
    ]


class Training:
    """Three layers on these devices (None: not placed), with batches in `parts` parts."""

    def __init__(self, devices, parts=1, traced=True, clip=None, optimizer=kiln.optim.Adam):
        self.layers = layers()
        self.devices = devices
        self.parts = parts
        self.clip = clip
        for layer, device in zip(self.layers, devices or ()):
            layer.to(device)
        self.parameters = [x for layer in self.layers for x in layer.parameters()]
        self.optimizer = optimizer(self.parameters, lr=0.02)
        self.step = kiln.jit(self._step) if traced else self._step

    def _loss(self, x, y):
        for i, layer in enumerate(self.layers):
            x = layer(x.to(self.devices[i]) if self.devices else x)
        return nn.functional.cross_entropy(x, y)

    def _step(self, x, y):
        self.optimizer.zero_grad()
        size = BATCH // self.parts
        loss = sum(self._loss(x[i : i + size], y[i : i + size])
                   for i in range(0, BATCH, size)) / self.parts
        loss.backward()
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, 0.3, self.clip)
        self.optimizer.step()
        return loss

    def run(self, steps):
        x, y = data()
        return [self.step(kiln.tensor(x), kiln.tensor(y)).item() for _ in range(steps)]


# The session's own device first, in the middle, and not at all; and back to the first.
PLACES = [("cpu:0", "cpu:1", "cpu:2"), ("cpu:2", "cpu:0", "cpu:1"), ("cpu:1", "cpu:1", "cpu:2"),
          ("cpu:1", "cpu:2", "cpu:1")]


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("devices", PLACES)
def test_training_is_that_of_one_device(session, devices, parts):
    expected = Training(None).run(50)
    training = Training(devices, parts)
    losses = training.run(50)
    assert losses[-1] < 0.5 * losses[0]
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    # One program, on all devices at once, and everything stays where it was placed.
    (info,) = training.step.programs()
    assert training.step.traces == 1
    for layer, device in zip(training.layers, devices):
        assert {x.device for x in layer.parameters()} == {device}


@pytest.mark.parametrize("clip", [2.0, 3.0, float("inf")])
def test_norms_are_taken_over_all_devices(session, clip):
    np.testing.assert_allclose(
        Training(PLACES[0], 2, clip=clip).run(10), Training(None, clip=clip).run(10), rtol=1e-4)


@pytest.mark.parametrize("optimizer", [
    kiln.optim.AdamW, kiln.optim.RMSprop, lambda x, lr: kiln.optim.SGD(x, lr=lr, momentum=0.9)])
def test_optimizers_keep_their_state_with_the_weights(session, optimizer):
    np.testing.assert_allclose(
        Training(PLACES[1], 3, optimizer=optimizer).run(10),
        Training(None, optimizer=optimizer).run(10), rtol=1e-4)


def test_scaled_gradients(session):
    def train(devices):
        training = Training(devices)
        scaler = kiln.GradScaler(init_scale=2.0**10, growth_interval=3)

        @kiln.jit
        def step(x, y):
            training.optimizer.zero_grad()
            loss = training._loss(x, y)
            scaler.scale(loss).backward()
            scaler.step(training.optimizer)
            scaler.update()
            return loss

        x, y = data()
        losses = []
        for i in range(8):
            factor = np.inf if i == 4 else 1.0  # a step that must change nothing
            losses.append(step(kiln.tensor(x * np.float32(factor)), kiln.tensor(y)).item())
        return losses, scaler.get_scale()

    losses, scale = train(PLACES[0])
    expected, expected_scale = train(None)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert scale == expected_scale


def test_an_eager_step_is_that_of_one_device(session):
    np.testing.assert_allclose(
        Training(PLACES[0], 2, traced=False).run(5), Training(None, traced=False).run(5), rtol=1e-4)


def test_a_step_is_one_message(session):
    training = Training(PLACES[0], 2)
    x, y = (kiln.tensor(array) for array in data())
    for _ in range(2):
        training.step(x, y).item()
    with sent_operations(session) as sent:
        last = training.step(x, y)
    assert sent == ["run"]
    assert last.item() > 0


def test_each_device_has_the_memory_of_its_layers(device_memory):
    model = [nn.Linear(1024, 1024, bias=False).to(f"cpu:{i}") for i in (1, 2)]
    optimizer = kiln.optim.Adam([layer.weight for layer in model], lr=0.1)
    kiln.realize(*[layer.weight for layer in model], *[x for _, x in optimizer.named_state()])

    @kiln.jit
    def step(x):
        optimizer.zero_grad()
        loss = model[1](model[0](x.to("cpu:1")).to("cpu:2")).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        loss = step(kiln.ones(1, 1024))
    assert loss.item() >= 0
    mebibytes = device_memory.taken(np.array([1, 13, 13, 1]))
    # A weight of 4 MiB and two moments; before a program ran, nothing of it was on other devices.
    assert mebibytes[0] < 1 and mebibytes[3] == 0
    np.testing.assert_allclose(mebibytes[1:3], 12, atol=1)


def test_random_numbers_and_running_statistics(session):
    def train(devices):
        kiln.manual_seed(2)
        first = nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.Dropout(0.3))
        second = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Dropout(0.3))
        if devices:
            first.to(devices[0]), second.to(devices[1])
        optimizer = kiln.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)

        @kiln.jit
        def step(x):
            optimizer.zero_grad()
            hidden = first(x)
            loss = second(hidden.to(devices[1]) if devices else hidden).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        x = kiln.tensor(data()[0])
        losses = [step(x).item() for _ in range(8)]
        state = {**first.state_dict(), **{f"second.{k}": v for k, v in second.state_dict().items()}}
        return losses, {name: value.numpy() for name, value in state.items()}

    losses, state = train(None)
    there, moved = train(("cpu:2", "cpu:1"))
    np.testing.assert_allclose(there, losses, rtol=1e-4)
    for name, value in state.items():
        np.testing.assert_allclose(moved[name], value, rtol=1e-3, atol=1e-5, err_msg=name)


def test_values_that_skip_stages_and_come_back(session):
    weight = kiln.tensor(np.arange(4.0, dtype=np.float32)).to("cpu:1").requires_grad_()

    @kiln.jit
    def step(x):
        weight.grad = None
        there = (x * weight).to("cpu:2").exp()
        back = there.to("cpu:1") + x
        loss = (back * weight).to("cpu:2").sum() + there.sum()
        (gradient,) = kiln.grad(loss, [weight])
        return loss, gradient, back

    x = np.array([0.1, -0.2, 0.3, 0.4], np.float32)
    w = np.arange(4.0)
    e = np.exp(x * w)
    loss, gradient, back = step(kiln.tensor(x))
    np.testing.assert_allclose(loss.item(), ((e + x) * w).sum() + e.sum(), rtol=1e-5)
    np.testing.assert_allclose(gradient.numpy(), e + x + w * x * e + x * e, rtol=1e-5)
    np.testing.assert_allclose(back.numpy(), e + x, rtol=1e-5)
    assert (loss.device, gradient.device, back.device) == ("cpu:2", "cpu:1", "cpu:1")


def test_a_restart_keeps_stages():
    """The second half of a training, by a restarted daemon, equals that of an uninterrupted run."""
    expected = []
    for interrupted in (False, True):
        with Kilnd(threads=3, flags=["--cpu_devices=3"]) as daemon:
            connection = kiln.connect(daemon.address)
            training = Training(PLACES[1], 2)
            losses = training.run(5)
            if interrupted:
                assert daemon.stop(signal.SIGTERM) == 0
                daemon.start()
            losses += training.run(5)
            expected.append(losses)
            training = None
            _connection._default = None
            connection.close()
    assert expected[0] == expected[1]


@pytest.mark.parametrize("traced", [True, False])
def test_what_was_put_nowhere_is_used_on_two_devices(session, traced):
    """The gradients of its two losses add up, and a norm includes it."""
    def train(devices):
        scale = kiln.tensor(np.ones(3, np.float32)).requires_grad_()
        weights = [kiln.tensor(np.full(3, i + 1.0, np.float32)) for i in range(2)]
        if devices:
            weights = [weight.to(device) for weight, device in zip(weights, devices)]
        weights = [weight.requires_grad_() for weight in weights]

        def step():
            for tensor in (scale, *weights):
                tensor.grad = None
            for weight in weights:
                (scale * weight * weight).sum().backward()
            norm = nn.utils.clip_grad_norm_([scale, *weights], 1.0)
            return norm, scale.grad, *[weight.grad for weight in weights]

        return [x.numpy() for x in (kiln.jit(step) if traced else step)()]

    for found, expected in zip(train(("cpu:1", "cpu:2")), train(None)):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_stages_and_meshes_are_two_programs(session):
    mesh = kiln.Mesh("data", ["cpu:0", "cpu:1"])
    x, y = kiln.ones(2).to("cpu:1"), kiln.shard(np.ones(2, np.float32), mesh)

    @kiln.jit
    def both(x, y):
        return x.to("cpu:0") + 1, y * 2

    with pytest.raises(kiln.InvalidArgument, match="a program can have stages or a mesh"):
        both(x, y)
    rows = kiln.Variable("rows", 1, 8)

    @kiln.jit
    def sent(x):
        return x.to("cpu:0") + 1

    with pytest.raises(kiln.InvalidArgument, match='"rows" is used with a tensor that is sent'):
        sent(kiln.tensor(np.ones(2, np.float32)).to("cpu:1").with_variable(0, rows))


def test_what_meets_on_two_devices_is_refused_by_name(session):
    x, y = kiln.ones(2).to("cpu:0"), kiln.ones(2).to("cpu:1")

    @kiln.jit
    def add(x, y):
        return x + y

    with pytest.raises(kiln.InvalidArgument, match=r"cpu:0 and on cpu:1 .* x\.to\(device\)"):
        add(x, y)
    with pytest.raises(kiln.InvalidArgument, match="no device cpu:9"):
        x.to("cpu:9")
