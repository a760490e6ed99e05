"""Sizes that an axis of the mesh does not divide: results equal those of one device."""

import signal
import subprocess

import numpy as np
import pytest

import kiln
from kiln import nn
from kiln._session import connection as _connection
from eventually import GIVE_UP_SECONDS
from kilnd_process import Kilnd, build_folder
from meshes import FOUR, GRID, THREE

UNEVEN = [(THREE, (10, 7)), (THREE, (1, 4)), (THREE, (2, 5, 8)), (GRID, (7, 5)), (GRID, (3, 1, 9)),
          (GRID, (1, 1))]  # fmt: skip


def specs_of(mesh, rank):
    """Yields every way to split the first dimension, the last, or both."""
    axes = mesh.axis_names
    yield from [(axis,) for axis in axes]
    yield from [(None,) * (rank - 1) + (axis,) for axis in axes]
    if len(axes) == 2:
        yield from [("data",) + (None,) * (rank - 2) + ("model",), (("model", "data"),),
                    (None,) * (rank - 1) + (("data", "model"),)]


def numbers(shape, dtype=np.float32):
    return np.random.default_rng(0).integers(-40, 40, shape).astype(dtype)


@pytest.mark.parametrize("mesh, shape", UNEVEN)
def test_values_go_there_and_back(session, mesh, shape):
    for dtype in (np.float32, np.int8, np.bool_, np.int64):
        array = numbers(shape, dtype)
        for spec in specs_of(mesh, len(shape)):
            x = kiln.shard(array, mesh, spec)
            np.testing.assert_array_equal(x.numpy(), array)
            moved = kiln.shard(kiln.tensor(array).realize(), mesh, spec)
            np.testing.assert_array_equal(moved.numpy(), array)
            np.testing.assert_array_equal(x.to("cpu:3").numpy(), array)
            for home in (kiln.Mesh("rows", FOUR), THREE, GRID):
                again = kiln.shard(x, home, (home.axis_names[-1],))
                np.testing.assert_array_equal(again.numpy(), array)
                np.testing.assert_array_equal(kiln.shard(again, mesh, spec).numpy(), array)
            lazy = kiln.shard(kiln.tensor(array) == 3, mesh, spec)
            np.testing.assert_array_equal(lazy.numpy(), array == 3)
            assert x.tolist() == array.tolist()


def leave_garbage(mesh, spec, shape):
    """Fills memory of the size of such a tensor's parts with garbage, and frees it."""
    padded = list(shape)
    for dim, axes in enumerate(spec):
        axes = (axes,) if isinstance(axes, str) else axes or ()
        parts = int(np.prod([mesh.axis_size(axis) for axis in axes]))
        padded[dim] = -(-shape[dim] // parts) * parts
    garbage = [kiln.shard(np.full(padded, value, np.float32), mesh, spec).realize()
               for value in (np.nan, np.inf, -1e30, np.nan)]
    kiln.default_connection().synchronize()
    del garbage
    kiln.default_connection().synchronize()


@pytest.mark.parametrize("mesh, shape", UNEVEN)
def test_what_is_made_of_them_is_right(session, mesh, shape):
    """Sums, extremes and counts ignore padding, whatever it contains."""
    array = numbers(shape)
    made = {
        "affine": (lambda x: x * 2 + 1, array * 2 + 1),
        "sum": (lambda x: x.sum(), array.sum()),
        "sum(0)": (lambda x: x.sum(0), array.sum(0)),
        "mean(-1)": (lambda x: x.mean(-1), array.mean(-1)),
        "max": (lambda x: x.max(), array.max()),
        "min(0)": (lambda x: x.min(0).values, array.min(0)),
        "prod": (lambda x: (x / 40).prod(-1), (array / 40).prod(-1)),
        "argmax": (lambda x: x.argmax(-1), array.argmax(-1)),
        "cumsum": (lambda x: x.cumsum(0), array.cumsum(0)),
        "sort": (lambda x: x.sort(-1).values, np.sort(array, -1)),
        "flip": (lambda x: x.flip(0), np.flip(array, 0)),
        "flat": (lambda x: x.flatten() + 1, array.ravel() + 1),
        "slice": (lambda x: x[..., -1], array[..., -1]),
        "product": (lambda x: x.flatten(0, -2) @ x.flatten(0, -2).T,
                    array.reshape(-1, shape[-1]) @ array.reshape(-1, shape[-1]).T),
        "square": (lambda x: x.flatten(0, -2).T @ x.flatten(0, -2),
                   array.reshape(-1, shape[-1]).T @ array.reshape(-1, shape[-1])),
        "recip": (lambda x: (1 / (x * 0 + 1)).sum(), array.size),
        "norm": (lambda x: ((x - x.mean()) ** 2).mean(), array.var()),
    }  # fmt: skip
    for spec in specs_of(mesh, len(shape)):
        leave_garbage(mesh, spec, shape)
        x = kiln.shard(array, mesh, spec)
        for name, (of, expected) in made.items():
            np.testing.assert_allclose(of(x).numpy(), expected, rtol=1e-5, atol=1e-5,
                                       err_msg=f"{name} of {shape} split by {spec}")
        kept = kiln.shard(x * 3, mesh, spec)
        np.testing.assert_array_equal(kept.numpy(), array * 3)
        softmax = np.exp(array - array.max(-1, keepdims=True))
        np.testing.assert_allclose(x.softmax(-1).numpy(),
                                   softmax / softmax.sum(-1, keepdims=True), rtol=1e-5, atol=1e-7)


def test_state_is_updated_in_place(session):
    array = numbers((10, 7))
    x = kiln.shard(array, THREE, ("data",))
    step = kiln.jit(lambda y: x.assign(x * 0.5 + y))
    for i in range(4):
        step(kiln.tensor(np.float32(i)))
        array = array * 0.5 + i
    np.testing.assert_array_equal(x.numpy(), array)
    x[9, 6] = 7
    array[9, 6] = 7
    np.testing.assert_array_equal(x.numpy(), array)
    assert x.device == THREE.devices


def test_devices_of_two_kinds_have_them(mixed):
    connection = kiln.connect(mixed.address)
    try:
        array = np.arange(35, dtype=np.float32).reshape(7, 5)
        for names in (["cpu:0", "opencl:0"], ["opencl:0", "cpu:0"]):
            mesh = kiln.Mesh("data", names)
            for spec in (("data",), (None, "data")):
                kiln.shard(np.full((8, 6), np.nan, np.float32), mesh, spec).numpy()
                x = kiln.shard(array, mesh, spec)
                np.testing.assert_array_equal(x.numpy(), array)
                np.testing.assert_array_equal(x.to("opencl:0").numpy(), array)
                np.testing.assert_array_equal(x.sum(0).numpy(), array.sum(0))
                np.testing.assert_array_equal(x.sum(1).numpy(), array.sum(1))
                kept = kiln.shard(x * 2, mesh, (None, "data"))
                np.testing.assert_array_equal((kept.T @ x).numpy(), 2 * array.T @ array)
    finally:
        x = kept = None
        _connection._default = None
        connection.close()


def network():
    """Returns a network with widths that three devices do not divide."""
    return nn.Sequential(nn.Linear(13, 20), nn.LayerNorm(20), nn.GELU(), nn.Linear(20, 11),
                         nn.Tanh(), nn.Linear(11, 5))  # fmt: skip


SPLIT = {"0.*": ("model",), "3.weight": (None, "model"), "5.weight": ("model",)}


def train(mode, steps=50):
    """Returns the losses with a batch of 10 on three devices, or on one; and the weights."""
    kiln.manual_seed(0)
    model = network()
    mesh, spec = None, None
    if mode == "tensor":
        mesh = kiln.Mesh("model", FOUR[:3])
        kiln.shard(model, mesh, SPLIT)
    elif mode == "both":
        mesh, spec = GRID, ("data",)
        kiln.shard(model, mesh, SPLIT)
    elif mode == "zero3":
        mesh, spec = THREE, ("data",)
        kiln.shard(model, mesh, lambda name, tensor: ("data",))
    elif mode != "one":
        mesh, spec = THREE, ("data",)
        kiln.shard(model, mesh)
    optimizer = kiln.optim.Adam(model.parameters(), lr=1e-2)
    if mode == "zero2":
        kiln.shard(optimizer, mesh, lambda name, tensor: ("data",) if tensor.ndim else None)

    @kiln.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    draws = np.random.default_rng(1)
    weights = draws.normal(size=(13, 5))
    losses = []
    for _ in range(steps):
        x = draws.normal(size=(10, 13)).astype(np.float32)
        y = (x @ weights).argmax(1)
        batch = (kiln.tensor(x), kiln.tensor(y)) if mesh is None else kiln.shard((x, y), mesh, spec)
        losses.append(step(*batch))
    return np.array([loss.item() for loss in losses]), model, step


@pytest.fixture(scope="module")
def on_one(four):
    connection = kiln.connect(four.address)
    losses, model, _ = train("one")
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    _connection._default = None
    connection.close()
    return losses, weights


@pytest.mark.parametrize("mode", ["data", "tensor", "both", "zero2", "zero3"])
def test_training_is_that_of_one_device(session, on_one, mode):
    losses, model, step = train(mode)
    one, weights = on_one
    assert one[-1] < 0.7 * one[0]
    np.testing.assert_allclose(losses, one, rtol=1e-4)
    for name, value in model.state_dict().items():
        np.testing.assert_allclose(value.numpy(), weights[name], rtol=1e-2, atol=1e-3, err_msg=name)
    assert step.traces == 1


def test_kiln_explain_shows_padding(session, four):
    x = kiln.shard(np.ones((10, 7), np.float32), THREE, ("data",))

    @kiln.jit
    def summed(x):
        return kiln.shard(x * 2, THREE, (None, "data")), x.sum()

    summed(x)[1].item()
    (program,) = summed.programs()
    said = subprocess.run(
        [build_folder() / "clients" / "cli" / "kiln", "explain", program.digest],
        env=four.environment(), capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert said.returncode == 0, said.stderr
    assert "input 0 float32[10,7] padded to float32[12,7]" in said.stdout, said.stdout
    assert "output 0 float32[10,7] padded to float32[10,9]" in said.stdout, said.stdout


def test_they_survive_restarts():
    """In a session, in a detached session, and after a kill."""
    array = numbers((10, 7))
    with Kilnd(threads=2, flags=["--cpu_devices=3"]) as daemon:
        connection = kiln.connect(daemon.address, snapshot_seconds=3600)
        try:
            x = kiln.shard(array, THREE, ("data",))
            y = kiln.shard(kiln.tensor(array).realize(), THREE, (None, "data"))
            z = kiln.shard(x * 2, THREE, ("data",)).realize()
            step = kiln.jit(lambda: x.assign(x + 1))
            for how in ("kept", "killed", "drained"):
                step()
                array = array + 1
                kiln.realize(x)
                kiln.default_connection().synchronize()
                if how == "killed":
                    daemon.process.kill()
                    daemon.process.wait()
                elif how == "drained":
                    said = subprocess.run(
                        [build_folder() / "clients" / "cli" / "kiln", "drain"],
                        env=daemon.environment(), capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
                    assert said.returncode == 0, said.stderr
                    assert daemon.process.wait(timeout=GIVE_UP_SECONDS) == 0
                else:
                    assert daemon.stop(signal.SIGTERM) == 0
                daemon.start()
                np.testing.assert_array_equal(x.numpy(), array)
                np.testing.assert_array_equal(y.numpy(), numbers((10, 7)))
                np.testing.assert_array_equal(z.numpy(), numbers((10, 7)) * 2)
                np.testing.assert_array_equal((x - y).sum(0).numpy(),
                                              (array - numbers((10, 7))).sum(0))
            connection.detach("uneven", 3600, {"x": x})
            attached = kiln.attach("uneven", daemon.address)
            np.testing.assert_array_equal(attached["x"].numpy(), array)
            np.testing.assert_array_equal((attached["x"] * 2).sum(1).numpy(), (array * 2).sum(1))
            assert attached["x"].device == THREE.devices
        finally:
            attached = x = y = z = None
            kiln.default_connection().close()
            _connection._default = None
