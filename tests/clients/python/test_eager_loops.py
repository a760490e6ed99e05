"""Loops outside of kiln.jit: numbers and sizes that change, and state that is carried, compile no program each time."""

import warnings

import numpy as np
import pytest

import kiln
from kilnd_process import NO_PROBES, Kilnd

RANDOM = np.random.default_rng(0)
TIMES = 100


@pytest.fixture(scope="module")
def kilnd():
    """A daemon that compiles nothing of its own."""
    with Kilnd(threads=2, config=NO_PROBES) as daemon:
        yield daemon


@pytest.fixture
def compiled(kilnd, connection):
    """How many programs the daemon has compiled since the test began."""
    before = kilnd.metric("kiln_compiles_total", absent=0)

    def count():
        connection.synchronize()
        return kilnd.metric("kiln_compiles_total", absent=0) - before

    return count


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def scalar_factors():
    x = normal(61)
    w = kiln.tensor(x)
    return lambda i: ((w * (1 / (i + 2))).sum(), (x * np.float32(1 / (i + 2))).sum())


def several_numbers():
    x = normal(62)
    w = kiln.tensor(x)
    return lambda i: (((w * i + 3) / (i + 1) - i).sum(),
                      ((x * i + 3) / np.float32(i + 1) - i).sum())


def numbers_that_meet():
    """Numbers that are equal in some iterations."""
    x = normal(63)
    w = kiln.tensor(x)
    return lambda i: ((w * (i % 7) + w * (i % 5)).sum(), (x * (i % 7) + x * (i % 5)).sum())


def slice_begins():
    x = normal(105)
    w = kiln.tensor(x)
    return lambda i: ((w[i : i + 5] * 2).sum(), (x[i : i + 5] * 2).sum())


def slice_begins_of_what_is_lazy():
    x = normal(106)
    w = kiln.tensor(x)
    return lambda i: ((w * 3)[i : i + 5].sum(), (x * 3)[i : i + 5].sum())


def slices_of_two_dimensions():
    x = normal(110, 107)
    w = kiln.tensor(x)
    return lambda i: ((w[i : i + 3, 100 - i : 104 - i] * 2).sum(),
                      (x[i : i + 3, 100 - i : 104 - i] * 2).sum())


def integer_indices():
    x = normal(108)
    y = kiln.tensor(x)
    return lambda i: (y[i], x[i])


def negative_indices():
    x = normal(109, 3)
    y = kiln.tensor(x)
    return lambda i: (y[-1 - i].sum(), x[-1 - i].sum())


def iteration():
    x = normal(TIMES)
    elements = iter(kiln.tensor(x))
    return lambda i: (next(elements), x[i])


def iteration_of_what_is_lazy():
    x = normal(TIMES)
    elements = iter(kiln.tensor(x) * 2)
    return lambda i: (next(elements), x[i] * 2)


def a_growing_cat():
    state = {"kiln": kiln.tensor(normal(3)), "numpy": None}
    state["numpy"] = state["kiln"].numpy()

    def step(i):
        more = normal(1)
        state["kiln"] = kiln.cat([state["kiln"], kiln.tensor(more)])
        state["numpy"] = np.concatenate([state["numpy"], more])
        return state["kiln"].sum(), state["numpy"].sum()

    return step


def batches_of_varying_length():
    x, y = normal(TIMES + 2, 8), normal(8, 3)
    w = kiln.tensor(y)
    lengths = RANDOM.permutation(TIMES) + 2
    return lambda i: ((kiln.tensor(x[: lengths[i]]) @ w).square().mean(),
                      ((x[: lengths[i]] @ y) ** 2).mean())


def prefixes():
    x = normal(TIMES + 4)
    w = kiln.tensor(x)
    return lambda i: (w[: i + 2].sum(), x[: i + 2].sum())


def assigned_elements():
    x = normal(TIMES)
    w = kiln.tensor(x)

    def step(i):
        w[i] = x[i] = i + 0.5
        return w.sum(), x.sum()

    return step


def assigned_slices():
    x = normal(TIMES + 3, 5)
    w = kiln.tensor(x)

    def step(i):
        w[i : i + 3, 1:] = i
        x[i : i + 3, 1:] = i
        return w.sum(), x.sum()

    return step


def filling():
    w = kiln.tensor(normal(64))

    def step(i):
        w.fill_(i / 4)
        return (w + 1).sum(), np.float32(64 * (i / 4 + 1))

    return step


def full_tensors():
    return lambda i: ((kiln.full((65,), i / 4) + 1).sum(), np.float32(65 * (i / 4 + 1)))


def chosen_by_where():
    x = normal(66)
    w = kiln.tensor(x)
    return lambda i: (kiln.where(w > i / 100, w, i).sum(), np.where(x > i / 100, x, i).sum())


def clamped():
    x = normal(67) * 60
    w = kiln.tensor(x)
    return lambda i: (w.clamp(-i, i).sum(), np.clip(x, -i, i).sum())


def learning_rates():
    w = kiln.nn.Parameter(kiln.tensor(normal(68)))
    state = w.numpy()
    optimizer = kiln.optim.SGD([w], lr=1.0)

    def step(i):
        nonlocal state
        optimizer.lr = 1 / (i + 3)
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        optimizer.step()
        before, state = state, state - np.float32(1 / (i + 3)) * (state + state)
        return loss, (before * before).sum()

    return step


def learning_rates_by_hand():
    w = kiln.tensor(normal(69)).requires_grad_()
    state = w.numpy()

    def step(i):
        nonlocal state
        w.grad = None
        loss = (w * w).sum()
        loss.backward()
        with kiln.no_grad():
            w.sub_(w.grad * (1 / (i + 3)))
        before, state = state, state - np.float32(1 / (i + 3)) * (state + state)
        return loss, (before * before).sum()

    return step


LOOPS = [scalar_factors, several_numbers, numbers_that_meet, slice_begins, slice_begins_of_what_is_lazy,
         slices_of_two_dimensions, integer_indices, negative_indices, iteration, iteration_of_what_is_lazy,
         a_growing_cat, batches_of_varying_length, prefixes, assigned_elements, assigned_slices, filling,
         full_tensors, chosen_by_where, clamped, learning_rates, learning_rates_by_hand]  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_a_loop_compiles_two_programs(loop, compiled):
    step = loop()
    for i in range(TIMES):
        got, wanted = step(i)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-4, atol=1e-4, err_msg=str(i))
    assert compiled() <= 2
