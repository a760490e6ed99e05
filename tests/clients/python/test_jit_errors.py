"""kiln.jit: errors for what a traced function must not do. Needs no daemon."""

import array
import itertools
import queue
import random

import numpy as np
import pytest

import kiln


@pytest.mark.parametrize("read", [
    lambda t: t.item(), lambda t: t.numpy(), bool, float, lambda t: t.tolist(),
    lambda t: t.realize(), np.asarray,
])  # fmt: skip
def test_reading_a_value_inside_is_an_error_and_leaves_everything_as_it_was(stand_in, read):
    weight = kiln.ones(()).realize()
    handle = weight._node.buffer.handle

    @kiln.jit
    def f(x):
        weight.assign(weight + 1)
        read(x.sum())
        return x

    with pytest.raises(kiln.TraceError, match="value is read inside"):
        f(kiln.ones(3))
    assert weight._node.buffer.handle == handle
    assert (weight + 1).realize() is not None


def test_printing_inside_shows_that_there_is_no_value(stand_in, capsys):
    @kiln.jit
    def f(x):
        print(x)
        return x * 2

    f(kiln.ones(3))
    assert "lazy" in capsys.readouterr().out


def test_a_numpy_array_inside_is_an_error(stand_in):
    table = np.arange(3.0)

    @kiln.jit
    def f(x):
        return x + table

    with pytest.raises(kiln.TraceError, match="NumPy"):
        f(kiln.ones(3))


def test_literals_inside_are_constants(stand_in):
    @kiln.jit
    def f(x):
        return x - kiln.tensor([0.5, 0.25])

    f(kiln.ones(2))
    uploads = len(stand_in.uploads)
    f(kiln.ones(2))
    assert len(stand_in.uploads) == uploads


@pytest.mark.parametrize("draw", [random.random, lambda: float(np.random.rand())])
def test_pythons_random_numbers_inside_are_an_error(stand_in, draw):
    @kiln.jit
    def f(x):
        return x * draw()

    with pytest.raises(kiln.TraceError, match="random"):
        f(kiln.ones(2))


class Counter:
    def __init__(self):
        self.count = 0
        self.seen = []
        self.last = None


def _count(state, x):
    state.count += 1


def _append(state, x):
    state.seen.append(1)


def _keep(state, x):
    state.last = x * 2


@pytest.mark.parametrize(
    ("change", "place"), [(_count, "count"), (_append, "seen"), (_keep, "last")])
def test_changing_python_state_inside_is_an_error(stand_in, change, place):
    state = Counter()

    @kiln.jit
    def f(x):
        change(state, x)
        return x * 2

    with pytest.raises(kiln.TraceError, match=place):
        f(kiln.ones(2))


def test_a_tensor_that_escapes_cannot_be_used_outside(stand_in):
    escaped = queue.SimpleQueue()

    @kiln.jit
    def f(x):
        escaped.put(x * 2)
        return x

    f(kiln.ones(2))
    leaked = escaped.get()
    with pytest.raises(kiln.TraceError, match="return it"):
        leaked.numpy()
    with pytest.raises(kiln.TraceError, match="return it"):
        (leaked + 1).realize()


def test_a_tensor_out_of_watch_is_an_error(stand_in):
    box = itertools.chain([kiln.ones(2).realize()])

    @kiln.jit
    def f(x):
        return x + next(box)

    with pytest.raises(kiln.TraceError, match="cannot watch"):
        f(kiln.ones(2))


def test_other_return_values_are_an_error(stand_in):
    @kiln.jit
    def f(x):
        return object()

    with pytest.raises(kiln.TraceError, match="object"):
        f(kiln.ones(2))


def test_an_exception_inside_passes_and_leaves_no_trace(stand_in):
    state = kiln.ones(2).realize()

    @kiln.jit
    def f(x):
        state.assign(state * 2)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f(kiln.ones(2))
    assert state._node.buffer is not None
    (state + 1).numpy()


def from_generator():
    generator = np.random.default_rng(1)
    return lambda x: x * generator.random()


def from_random():
    generator = random.Random(1)
    return lambda x: x * generator.random()


def from_iterator():
    numbers = itertools.count(0.5)
    return lambda x: x + next(numbers)


def from_clock():
    clock = itertools.count()
    return lambda x: x * time_of(clock)


def time_of(clock):
    return float(next(clock))


def from_a_tensor_of_another_library():
    factor = array.array("d", [1.0])  # like other libraries' arrays, it has no visible attributes

    def f(x):
        return x * factor[0]

    def change():
        factor[0] = 2.0

    f.change = change
    return f


def from_shape():
    sizes = itertools.count(1)
    return lambda x: x.sum() + kiln.ones(next(sizes))


def from_list_of_numbers():
    generator = random.Random(1)
    return lambda x: x + kiln.tensor([generator.random(), 1.0])


def from_returned_number():
    clock = itertools.count()
    return lambda x: (x * 2, next(clock))


@pytest.mark.parametrize("make", [
    from_generator, from_random, from_iterator, from_clock, from_a_tensor_of_another_library,
    from_shape, from_list_of_numbers, from_returned_number])  # fmt: skip
def test_what_cannot_be_watched_is_an_error_at_the_second_call(stand_in, make):
    function = make()
    f = kiln.jit(function)
    f(kiln.ones(2))
    getattr(function, "change", lambda: None)()
    runs = len(stand_in.runs)
    for _ in range(2):
        where = r"second call: .*(test_jit_errors\.py:|returned).* argument"
        with pytest.raises(kiln.TraceError, match=where):
            f(kiln.ones(2))
    assert len(stand_in.runs) == runs


def test_a_function_that_reads_nothing_else_is_traced_twice_and_never_again(stand_in):
    calls = queue.SimpleQueue()

    @kiln.jit
    def f(x):
        calls.put(None)
        return x * 2 + kiln.tensor([0.5, 0.25])

    for _ in range(5):
        f(kiln.ones(2))
    assert calls.qsize() == 2
    assert f.traces == 1
