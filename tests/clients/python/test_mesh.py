"""Several devices: computations on a mesh give the results of one device."""

import numpy as np
import pytest

import kiln
from kiln import nn
from kiln._session import connection as _connection
from meshes import FOUR, GRID, THREE
from sent_operations import sent_operations


@pytest.fixture(scope="module")
def on_one(example, four):
    """Returns the losses of one device, by network."""
    connection = kiln.connect(four.address)
    losses = {name: example.train(name, "one", FOUR[:1], 50)[0] for name in ("convnet", "gpt")}
    _connection._default = None
    connection.close()
    return losses


# Training.


@pytest.mark.parametrize("mode", ["data", "tensor", "both", "zero2", "zero3", "pipeline"])
@pytest.mark.parametrize("name", ["convnet", "gpt"])
def test_training_is_that_of_one_device(session, example, on_one, name, mode):
    losses, _, _ = example.train(name, mode, FOUR if mode == "both" else FOUR[:2], 50)
    assert losses[-1] < 0.9 * losses[0]
    np.testing.assert_allclose(losses, on_one[name], rtol=1e-4)


@pytest.mark.parametrize("mode, devices", [("data", 4), ("zero3", 4), ("data", 3), ("tensor", 3),
                                           ("zero3", 3)])  # fmt: skip
def test_more_devices_compute_what_one_does(session, example, on_one, mode, devices):
    """Three devices divide neither the batch nor the layers' widths evenly."""
    losses, _, _ = example.train("gpt", mode, FOUR[:devices], 20)
    np.testing.assert_allclose(losses, on_one["gpt"][:20], rtol=1e-4)


def test_devices_of_two_kinds_make_a_mesh(mixed, example, on_one):
    connection = kiln.connect(mixed.address)
    try:
        losses, _, _ = example.train("convnet", "data", ["cpu:0", "opencl:0"], 50)
        np.testing.assert_allclose(losses, on_one["convnet"], rtol=1e-4)
    finally:
        _connection._default = None
        connection.close()


def state_of(rule_of_model, rule_of_state):
    """Returns a layer of 4 MiB with Adam's state; the whole takes 12 MiB on a device."""
    mesh = kiln.Mesh("data", FOUR)
    model = kiln.shard(nn.Linear(1024, 1024, bias=False), mesh, rule_of_model)
    optimizer = kiln.optim.Adam(model.parameters(), lr=0.1)
    if rule_of_state is not None:
        kiln.shard(optimizer, mesh, rule_of_state)
    kiln.realize(*model.parameters(), *[tensor for _, tensor in optimizer.named_state()])
    kiln.default_connection().synchronize()
    return model, optimizer


@pytest.mark.parametrize("rule_of_model, rule_of_state, mebibytes", [
    (None, None, 12), (None, "data", 4 + 8 / 4), ("data", None, 12 / 4)])  # fmt: skip
def test_each_device_has_the_memory_of_its_part(device_memory, rule_of_model, rule_of_state, mebibytes):
    state = state_of(rule_of_model, rule_of_state)
    mebibytes_max = 1.2 * mebibytes + 0.5
    taken = device_memory.taken(mebibytes_max)
    assert np.all(taken >= mebibytes) and np.all(taken <= mebibytes_max), taken
    del state


def test_zero_2_keeps_no_gradients(device_memory):
    """A device has 4 MiB of weights and its part of 8 MiB of state, but not 4 MiB of gradients."""
    model, optimizer = state_of(None, "data")

    @kiln.jit
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    mesh = kiln.Mesh("data", FOUR)
    for _ in range(3):
        step(kiln.shard(np.ones((8, 1024), np.float32), mesh, ("data",))).item()
    mebibytes_max = 1.2 * (4 + 8 / 4) + 0.5
    taken = device_memory.taken(mebibytes_max)
    assert np.all(taken <= mebibytes_max), taken
    (program,) = step.programs()
    assert program.runs == 3 and step.traces == 1


def test_uneven_parts_take_the_memory_of_equal_ones(device_memory):
    x = kiln.shard(np.ones((5, 1 << 18), np.float32), THREE, ("data",))
    mebibytes_max = np.array([2.5, 2.5, 2.5, 0.5])
    taken = device_memory.taken(mebibytes_max)
    assert np.all(taken[:3] >= 2) and np.all(taken <= mebibytes_max), taken
    del x


# Values.


def test_values_go_there_and_back(session):
    mesh = kiln.Mesh(("data", "model"), [FOUR[:2], FOUR[2:]])
    array = np.arange(8 * 12, dtype=np.float32).reshape(8, 12)
    for spec in (None, ("data",), (None, "model"), ("model", "data"), (("data", "model"),),
                 (None, ("model", "data"))):
        x = kiln.shard(kiln.tensor(array), mesh, spec)
        np.testing.assert_array_equal(x.numpy(), array)
        moved = kiln.shard(kiln.tensor(array).realize(), mesh, spec)
        np.testing.assert_array_equal(moved.numpy(), array)
        np.testing.assert_array_equal(kiln.shard(x, mesh, ("model",)).numpy(), array)
        np.testing.assert_array_equal(x.to("cpu:3").numpy(), array)
        np.testing.assert_array_equal((x * 2 + 1).numpy(), array * 2 + 1)
        np.testing.assert_array_equal(x.sum(0).numpy(), array.sum(0))
        lazy = kiln.shard(kiln.arange(96.0).reshape(8, 12), mesh, spec)
        np.testing.assert_array_equal(lazy.numpy(), array)
        assert x.tolist() == array.tolist() and "95." in str(x)


@pytest.mark.parametrize("shape", [(64, 3, 100, 100), (65, 3, 99, 101)])
def test_large_values_travel_in_parts(session, shape):
    mesh = kiln.Mesh("data", FOUR)
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for spec in (("data",), (None, None, None, "data")):
        x = kiln.shard(array, mesh, spec)
        np.testing.assert_array_equal(x.numpy(), array)
        np.testing.assert_array_equal(x.to("cpu:1").numpy(), array)
        np.testing.assert_array_equal(kiln.shard(x, THREE, ("data",)).numpy(), array)
    assert f"shape={shape}" in str(x)


def test_other_devices_compute(session):
    x = kiln.tensor([1.0, 2.0]).to("cpu:2")
    y = (x * x).sum()
    assert y.device == "cpu:2" and y.item() == 5
    assert (kiln.ones(2) + 1).to("cpu:1").tolist() == [2, 2]
    weight = kiln.tensor([3.0, 4.0], requires_grad=True)
    model = nn.Linear(2, 2).to("cpu:3")
    model(kiln.ones(1, 2)).sum().backward()
    assert model.weight.grad.tolist() == [[1, 1], [1, 1]]
    (x * weight).sum().backward()
    assert weight.grad.tolist() == [1, 2]
    with pytest.raises(kiln.InvalidArgument, match="no device cpu:9; the daemon has cpu:0, cpu:1"):
        kiln.ones(2).to("cpu:9")
    with pytest.raises(kiln.InvalidArgument, match="no device gpu:0"):
        kiln.shard(kiln.tensor([1.0, 2.0]), kiln.Mesh("data", ["cpu:0", "gpu:0"]))


def test_gradients_and_half_precision(session):
    mesh = kiln.Mesh("data", FOUR[:2])
    x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    weight = kiln.tensor(np.ones((4, 2), np.float32), requires_grad=True)
    kiln.shard(x, mesh, ("data",)).matmul(weight).tanh().sum().backward()
    expected = x.T @ (1 - np.tanh(x @ np.ones((4, 2), np.float32)) ** 2)
    np.testing.assert_allclose(weight.grad.numpy(), expected, rtol=1e-5)
    with kiln.autocast(kiln.bfloat16):
        product = kiln.shard(x, mesh, ("data",)) @ weight.detach()
    assert product.dtype is kiln.bfloat16
    np.testing.assert_allclose(product.float().numpy(), x.sum(1)[:, None] + 0 * product.numpy(),
                               rtol=0.02, atol=0.02)


def test_an_eager_step_is_that_of_one_device(session):
    def train(mesh):
        kiln.manual_seed(3)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        if mesh is not None:
            kiln.shard(model, mesh, "data")
        optimizer = kiln.optim.Adam(model.parameters(), lr=0.05)
        x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = (model(kiln.shard(x, mesh, ("data",)) if mesh else kiln.tensor(x)) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, model.state_dict()

    one, state = train(None)
    several, sharded = train(kiln.Mesh("data", FOUR[:2]))
    np.testing.assert_allclose(several, one, rtol=1e-5)
    for name, value in state.items():
        np.testing.assert_allclose(sharded[name].numpy(), value.numpy(), rtol=1e-4, atol=1e-6)


def test_state_is_saved_whole_and_loaded_in_parts(session, tmp_path):
    mesh = kiln.Mesh("data", FOUR)
    model = kiln.shard(nn.Linear(8, 4), mesh, "data")
    path = tmp_path / "model.safetensors"
    kiln.save(model.state_dict(), path)
    other = nn.Linear(8, 4)
    other.load_state_dict(kiln.load(path))
    np.testing.assert_array_equal(other.weight.numpy(), model.weight.numpy())
    model.load_state_dict({"weight": np.ones((4, 8), np.float32), "bias": kiln.zeros(4)})
    assert model.weight.device == tuple(FOUR) and model.weight.sum().item() == 32
    assert kiln.shard(np.ones((2, 8), np.float32), mesh).matmul(
        model.weight.T).tolist() == [[8.0] * 4] * 2


def test_a_detached_session_keeps_its_layout(four):
    mesh = kiln.Mesh("data", FOUR)
    array = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    connection = kiln.connect(four.address)
    x = kiln.shard(array, mesh, ("data",))
    connection.detach("mesh", 3600, {"x": x})
    attached = kiln.attach("mesh", four.address)
    try:
        x = attached["x"]
        np.testing.assert_array_equal(x.numpy(), array)
        assert x.device == tuple(FOUR)
        np.testing.assert_array_equal((x + 1).numpy(), array + 1)
    finally:
        attached["x"] = x = None
        kiln.default_connection().close()
        _connection._default = None


def test_random_numbers_are_those_of_one_device(session):
    mesh = kiln.Mesh("data", FOUR)

    def draw(place):
        kiln.manual_seed(5)

        @kiln.jit
        def noisy(x):
            return x + kiln.randn(8, 3)

        x = place(np.zeros((8, 3), np.float32))
        return np.stack([noisy(x).numpy() for _ in range(3)])

    np.testing.assert_allclose(
        draw(lambda x: kiln.shard(x, mesh, ("data",))), draw(kiln.tensor), rtol=1e-6)


def test_a_step_is_one_message(session):
    mesh = kiln.Mesh("data", FOUR[:2])
    weight = kiln.shard(kiln.ones(4, 2), mesh, ("data",))

    @kiln.jit
    def step(x):
        weight.assign(weight * 0.5 + x)
        return weight.sum()

    x = kiln.shard(np.ones((4, 2), np.float32), mesh, ("data",))
    step(x).item()
    with sent_operations(session) as sent:
        last = step(x)
    assert sent == ["run"]
    assert last.item() == 14
    (info,) = step.programs()
    assert info.name.endswith("step")


class Juggler:
    """Tensors with various placements, and their values in NumPy."""

    def __init__(self, seed):
        self.draws = np.random.default_rng(seed)
        # Half of the seeds use a size that the meshes divide.
        size = 4 + seed % 2
        self.homes = [kiln.Mesh("data", FOUR[: 2 + seed % 2]), GRID]
        arrays = [self.draws.normal(size=(size, size)).astype(np.float32) for _ in range(6)]
        self.pairs = [(kiln.tensor(array), array) for array in arrays]
        self.step = kiln.jit(self._step)
        self.refused = 0

    @staticmethod
    def _step(state, x, factor):
        result = state @ x
        state.assign(state * factor + x)
        return result, state + x

    def any(self):
        return self.draws.integers(len(self.pairs))

    def laid_out(self, tensor):
        if self.draws.random() < 0.3:
            return tensor.to(FOUR[self.draws.integers(4)])
        mesh = self.homes[self.draws.integers(2)]
        axes = self.draws.permutation([None, *mesh.axis_names])[:2]
        return kiln.shard(tensor, mesh, tuple(axes[:self.draws.integers(1, 3)]))

    def turn(self):
        """Does one random operation, which is rejected for tensors on two devices or meshes."""
        i, j, kind = self.any(), self.any(), self.draws.integers(6)
        (x, a), (y, b) = self.pairs[i], self.pairs[j]
        try:
            if kind == 0:
                self.pairs[i] = self.laid_out(x), a
            elif kind == 1:
                self.pairs[i] = x * 0.5 + y, a * np.float32(0.5) + b
            elif kind == 2:
                x.assign(y * 0.5)
                self._changed(x, b * np.float32(0.5))
            elif kind == 3 and i != j:
                product, total = self.step(x, y, kiln.tensor(np.float32(0.5)))
                np.testing.assert_allclose(product.numpy(), a @ b, rtol=1e-4, atol=1e-4)
                after = a * np.float32(0.5) + b
                self._changed(x, after)
                self.pairs[j] = total, after + b
            elif kind == 4:
                self.pairs[i] = [x.detach(), x.clone(), x.realize()][self.draws.integers(3)], a
            else:
                np.testing.assert_allclose(x.numpy(), a, rtol=1e-4, atol=1e-4)
        except kiln.InvalidArgument as error:
            assert "are used together" in error.message
            self.refused += 1

    def _changed(self, tensor, array):
        self.pairs = [(other, array if other is tensor else known)
                      for other, known in self.pairs]


@pytest.mark.filterwarnings("ignore:kiln.jit has traced")
@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_done_values_are_right(session, seed):
    juggler = Juggler(seed)
    for _ in range(60):
        juggler.turn()
    for tensor, array in juggler.pairs:
        np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-4, atol=1e-4)
    assert juggler.refused < 40
