"""Updates that are written over their inputs: values stay what they are without that."""

import random
import signal
import threading

import numpy as np
import pytest

import kiln

from kilnd_process import Kilnd

SIZE = 4096


@pytest.fixture(scope="module")
def kilnd():
    with Kilnd(threads=2, flags=["--log_level=debug"]) as kilnd:
        yield kilnd


@pytest.fixture
def connection(kilnd):
    with kiln.connect(kilnd.address) as connection:
        yield connection


def in_place(kilnd, act):
    """Returns the number of results that each run of act() wrote over an input."""
    before = len(kilnd.log.read_text(errors="replace"))
    act()
    lines = kilnd.log.read_text(errors="replace")[before:].splitlines()
    fields = [dict(field.partition("=")[::2] for field in line.split()) for line in lines if "event=run_started" in line]
    return [int(line["in_place"]) for line in fields if not line["run"].startswith("health")]


def adam_step():
    """Returns a step of Adam as a function of its state, jitted."""

    @kiln.jit
    def step(weights, first, second, x):
        gradient = (x @ weights - x).T @ x
        first.assign(first * 0.9 + gradient * 0.1)
        second.assign(second * 0.999 + gradient * gradient * 0.001)
        weights.assign(weights - first / ((second + 1e-6) ** 0.5) * 0.01)
        return (x @ weights).sum()

    return step


def state(seed=0):
    numbers = np.random.default_rng(seed)
    return [kiln.tensor(numbers.random((64, 64), dtype=np.float32)) for _ in range(3)]


def run_steps(address, steps=5):
    """Returns the bits of losses and state."""
    with kiln.connect(address):
        step, values = adam_step(), state()
        x = kiln.tensor(np.random.default_rng(9).random((32, 64), dtype=np.float32))
        losses = [step(*values, x).item() for _ in range(steps)]
        return np.array(losses).tobytes(), [value.numpy().tobytes() for value in values]


def test_the_bits_are_those_without_it(kilnd):
    with Kilnd(threads=2, flags=["--disable_passes=update_in_place"]) as plain:
        expected = run_steps(plain.address)
    assert run_steps(kilnd.address) == expected


def test_a_steps_state_is_written_in_place(kilnd, connection):
    step, values = adam_step(), state()
    x = kiln.tensor(np.ones((32, 64), dtype=np.float32))
    step(*values, x).item()
    assert in_place(kilnd, lambda: step(*values, x).item()) == [3]


def test_steps_sent_ahead_are_written_in_place(kilnd, connection):
    step, values = adam_step(), state()
    x = kiln.tensor(np.ones((32, 64), dtype=np.float32))
    step(*values, x).item()

    def ahead():
        losses = [step(*values, x) for _ in range(20)]
        losses[-1].item()

    # A run that is just ending still has its results.
    assert sum(in_place(kilnd, ahead)) >= 3


def test_another_handle_keeps_the_old_value(kilnd, connection):
    @kiln.jit
    def count(value):
        value.assign(value + 1)

    value = kiln.tensor(np.zeros(SIZE, dtype=np.float32))
    count(value)
    kept = []
    for _ in range(5):
        kept.append(value.detach())
        count(value)
    assert [tensor.numpy()[-1] for tensor in kept] == [1, 2, 3, 4, 5]
    assert value.numpy()[0] == 6


def test_a_value_given_twice_is_read_as_it_was(kilnd, connection):
    @kiln.jit
    def add(value, other):
        value.assign(value + other)
        return other.flip(0) * 1

    value = kiln.tensor(np.arange(SIZE, dtype=np.float32))
    for _ in range(3):
        before = value.numpy()
        same = value.detach()
        reversed_ = add(value, same)
        assert np.array_equal(reversed_.numpy(), before[::-1])
        assert np.array_equal(value.numpy(), 2 * before)


@pytest.mark.parametrize("shifted", [
    lambda value: value.flip(0),
    lambda value: kiln.cat([value[1:], value[:1]]),
    lambda value: value - value[0],
    lambda value: value - value.max(),
    lambda value: value.reshape(64, 64).T.reshape(SIZE),
    lambda value: value.cumsum(0),
])  # fmt: skip
def test_values_made_of_other_elements_are_not(kilnd, connection, shifted):
    @kiln.jit
    def change(value):
        value.assign(shifted(value) + 1)

    value = kiln.tensor(np.random.default_rng(1).random(SIZE, dtype=np.float32))
    for _ in range(3):
        expected = (shifted(kiln.tensor(value.numpy())) + 1).numpy()
        assert in_place(kilnd, lambda: (change(value), value.numpy())) == [0]
        assert np.array_equal(value.numpy(), expected)


def test_values_that_are_exchanged(kilnd, connection):
    @kiln.jit
    def exchange(a, b):
        old = a * 1
        a.assign(b + 1)
        b.assign(old + 1)

    a, b = kiln.tensor(np.zeros(SIZE, np.float32)), kiln.tensor(np.full(SIZE, 5, np.float32))
    for i in range(1, 6):
        exchange(a, b)
        one, other = (5 + i, i) if i % 2 else (i, 5 + i)
        assert a.numpy()[7] == one and b.numpy()[7] == other


def test_a_read_that_was_sent_before_gets_the_old_value(kilnd, connection):
    @kiln.jit
    def count(value):
        value.assign(value + 1)

    value = kiln.tensor(np.zeros(1 << 20, dtype=np.float32))
    count(value)
    results = []

    def read():
        for _ in range(50):
            array = value.numpy()
            results.append((array.min(), array.max()))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(200):
        count(value)
    reader.join()
    assert all(low == high for low, high in results)
    assert value.numpy()[0] == 201


def random_program(numbers):
    """Returns a function of four tensors that changes some of them."""
    choices = [
        lambda a, b: a + b, lambda a, b: a * b - a, lambda a, b: a.flip(0) + b, lambda a, b: a.maximum(b),
        lambda a, b: a - b.max(), lambda a, b: a.T + b, lambda a, b: (a @ b) * 0.01, lambda a, b: a.tanh(),
        lambda a, b: kiln.where(a > b, a, b * 0.5), lambda a, b: a.sum(0, keepdim=True) * 0.01 + b,
    ]  # fmt: skip
    steps = [(numbers.choice(choices), numbers.randrange(8), numbers.randrange(8)) for _ in range(8)]
    changed = numbers.sample(range(4), numbers.randrange(1, 5))
    sources = [(numbers.randrange(4, 12), numbers.random() < 0.6) for _ in changed]

    def compute(*tensors):
        values = list(tensors)
        for op, a, b in steps:
            values.append(op(values[a % len(values)], values[b % len(values)]))
        return values

    def change(*tensors):
        values = compute(*tensors)
        for place, (source, moves) in zip(changed, sources):
            tensors[place].assign(values[place] * 0.5 + values[source] if moves else values[source])
        return values[-1].sum()

    return change


def test_random_programs_compute_the_same(kilnd):
    def run(address):
        results = []
        with kiln.connect(address):
            for seed in range(40):
                numbers = random.Random(seed)
                step = kiln.jit(random_program(numbers))
                arrays = np.random.default_rng(seed)
                tensors = [kiln.tensor(arrays.random((24, 24), dtype=np.float32) - 0.5) for _ in range(4)]
                results += [step(*tensors).numpy().tobytes() for _ in range(3)]
                results += [tensor.numpy().tobytes() for tensor in tensors]
        return results

    with Kilnd(threads=2, flags=["--disable_passes=update_in_place"]) as plain:
        expected = run(plain.address)
    results = []
    counts = in_place(kilnd, lambda: results.extend(run(kilnd.address)))
    assert results == expected
    assert sum(count > 0 for count in counts) > 20


def test_a_daemon_that_stops_repeats_no_step():
    """Runs that have begun to write over their inputs are not done again, all others are."""

    @kiln.jit
    def step(values, x):
        for _ in range(2):
            x = (x @ x) * 1e-3
        for value in values:
            value.assign(value + 1 + x[0, 0] * 0)

    numbers = random.Random(3)
    with Kilnd(threads=2) as daemon, kiln.connect(daemon.address):
        values = [kiln.tensor(np.zeros(1 << 18, dtype=np.float32)) for _ in range(8)]
        x = kiln.tensor(np.eye(256, dtype=np.float32))
        sent = 0
        for _ in range(6):
            for _ in range(numbers.randrange(1, 60)):
                step(values, x)
                sent += 1
            for _ in range(numbers.randrange(0, 100_000)):
                pass
            assert daemon.stop(signal.SIGTERM) == 0
            daemon.start()
            arrays = [value.numpy() for value in values]
            assert all(array.min() == array.max() == sent for array in arrays)


def test_a_cancel_leaves_the_old_or_the_new_state(kilnd, connection):
    """After each of a thousand cancels, at random moments, all values belong to one step."""

    @kiln.jit
    def step(values, x):
        for _ in range(2):
            x = (x @ x) * 1e-3
        for value in values:
            value.assign(value + 1 + x[0, 0] * 0)
        return x.sum()

    values = [kiln.tensor(np.zeros(1 << 15, dtype=np.float32)) for _ in range(8)]
    x = kiln.tensor(np.eye(256, dtype=np.float32))
    step(values, x).item()
    numbers = random.Random(5)
    was, cancelled, whole = 1, 0, 0
    for _ in range(1000):
        sent = numbers.randrange(1, 4)
        first = step(values, x)
        for _ in range(1, sent):
            step(values, x)
        if numbers.randrange(4) == 0:
            first.item()
        for _ in range(numbers.randrange(0, 4000)):
            pass
        connection.cancel()
        arrays = [value.numpy() for value in values]
        now = int(arrays[0][0])
        assert all(array.min() == array.max() == now for array in arrays)
        assert was <= now <= was + sent
        cancelled += now < was + sent
        whole += now > was
        was = now
    assert cancelled > 0 and whole > 0
    step(values, x).item()
    assert in_place(kilnd, lambda: step(values, x).item()) == [8]
