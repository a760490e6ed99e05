"""Variables in shapes: numbers that depend on them, and programs that handle all their values."""

import numpy as np
import pytest

import kiln
from kiln import nn
from kiln.variables import Dim
from kilnd_process import NO_PROBES, Kilnd

# Numbers.


def test_numbers_are_sums_of_products():
    n, m = kiln.Variable("n", 1, 8), kiln.Variable("m", 2, 4)
    assert n + 1 - n == 1 and isinstance(n - n, int)
    assert 2 * n - 1 == n + n - 1 and hash(2 * n - 1) == hash(n + n - 1)
    assert (n * m * 2) // (2 * m) == n
    assert (n - 1).low == 0 and (5 - n * m).low == -27
    assert repr(2 * n * m - 1) == "2*m*n - 1"
    assert n.bind(3) == n and n.bind(3) + 1 == n + 1
    assert (n.bind(3) * 2 + 1).at(n.bind(3).values) == 7


def test_comparisons_are_decided_by_the_bounds():
    n = kiln.Variable("n", 1, 8)
    assert n <= 8 and n > 0 and not n < 1 and 0 <= n - 1 < n
    with pytest.raises(kiln.InvalidArgument, match=r"whether n < 5 depends on n in \[1, 8\]"):
        assert n < 5
    with pytest.raises(kiln.InvalidArgument, match="n has no single value"):
        range(n)
    with pytest.raises(kiln.InvalidArgument, match="n // 2"):
        n // 2


@pytest.mark.parametrize("make, message", [
    (lambda n: kiln.Variable("x", 0, 3), "its bounds are 0 to 3"),
    (lambda n: kiln.Variable("", 1, 3), "must be a string"),
    (lambda n: n.bind(9), r'variable "n" is bound to 9, outside its bounds 1 to 8 \(test_var'),
    (lambda n: n.bind(3) + n.bind(4), 'variable "n" is bound to 3 and to 4 in one run'),
    (lambda n: kiln.zeros(2, 4)[:, :n], "must hold for all values of the variables"),
    (lambda n: kiln.zeros(2, 8)[:, :n:2], "a step of 2"),
    (lambda n: kiln.zeros(4)[n], "index n of dimension 0"),
    (lambda n: kiln.zeros(n) + kiln.zeros(8), "do not broadcast"),
    (lambda n: kiln.zeros(n, n).reshape(n), "cannot reshape"),
    (lambda n: kiln.zeros(n - 2), "may be negative"),
])
def test_mistakes_are_named(make, message):
    with pytest.raises((kiln.InvalidArgument, kiln.OutOfRange, kiln.InvalidIndex), match=message):
        make(kiln.Variable("n", 1, 8))


def test_shapes_follow():
    n = kiln.Variable("n", 1, 8)
    x = kiln.zeros(2, 8)[:, :n]
    assert x.shape == (2, n) and x.T.shape == (n, 2) and x.reshape(-1).shape == (2 * n,)
    assert (x @ kiln.zeros(n, 3)).shape == (2, 3)
    assert x[:, 1:].shape == (2, n - 1) and x[:, n - 1].shape == (2,) and x[:, -1].shape == (2,)
    assert kiln.concat([x, kiln.zeros(2, 3)], axis=1).shape == (2, n + 3)
    assert x.numel() == 2 * n and x.size() == (2, n) and x.size(1) == n
    assert isinstance(kiln.arange(n).shape[0], Dim)


# Programs.


@pytest.fixture
def counted():
    """A daemon that compiles only what the test has it compile; the test's tensors are there."""
    with Kilnd(threads=2, config=NO_PROBES) as daemon, kiln.connect(daemon.address):
        yield daemon


COUNTERS = ("kiln_compiles_total", "kiln_own_bindings_total")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_a_growing_cache_is_one_program(counted):
    heads, length, width = 3, 40, 8
    pos = kiln.Variable("pos", 1, length)
    keys = kiln.zeros(heads, length, width)
    values = kiln.zeros(heads, length, width)

    @kiln.jit
    def decode(query, key, value, pos):
        keys[:, pos - 1 : pos] = key
        values[:, pos - 1 : pos] = value
        scores = query @ keys[:, :pos].mT / width**0.5
        return scores.softmax(-1) @ values[:, :pos]

    rng = np.random.default_rng(0)
    steps = rng.standard_normal((length, 3, heads, 1, width)).astype(np.float32)
    before = None
    for i, (q, k, v) in enumerate(steps, 1):
        got = decode(kiln.tensor(q), kiln.tensor(k), kiln.tensor(v), pos.bind(i)).numpy()
        known_k = np.concatenate([step[1] for step in steps[:i]], 1)
        known_v = np.concatenate([step[2] for step in steps[:i]], 1)
        wanted = softmax(q @ known_k.transpose(0, 2, 1) / width**0.5) @ known_v
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)
        if i == 2:
            before = [counted.metric(name, absent=0) for name in COUNTERS]
    assert decode.traces == 1
    assert [counted.metric(name, absent=0) for name in COUNTERS] == before


def test_sequences_of_any_length_train_alike(counted):
    n = kiln.Variable("n", 1, 24)
    rng = np.random.default_rng(1)

    def make():
        kiln.manual_seed(3)
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    model, other = make(), make()
    optimizer = kiln.optim.SGD(model.parameters(), lr=0.1)
    other_optimizer = kiln.optim.SGD(other.parameters(), lr=0.1)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        y = model(x)
        weights = x.sum(-1, keepdim=True).softmax(1)
        loss = ((y * weights).sum() - y.mean()) ** 2 + y.var(correction=0)
        loss.backward()
        optimizer.step()
        return loss

    @kiln.jit
    def varying(x):
        return step(model, optimizer, x)

    lengths = [5, 24, 7, 2, 13, 24, 3, 11]
    compiles = None
    for i, length in enumerate(lengths):
        x = rng.standard_normal((2, length, 4)).astype(np.float32)
        got = varying(kiln.tensor(x).with_variable(1, n)).item()
        assert counted.metric("kiln_own_bindings_total", absent=0) == 0 or i > 0
        if i == 0:
            compiles = counted.metric("kiln_compiles_total", absent=0)
        assert counted.metric("kiln_compiles_total", absent=0) == compiles
        wanted = step(other, other_optimizer, kiln.tensor(x)).item()
        compiles = counted.metric("kiln_compiles_total", absent=0)
        assert got == pytest.approx(wanted, rel=1e-4, abs=1e-6)
    assert varying.traces == 1
    for mine, theirs in zip(model.parameters(), other.parameters()):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-6)


def test_results_have_the_true_shape(connection):
    n = kiln.Variable("n", 1, 6)

    @kiln.jit
    def both(x, n):
        return x + kiln.arange(n), x[:, :1], kiln.arange(2 * n), (x * n).sum()

    for length in (1, 4, 6):
        x = np.arange(3 * length, dtype=np.int64).reshape(3, length)
        bound = n.bind(length)
        whole, part, twice, total = both(kiln.tensor(x).with_variable(1, n), bound)
        np.testing.assert_array_equal(whole.numpy(), x + np.arange(length))
        assert whole.shape == (3, length) and twice.shape == (2 * length,)
        np.testing.assert_array_equal(part.numpy(), x[:, :1])
        np.testing.assert_array_equal(twice.numpy(), np.arange(2 * length))
        assert total.item() == (x * length).sum()
        # A result can be used further as a tensor of its own shape.
        np.testing.assert_array_equal((whole * 2).numpy(), 2 * (x + np.arange(length)))
    assert both.traces == 1


def test_without_jit(connection):
    n = kiln.Variable("n", 1, 6)
    rows = kiln.ones(3, 4).with_variable(1, n)
    assert rows[1].shape == (n,) and rows[1:2].tolist() == [[1.0] * 4]
    for length in (2, 5):
        x = kiln.arange(6.0)[: n.bind(length)]
        assert x.shape == (n,)
        np.testing.assert_array_equal((x * 2).numpy(), np.arange(length, dtype=np.float32) * 2)
        assert x.mean().item() == pytest.approx(np.arange(length).mean())
        assert x.flip(0).tolist() == list(np.arange(length, dtype=np.float32)[::-1])


def test_a_run_needs_one_value_for_each_variable(connection):
    n = kiln.Variable("n", 1, 6)
    with pytest.raises(kiln.InvalidArgument, match='variable "n" has no value in this run'):
        kiln.arange(n).numpy()
    x = kiln.zeros(2).with_variable(0, n)
    with pytest.raises(kiln.InvalidArgument, match="bound to 2 and to 3 in one run"):
        x + kiln.arange(n.bind(3))
    with pytest.raises(kiln.InvalidArgument, match="outside its bounds 1 to 6"):
        kiln.zeros(7).with_variable(0, n)
    other = kiln.Variable("n", 1, 7)
    with pytest.raises(kiln.InvalidArgument, match="two variables have one name"):
        (kiln.arange(n.bind(2)).sum() + kiln.arange(other.bind(2)).sum()).item()

    @kiln.jit
    def add(x, y):
        return x.sum() + y.sum()

    y = kiln.zeros(3).with_variable(0, n)
    with pytest.raises(kiln.InvalidArgument, match="bound to 2 and to 3 in one run"):
        add(x, y)


@pytest.mark.parametrize("layer", ["batch", "instance", "function"])
def test_running_statistics_of_batches_of_any_size(connection, layer):
    data = np.random.default_rng(0).standard_normal((5, 4, 6), np.float32)
    batch = kiln.Variable("batch", 2, 64)
    running = []
    for x in (kiln.tensor(data), kiln.tensor(data).with_variable(0, batch)):
        if layer == "function":
            mean, var = kiln.zeros(4), kiln.ones(4)
            kiln.nn.functional.batch_norm(x, mean, var, training=True).numpy()
        else:
            make = kiln.nn.BatchNorm1d if layer == "batch" else kiln.nn.InstanceNorm1d
            module = make(4, track_running_stats=True)
            module(x).numpy()
            mean, var = module.running_mean, module.running_var
        running.append((mean.numpy(), var.numpy()))
    for fixed, variable in zip(*running):
        np.testing.assert_allclose(variable, fixed, rtol=1e-6)
    if layer != "instance":
        expected = 0.9 + 0.1 * data.var((0, 2), ddof=1)
        np.testing.assert_allclose(running[0][1], expected, rtol=1e-6)


@pytest.mark.parametrize("size", [4, 9])
@pytest.mark.parametrize("name, call, expected", [
    ("covariances", lambda x: kiln.cov(x.mT, correction=0.5),
     lambda x: np.cov(x.T, ddof=0) * len(x) / (len(x) - 0.5)),
    ("divergence", lambda x: nn.functional.kl_div(x, x.exp() * 2, reduction="batchmean"),
     lambda x: (2 * np.exp(x) * np.log(2)).sum() / len(x)),
    ("rolled on", lambda x: x.roll(3, 0), lambda x: np.roll(x, 3, 0)),
    ("rolled back", lambda x: x.roll((-2, 1), (0, 1)), lambda x: np.roll(x, (-2, 1), (0, 1))),
    ("not rolled", lambda x: x.roll(0, 0), lambda x: x),
])
def test_sizes_take_part_in_what_is_computed(connection, name, call, expected, size):
    n = kiln.Variable("n", 4, 9)
    x = np.random.default_rng(size).standard_normal((9, 3), np.float32)
    computed = kiln.jit(lambda whole, n: call(whole[:n]))(kiln.tensor(x), n.bind(size))
    np.testing.assert_allclose(computed.numpy(), expected(x[:size]), rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_roll_that_may_go_round_is_refused():
    n = kiln.Variable("n", 4, 9)
    for amount in (4, -4, 11):
        with pytest.raises(kiln.InvalidArgument, match=f"roll by {amount} along .* roll by less than 4"):
            kiln.zeros(n, 2).roll(amount, 0)
