"""Loops outside of kiln.jit do not compile for each new number or size, or with carried state."""

import sys
import threading
import warnings
from collections import OrderedDict

import numpy as np
import pytest

import kiln
from kiln._graph import compiles, lifting, plans
from kilnd_process import NO_PROBES, Kilnd
from sent_operations import sent_operations

RANDOM = np.random.default_rng(0)
TIMES = 100


@pytest.fixture(scope="module")
def kilnd():
    """A daemon that compiles nothing on its own."""
    with Kilnd(threads=2, config=NO_PROBES) as daemon:
        yield daemon


@pytest.fixture
def compiled(kilnd, connection):
    """Returns a function that counts the programs compiled since the test began."""
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


def gradient_of(function, x):
    y = x.detach().requires_grad_()
    (function(y) * (y.detach() + 1)).sum().backward()
    return y.grad


def sorted_gradient(x, axis):
    """The gradient of the sum of sorted(x) * (x + 1)."""
    places = np.argsort(np.argsort(x, axis, kind="stable"), axis)
    return np.take_along_axis(x + 1, places, axis)


def places_found(x, axis):
    edges = np.linspace(-1, 1, 7, dtype=np.float32)
    found = kiln.searchsorted(x.flatten().sort()[0], kiln.tensor(edges))
    return found, np.searchsorted(np.sort(x.numpy(), None), edges)


# The results of kiln and of NumPy, of a tensor along an axis whose length changes.
ALONG = {
    "sort": lambda x, axis: (x.sort(axis)[0], np.sort(x.numpy(), axis)),
    "sort descending": lambda x, axis: (
        x.sort(axis, descending=True)[1], np.argsort(-x.numpy(), axis, kind="stable")),
    "argsort of equal ones": lambda x, axis: (
        (x * 2).long().argsort(axis), np.argsort((x.numpy() * 2).astype(int), axis, kind="stable")),
    "sort of doubles": lambda x, axis: (x.double().sort(axis)[0], np.sort(x.numpy().astype(float), axis)),
    "sort with nan": lambda x, axis: (x.sqrt().sort(axis)[0], np.sort(np.sqrt(x.numpy()), axis)),
    "sort's gradient": lambda x, axis: (
        gradient_of(lambda y: y.sort(axis)[0], x), sorted_gradient(x.numpy(), axis)),
    "topk": lambda x, axis: (x.topk(2, axis)[0], np.flip(np.sort(x.numpy(), axis), axis).take([0, 1], axis)),
    "kthvalue": lambda x, axis: (x.kthvalue(2, axis)[0], np.sort(x.numpy(), axis).take(1, axis)),
    "median": lambda x, axis: (
        x.median(axis)[0], np.sort(x.numpy(), axis).take((x.shape[axis] - 1) // 2, axis)),
    "quantile": lambda x, axis: (
        kiln.quantile(x, 0.3, axis=axis), np.quantile(x.numpy(), np.float32(0.3), axis)),
    "searchsorted": places_found,
    "cumsum": lambda x, axis: (x.cumsum(axis), np.cumsum(x.numpy(), axis)),
    "cumsum of integers": lambda x, axis: (
        (x * 9).long().cumsum(axis), np.cumsum((x.numpy() * 9).astype(int), axis)),
    "cumsum's gradient": lambda x, axis: (
        gradient_of(lambda y: y.cumsum(axis), x),
        np.flip(np.cumsum(np.flip(x.numpy() + 1, axis), axis), axis)),
    "cumprod": lambda x, axis: (x.tanh().exp().cumprod(axis), np.cumprod(np.exp(np.tanh(x.numpy())), axis)),
    "cummax": lambda x, axis: (x.cummax(axis)[0], np.maximum.accumulate(x.numpy(), axis)),
    "cummin": lambda x, axis: (x.cummin(axis)[0], np.minimum.accumulate(x.numpy(), axis)),
    "logcumsumexp": lambda x, axis: (x.logcumsumexp(axis), np.logaddexp.accumulate(x.numpy(), axis)),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_forms_that_depend_on_a_length(name, axis, compiled):
    """How many rounds a sort has, or how many blocks a cumulative sum, follows from the length."""
    for length in RANDOM.permutation(TIMES) + 2:
        x = normal(*((length, 3) if axis == 0 else (3, length)))
        got, wanted = ALONG[name](kiln.tensor(x).realize(), axis)
        exact = wanted.dtype.kind == "i" or name.startswith(("sort", "topk", "kthvalue", "median", "cumm"))
        np.testing.assert_allclose(got.numpy(), wanted, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-4,
                                   err_msg=str(length))
    assert compiled() <= 2


def windowed_cat(x, i):
    return kiln.cat([x[i:], x[:i]]) if isinstance(x, kiln.Tensor) else np.concatenate([x[i:], x[:i]])


def numpys(function, otherwise):
    """Returns one function for tensors and arrays: NumPy's, or another for tensors."""
    return lambda x, i: otherwise(x, i) if isinstance(x, kiln.Tensor) else function(x, i)


def padded(mode, *widths):
    """Pads the last dimension by two functions of i."""
    before, after = widths
    names = {"replicate": "edge", "circular": "wrap"}
    return numpys(
        lambda x, i: np.pad(x, ((0, 0), (before(i), after(i))), names.get(mode, mode)),
        lambda x, i: kiln.nn.functional.pad(x, (before(i), after(i)), mode))


def causal(x, i):
    n = i + 1
    if isinstance(x, kiln.Tensor):
        scores = x[:n, :n] + kiln.full((n, n), -1e9).triu(1)
        return scores.softmax(-1)
    scores = x[:n, :n] + np.triu(np.full((n, n), -1e9, np.float32), 1)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def resampled(x, i):
    """Linear resampling of each row to i + 130 elements; x has fewer."""
    size = i + 130
    if isinstance(x, kiln.Tensor):
        return kiln.nn.functional.interpolate(x[None], size=size, mode="linear")[0]
    places = (np.arange(size) + 0.5) * (x.shape[1] / size) - 0.5
    return np.stack([np.interp(places, np.arange(x.shape[1]), row) for row in x])


WIDE = (7, 128)
TALL = (TIMES + 4, TIMES + 5)

# Functions of a tensor, or of an array, and of an amount that changes; and the array's shape.
AMOUNTS = {
    "tril": (numpys(np.tril, lambda x, i: x.tril(i)), TALL),
    "triu": (numpys(lambda x, i: np.triu(x, i - 50), lambda x, i: x.triu(i - 50)), TALL),
    "a_band": (numpys(lambda x, i: np.triu(np.tril(x, i), -i), lambda x, i: x.tril(i).triu(-i)), TALL),
    "a_diagonal": (numpys(lambda x, i: np.diagonal(x, i), lambda x, i: x.diagonal(i)), TALL),
    "a_lower_diagonal": (numpys(lambda x, i: np.diagonal(x, -i), lambda x, i: x.diagonal(-i)), TALL),
    "eye": (numpys(lambda x, i: np.eye(*x.shape, i - 50) * x,
                   lambda x, i: kiln.eye(*x.shape, k=i - 50) * x), TALL),
    "diagonal_matrices": (numpys(lambda x, i: np.diag(x[0], i), lambda x, i: x[0].diag_embed(i)), WIDE),
    "zeros_after": (padded("constant", lambda i: 0, lambda i: i), WIDE),
    "zeros_before": (padded("constant", lambda i: i, lambda i: 0), WIDE),
    "zeros_around": (padded("constant", lambda i: i, lambda i: 2 * i + 1), WIDE),
    "zeros_up_to_a_length": (padded("constant", lambda i: i, lambda i: TIMES - i), WIDE),
    "numbers_around": (numpys(
        lambda x, i: np.pad(x, ((0, 0), (i, 1)), constant_values=i / 4 + 1),
        lambda x, i: kiln.nn.functional.pad(x, (i, 1), value=i / 4 + 1)), WIDE),
    "a_mirror_around": (padded("reflect", lambda i: i, lambda i: i), WIDE),
    "the_edge_around": (padded("replicate", lambda i: i, lambda i: i + 3), WIDE),
    "a_circle_around": (padded("circular", lambda i: i, lambda i: i), WIDE),
    "rolled": (numpys(lambda x, i: np.roll(x, i, 1), lambda x, i: x.roll(i, 1)), WIDE),
    "rolled_back": (numpys(lambda x, i: np.roll(x, -1 - i, 1), lambda x, i: x.roll(-1 - i, 1)), WIDE),
    "a_rotated_cat": (lambda x, i: windowed_cat(x, i + 1), (TIMES + 2, 3)),
    "narrowed": (numpys(lambda x, i: x[:, 3 : 4 + i], lambda x, i: x.narrow(1, 3, i + 1)), WIDE),
    "the_end_cut_off": (lambda x, i: x[:, : -i - 1], WIDE),
    "the_last": (lambda x, i: x[:, -i - 1 :], WIDE),
    "a_slice_of_both_ends": (lambda x, i: x[:, i + 1 : 2 * i + 3], (7, 2 * TIMES + 2)),
    "a_corner": (lambda x, i: x[: i + 1, : i + 2], TALL),
    "two_parts": (numpys(
        lambda x, i: np.concatenate([x[:, : i + 1] * 2, x[:, i + 1 :] * 3], 1),
        lambda x, i: kiln.cat([part * (2 + n) for n, part in enumerate(x.split([i + 1, 127 - i], 1))],
                              1)), WIDE),
    "an_arange": (numpys(lambda x, i: x[0, 0] * np.arange(i + 1, dtype=np.float32),
                         lambda x, i: x[0, 0] * kiln.arange(i + 1)), WIDE),
    "a_linspace": (numpys(lambda x, i: x[0, 0] * np.linspace(0, i + 1, i + 2, dtype=np.float32),
                          lambda x, i: x[0, 0] * kiln.linspace(0, i + 1, i + 2)), WIDE),
    "ones": (numpys(lambda x, i: x[0, 0] * np.ones((i + 1, 3)), lambda x, i: x[0, 0] * kiln.ones(i + 1, 3)), WIDE),
    "repeated": (numpys(lambda x, i: np.tile(x, (1, i + 1)), lambda x, i: x.repeat(1, i + 1)), (2, 3)),
    "elements_repeated": (numpys(lambda x, i: np.repeat(x, i + 1, 1),
                                 lambda x, i: x.repeat_interleave(i + 1, 1)), (2, 3)),
    "expanded": (numpys(lambda x, i: np.broadcast_to(x, (i + 2, 2, 3)), lambda x, i: x.expand(i + 2, 2, 3)), (2, 3)),
    "reshaped": (lambda x, i: x[:, : 2 * (i // 2) + 4].reshape(-1, 2), WIDE),
    "classes": (numpys(lambda x, i: np.eye(i + 7, dtype=np.float32)[np.arange(7)] * x[:, :1],
                       lambda x, i: kiln.arange(7).one_hot(i + 7) * x[:, :1]), WIDE),
    "picked": (lambda x, i: x[:, [i, 0, i // 2]], WIDE),
    "flipped": (numpys(lambda x, i: np.flip(x[:, : i + 1], 1), lambda x, i: x[:, : i + 1].flip(1)), WIDE),
    "windows": (numpys(lambda x, i: np.lib.stride_tricks.sliding_window_view(x, i + 1, 1),
                       lambda x, i: x.unfold(1, i + 1, 1)), WIDE),
    "causal_attention": (causal, TALL),
    "resampled": (resampled, WIDE),
}  # fmt: skip


@pytest.mark.parametrize("name", AMOUNTS)
def test_a_loop_over_amounts_compiles_two_programs(name, compiled):
    function, shape = AMOUNTS[name]
    x = normal(*shape)
    w = kiln.tensor(x).realize()
    for i in range(TIMES):
        np.testing.assert_allclose(function(w, i).numpy(), function(x, i), rtol=1e-4, atol=1e-4, err_msg=str(i))
    assert compiled() <= 2


@pytest.mark.parametrize("name", AMOUNTS)
def test_its_gradient_compiles_two_programs(name, compiled):
    function, shape = AMOUNTS[name]
    x = kiln.tensor(normal(*shape)).realize()

    def gradient(x, i):
        leaf = x.detach().requires_grad_()
        function(leaf, i).square().sum().backward()
        return leaf.grad

    found = [gradient(x, i).numpy() for i in range(TIMES)]
    assert compiled() <= 2
    for i in (0, 1, 2, TIMES // 2, TIMES - 1):
        alone = kiln.jit(lambda x, i=i: gradient(x, i))(x).numpy()
        np.testing.assert_allclose(found[i], alone, rtol=1e-4, atol=1e-4, err_msg=str(i))


@pytest.mark.parametrize("lengths", [range(TIMES), range(TIMES, -1, -1), [0, 7, 1, 90, 0, 2, 1, 127]], ids=str)
def test_lengths_of_one_and_none_are_of_the_loop(lengths, compiled):
    x, y = normal(128, 3), normal(3, 2)
    w = kiln.tensor(y).realize()
    for n in lengths:
        got = (kiln.tensor(x[:n]) @ w).tanh()
        np.testing.assert_allclose(got.numpy(), np.tanh(x[:n] @ y), rtol=1e-4, atol=1e-5, err_msg=str(n))
    assert compiled() <= 2


def test_a_dimension_that_broadcasts_in_some_calls_only(compiled):
    """Two computations of one line, which no program serves together."""
    x, y = normal(5, 9), normal(5, 1)

    def add(a, b):
        return (kiln.tensor(a) + kiln.tensor(b)).numpy()

    for _ in range(4):
        for a, b in ((x, y), (x, x), (x[:1], y), (y, y[:1])):
            np.testing.assert_array_equal(add(a, b), a + b)
    assert compiled() <= 4


@pytest.mark.parametrize("shape", [(40, 33), (33, 40), (30, 30)])
def test_sizes_that_are_linear_in_pieces_have_a_program_for_each(shape, compiled):
    """A diagonal grows until it reaches the corner, and shrinks from there."""
    x = normal(*shape)
    w = kiln.tensor(x).realize()
    for k in [*range(-25, 25), *range(-25, 25, 7)]:
        np.testing.assert_array_equal(w.diagonal(k).numpy(), np.diagonal(x, k), err_msg=str(k))
    assert compiled() <= 5


@pytest.mark.parametrize("function", [
    lambda F, x: F.max_pool2d(x, 2),
    lambda F, x: F.conv2d(x, kiln.ones(4, 3, 3, 3), stride=2, padding=1),
    lambda F, x: F.avg_pool2d(F.max_pool2d(x, 2).relu(), 2),
], ids=["pool", "convolution", "two_pools"])  # fmt: skip
@pytest.mark.parametrize(("sizes", "programs"), [(range(8, 101, 4), 2), (range(8, 44), 5)], ids=["even", "all"])
def test_images_under_windows_that_are_apart(function, sizes, programs, compiled):
    """Sizes with one remainder share a program."""
    x = normal(2, 3, 108, 108)
    w = kiln.tensor(x).realize()
    got = [function(kiln.nn.functional, w[:, :, :size, : size + 8]).numpy() for size in sizes]
    assert compiled() <= programs
    for place in (0, 1, 2, -1):
        size = sizes[place]
        alone = kiln.jit(lambda size=size: function(kiln.nn.functional, w[:, :, :size, : size + 8]))()
        np.testing.assert_allclose(got[place], alone.numpy(), rtol=1e-4, atol=1e-4, err_msg=str(size))
def windows_of(x, size, step):
    """Windows along the last axis, as a new last axis."""
    return np.lib.stride_tricks.sliding_window_view(x, size, -1)[..., ::step, :]


def convolved(length, width):
    x, w = normal(2, 3, length + 4), WEIGHTS
    got = kiln.nn.functional.conv1d(kiln.tensor(x), kiln.tensor(w), stride=2)
    return got, np.einsum("bclk,ock->bol", windows_of(x, 3, 2), w)


def convolved_twice(length, width):
    x, w = normal(1, 3, length + 4), WEIGHTS[:3]
    convolve = kiln.nn.functional.conv1d
    got = convolve(convolve(kiln.tensor(x), kiln.tensor(w), stride=2, padding=1), kiln.tensor(w), stride=2, padding=1)
    for _ in range(2):
        x = np.einsum("bclk,ock->bol", windows_of(np.pad(x, [(0, 0), (0, 0), (1, 1)]), 3, 2), w)
    return got, x


def gradient_of_a_convolution(length, width):
    x, w = normal(2, 3, length + 4), WEIGHTS
    y = kiln.tensor(w).requires_grad_()
    kiln.nn.functional.conv1d(kiln.tensor(x), y, stride=2).sum().backward()
    return y.grad, np.broadcast_to(windows_of(x, 3, 2).sum((0, 2)), w.shape)


def pooled(length, width):
    x = normal(2, 3, length + 1)
    return kiln.nn.functional.max_pool1d(kiln.tensor(x), 2), windows_of(x, 2, 2).max(-1)


def averaged(length, width):
    x = normal(2, 3, length + 2)
    return kiln.nn.functional.avg_pool1d(kiln.tensor(x), 3), windows_of(x, 3, 3).mean(-1)


def flattened(length, width):
    x = normal(length, width)
    return (kiln.tensor(x) * 2).flatten(), (x * 2).ravel()


def flattened_before_a_dimension(length, width):
    x = normal(length, width, 3)
    return (kiln.tensor(x) * 2).reshape(-1, 3).sum(1), (x * 2).reshape(-1, 3).sum(1)


def mean_of_two_dimensions(length, width):
    x = normal(length, width)
    return kiln.tensor(x).mean(), x.mean()


def sorted_rows_of_many(length, width):
    x = normal(length, width, 5)
    return kiln.tensor(x).sort(1)[0], np.sort(x, 1)


def diagonal(length, width):
    x = normal(length, length)
    return kiln.tensor(x).diag() * 2, np.diag(x) * 2


def reflected(length, width):
    x = normal(1, 2, length + 3)
    got = kiln.nn.functional.pad(kiln.tensor(x), (2, 1), mode="reflect")
    return got, np.pad(x, [(0, 0), (0, 0), (2, 1)], mode="reflect")


def attention(length, width):
    q, k, v = normal(2, length, 4), normal(2, width, 4), normal(2, width, 4)
    scores = np.exp(q @ k.transpose(0, 2, 1) / 2)
    got = kiln.nn.functional.scaled_dot_product_attention(*map(kiln.tensor, (q, k, v)))
    return got, scores / scores.sum(-1, keepdims=True) @ v


def cross_entropy(length, width):
    x, y = normal(length, 7), RANDOM.integers(0, 7, length)
    wanted = (np.log(np.exp(x).sum(1)) - x[np.arange(length), y]).mean()
    return kiln.nn.functional.cross_entropy(kiln.tensor(x), kiln.tensor(y)), wanted


def normalized(length, width):
    x = normal(length, 3)
    got = kiln.nn.functional.batch_norm(kiln.tensor(x), None, None, training=True)
    return got, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)


def embedded(length, width):
    table, places = normal(9, 4), RANDOM.integers(0, 9, (length, 2))
    return kiln.nn.functional.embedding(kiln.tensor(places), kiln.tensor(table)), table[places]


def resized_by_two(length, width):
    x = normal(1, 2, length)
    return kiln.nn.functional.interpolate(kiln.tensor(x), scale_factor=2), x.repeat(2, -1)


def resized_to(length, width):
    x = normal(length)
    places = np.clip((np.arange(200) + 0.5) * length / 200 - 0.5, 0, length - 1)
    got = kiln.nn.functional.interpolate(kiln.tensor(x)[None, None], size=200, mode="linear")
    return got[0, 0], np.interp(places, np.arange(length), x)


def adaptively_pooled(length, width):
    x = normal(2, length)
    parts = [x[:, i * length // 3 : -(-(i + 1) * length // 3)].mean(1) for i in range(3)]
    return kiln.nn.functional.adaptive_avg_pool1d(kiln.tensor(x), 3), np.stack(parts, 1)


WEIGHTS = normal(4, 3, 3)


@pytest.mark.parametrize("function", [
    convolved, convolved_twice, gradient_of_a_convolution, pooled, averaged, flattened, flattened_before_a_dimension,
    mean_of_two_dimensions, sorted_rows_of_many, diagonal, reflected, attention, cross_entropy, normalized, embedded,
    resized_by_two, resized_to, adaptively_pooled,
], ids=lambda function: function.__name__)  # fmt: skip
def test_sizes_that_are_no_multiples(function, compiled):
    """Products of two sizes that change, and windows that move by more than one."""
    # Two samples of two sizes could be taken for one that follows from the other.
    lengths = [40, 47, *(RANDOM.permutation(TIMES) + 3)]
    widths = [7, 17, *(RANDOM.permutation(TIMES) % 50 + 2)]
    for length, width in zip(lengths, widths):
        got, wanted = function(int(length), int(width))
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-4, atol=1e-4, err_msg=f"{length} {width}")
    assert compiled() <= 2


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint64"])
@pytest.mark.parametrize("kind", [int, float])
def test_numbers_of_each_type_beside_each_dtype(dtype, kind, compiled):
    # Their values are compared in test_eager_numbers.py.
    x = kiln.tensor([1, 2, 3, 4, 5], dtype)
    for i in range(TIMES):
        (x * (kind(i) + (0.5 if kind is float else 0))).sum().item()
    assert compiled() <= 2


def softmaxed(x, y):
    return (x @ y).softmax(0).square().sum(0)


def differentiated(x, y):
    z = y.detach().requires_grad_()
    (x @ z).tanh().mean().backward()
    return z.grad


def reshaped(x, y):
    return (x[:, :, None] * y).reshape(-1, 3).sum(0)


def joined(x, y):
    return kiln.cat([x, kiln.zeros(len(x), 8), x * 2]).square().mean(0)


def its_middle(x, y):
    return x[1:-1].sum(0) + x[len(x) // 2] - len(x)


@pytest.mark.parametrize("function", [softmaxed, differentiated, reshaped, joined, its_middle],
                         ids=lambda function: function.__name__)
def test_sizes_within_and_beyond_the_first_bounds(function, compiled):
    x, y = normal(700, 8), normal(8, 3)
    lengths = [3, 5, 4, 128, 9, 77, 3]  # within the bounds from two lengths below 64
    weights = kiln.tensor(y)
    for length in lengths:
        got = function(kiln.tensor(x[:length]), weights).numpy()
        alone = kiln.jit(lambda x: function(x, weights))(kiln.tensor(x[:length])).numpy()
        np.testing.assert_allclose(got, alone, rtol=1e-4, atol=1e-5, err_msg=str(length))
    kiln.default_connection().synchronize()
    eager = compiled() - len(set(lengths))  # without the programs of kiln.jit
    assert eager <= 2
    for length in (650, 300, 700, 200):
        got = function(kiln.tensor(x[:length]), weights).numpy()
        assert np.isfinite(got).all()
    assert compiled() - len(set(lengths)) <= eager + 1


@pytest.mark.parametrize(("exponents", "inputs"), [((2, 3, 8, -1), 1), ((2.5, 3.5, 9, 0.1), 2)])
def test_small_whole_exponents_stay_constants(exponents, inputs, stand_in):
    """Powers with them are computed as products."""
    x = kiln.tensor([1.0, 2.0]).realize()
    for exponent in exponents:
        (x**exponent).numpy()
    nodes = stand_in.graphs[-1][1].nodes
    assert [node.op for node in nodes].count("input") == inputs


def test_sizes_that_follow_from_each_other_are_one_variable(stand_in):
    for length in (10, 12):
        x = kiln.tensor(np.ones((length, 4), np.float32))
        ((x[1:] - x[:-1]).reshape(-1, 2) * kiln.arange(2 * length - 2)[:, None]).sum().numpy()
    graph = stand_in.graphs[-1][1]
    assert [(variable.name, variable.min) for variable in graph.variables] == [("size0", 1)]
    shapes = [node.attributes["shape"].shape for node in graph.nodes if "shape" in node.attributes]
    sums = {(dim.sum.terms[0].factor, dim.sum.constant)
            for shape in shapes for dim in shape.dims if dim.HasField("sum")}
    assert sums == {(2, -2)}


def test_sizes_that_are_only_legal_together_are_one_variable(stand_in):
    for length in (4, 8, 10):
        (kiln.tensor(np.ones((7, length), np.float32)) + 1).reshape(-1, 2).numpy()
    graph = stand_in.graphs[-1][1]
    assert [(variable.name, variable.min) for variable in graph.variables] == [("size0", 1)]
    assert len(stand_in.graphs) == 2


def test_a_third_size_that_follows_otherwise_makes_a_second_variable(stand_in):
    for rows, columns in [(4, 6), (5, 7), (5, 9), (6, 12)]:
        (kiln.tensor(np.ones((rows, columns), np.float32)) + 1).numpy()
    assert [len(graph.variables) for _, graph in stand_in.graphs] == [0, 1, 2]


def test_variables_of_the_wire_are_positive(stand_in):
    """A size of 0 is 1 less than its variable."""
    for length in (1, 0, 2, 3, 4):
        (kiln.tensor(np.ones(length, np.float32)) + 1).numpy()
    _, graph = stand_in.graphs[-1]
    assert [(variable.min, variable.max) for variable in graph.variables] == [(1, 129)]
    assert [len(graph.variables) for _, graph in stand_in.graphs] == [0, 1]
    assert len(stand_in.runs) == 5


@pytest.mark.parametrize(("lengths", "size_max"), [((5, 6), 12), ((6, 5), 6), ((6, 5, 7), 14)])
def test_bounds_do_not_make_much_work_far_more(lengths, size_max, stand_in):
    """Bounds are twice a size that grows, and the largest size seen of one that does not."""
    for length in lengths:
        (kiln.tensor(np.ones((length, 1 << 20), np.float32)) + 1).numpy()
    (variable,) = stand_in.graphs[-1][1].variables
    assert variable.max == size_max


def test_what_grows_for_long_has_a_program_for_each_doubling(stand_in):
    for length in range(2, 5000):
        (kiln.tensor(np.ones(length, np.float32)) + 1).numpy()
    assert [variable.max for _, graph in stand_in.graphs for variable in graph.variables] == [
        128, 512, 2048, 8192]


def test_slices_stay_within_what_they_are_slices_of(stand_in):
    x = kiln.tensor(np.ones(30, np.float32)).realize()
    for length in (5, 6):
        (x[:length] + 1).numpy()
    (variable,) = stand_in.graphs[-1][1].variables
    assert variable.max == 30


def test_what_the_daemon_refuses_with_variables_has_a_program_for_each_size(stand_in, monkeypatch):
    monkeypatch.setattr(type(stand_in), "accepts", lambda self, program: False)
    for length in (5, 6, 7, 6):
        (kiln.tensor(np.ones(length, np.float32)) + 1).numpy()
    assert [len(graph.variables) for _, graph in stand_in.graphs] == [0, 1, 0, 0]
    assert len(stand_in.runs) == 4


def test_what_the_daemon_refuses_with_a_length_of_1_it_may_accept_without(stand_in, monkeypatch):
    monkeypatch.setattr(type(stand_in), "accepts", lambda self, program: len(self.graphs) > 2)
    for length in (1, 5, 6, 7):
        (kiln.tensor(np.ones(length, np.float32)) + 1).numpy()
    assert [len(graph.variables) for _, graph in stand_in.graphs] == [0, 1, 0, 1]


def test_the_rest_of_a_reshape_is_left_to_the_daemon(stand_in):
    for rows, columns in [(4, 6), (6, 9), (7, 11)]:
        (kiln.tensor(np.ones((rows, columns), np.float32)) + 1).flatten().numpy()
    graph = stand_in.graphs[-1][1]
    assert [len(graph.variables) for _, graph in stand_in.graphs] == [0, 2]
    (shape,) = [node.attributes["shape"].shape for node in graph.nodes if node.op == "reshape"]
    assert [dim.size for dim in shape.dims] == [-1]


def test_paddings_of_what_was_rolled(connection):
    """The padding begins at an input, and the roll reads neighbours across rows."""
    x = np.arange(18, dtype=np.float32).reshape(6, 3)
    w = kiln.tensor(x).realize()
    for before, after in [(1, 2), (2, 1), (3, 4), (1, 1), (0, 1), (1, 0)]:
        got = kiln.nn.functional.pad(kiln.roll(w, 1), (before, after, before, after))
        np.testing.assert_array_equal(got.numpy(), np.pad(np.roll(x, 1), (before, after)))


def test_a_mesh_has_sizes_that_are_numbers(stand_in):
    mesh = kiln.Mesh("data", ["cpu:0", "cpu:1"])
    for length in (6, 8, 10):
        x = kiln.shard(kiln.tensor(np.ones(length, np.float32)), mesh, "data")
        (x * length).numpy()
    graphs = [graph for _, graph in stand_in.graphs]
    assert [len(graph.variables) for graph in graphs] == [0, 0, 0]


def test_a_users_own_variables_stay(connection):
    n = kiln.Variable("n", 1, 50)
    for length in (3, 4, 5):
        x = kiln.tensor(np.ones(length, np.float32)).with_variable(0, n)
        assert (x * length).sum().item() == length * length
        assert kiln.arange(n.bind(length)).tolist() == [*range(length)]
        assert x[: n.bind(length)].tolist() == [1.0] * length


def warnings_of(step, times):
    """Returns the warnings of a loop about its programs."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(times):
            step(i)
    return [item for item in caught if "all new" in str(item.message)]


def tanh_of_tanh(x, times):
    for _ in range(times):
        x = x.tanh()
    return x


def test_a_loop_that_goes_on_compiling_warns_once_with_its_line(stand_in):
    x = kiln.tensor([1.0, 2.0])
    (warning,) = warnings_of(lambda i: tanh_of_tanh(x, i + 1).numpy(), 100)
    assert warning.filename == __file__ and "test_eager_loops.py:" in str(warning.message)
    assert "32 programs" in str(warning.message)
    assert not warnings_of(lambda i: (x * i).numpy(), 100)


@pytest.mark.parametrize(("function", "changes"), [
    (lambda x, i: kiln.nn.functional.elu(x, i / 8), '"alpha" of "elu": 0.75, then 0.875'),
    (lambda x, i: x.unfold(0, 2, i + 1), '"stride" of "window": 7, then 8'),
], ids=["elu", "unfold"])  # fmt: skip
def test_a_warning_names_what_changes(function, changes, stand_in, monkeypatch):
    monkeypatch.setattr(compiles, "_warned", OrderedDict())  # the cases have one line
    x = kiln.tensor(np.ones(40, np.float32))
    (warning,) = warnings_of(lambda i: function(x, i).numpy(), 8)
    assert changes in str(warning.message) and "8 programs" in str(warning.message)


def test_a_few_different_programs_of_one_line_are_no_such_loop(stand_in):
    """A function that reads whatever it is given is not a loop until it looks like one."""
    x = kiln.tensor(np.ones(40, np.float32))
    steps = [lambda: x.exp(), lambda: x.tanh(), lambda: x.sum(), lambda: x.softmax(0), lambda: x.var(),
             lambda: x.cumsum(0), lambda: x.sigmoid(), lambda: x.reshape(4, 10).tanh(), lambda: x.erf(),
             lambda: x.unfold(0, 2, 2), lambda: x.unfold(0, 2, 3), lambda: x.unfold(0, 2, 4)]  # fmt: skip
    assert not warnings_of(lambda i: steps[i]().numpy(), len(steps))
    dtypes = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
    assert not warnings_of(lambda i: (kiln.ones(40, dtype=dtypes[i]) * 3 + 1).numpy(), len(dtypes))


def test_new_programs_among_known_ones_are_no_such_loop(stand_in):
    x = kiln.tensor([1.0, 2.0])

    def read(tensor):
        return tensor.numpy()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(100):
            y = x
            for _ in range(i):
                y = y.tanh()
            read(y)
            read(x.exp())


def test_tables_are_bounded(stand_in, monkeypatch):
    monkeypatch.setattr(plans, "_KEPT", 4)
    x = kiln.tensor([1.0, 2.0])
    for i in range(50):
        y = x
        for _ in range(i):
            y = y.tanh()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y.numpy()
    for table in (stand_in.plans._plans, stand_in.plans._forms):
        assert len(table._young) + len(table._old) <= 8
    for i in range(1000):
        (x * i).numpy()
    assert len(stand_in.plans._vectors._nodes) == lifting._VECTORS_KEPT


def on_a_mesh():
    x = np.arange(10, dtype=np.float32)
    w = kiln.shard(kiln.tensor(x), kiln.Mesh("data", ["cpu:0", "cpu:1"]), "data")
    return lambda i: ((w * i + w[i % 10]).sum(), (x * i + x[i % 10]).sum())


def on_another_device():
    x = normal(110)
    w = kiln.tensor(x).to("cpu:3")
    return lambda i: (w[i : i + 4].sum() * i, x[i : i + 4].sum() * np.float32(i))


def in_stages():
    x = normal(4, 4)
    w = kiln.tensor(x).requires_grad_()
    there = kiln.tensor(np.ones((4, 4), np.float32)).to("cpu:1")
    return lambda i: (((w * i).to("cpu:2").to("cpu:1") @ there * (1 / (i + 1))).sum(),
                      (x * i @ np.ones((4, 4), np.float32) / (i + 1)).sum())


@pytest.mark.parametrize("loop", [on_a_mesh, on_another_device, in_stages], ids=lambda loop: loop.__name__)
def test_a_loop_on_other_devices(loop, session):
    step = loop()
    with sent_operations(session) as sent:
        for i in range(TIMES):
            got, wanted = step(i)
            np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-3, atol=1e-4, err_msg=str(i))
    assert sent.count("define_program") <= 2 and sent.count("run") == TIMES


def test_sizes_that_change_in_stages_are_programs_of_their_own(session):
    first = kiln.tensor(np.ones((4, 4), np.float32)).to("cpu:1").requires_grad_()
    second = kiln.tensor(np.ones((4, 2), np.float32)).to("cpu:2")
    for size in (3, 4, 5, 3):
        x = kiln.tensor(np.ones((size, 4), np.float32)).to("cpu:1")
        assert ((x @ first).to("cpu:2") @ second).sum().item() == 32 * size


def test_what_is_held_stays_on_its_device(session):
    state, there = kiln.ones(4), kiln.tensor(np.ones(4, np.float32)).to("cpu:1")
    for _ in range(3):
        state = state * 2
        assert (there * 2).sum().item() == 8
    assert state.device == "cpu:0" and state.tolist() == [8] * 4


@pytest.fixture
def wakes(connection, monkeypatch):
    """Lists the operations that were ready to be sent whenever the sending thread was woken."""
    found = []
    stream = connection.stream
    wake = stream.wake
    with sent_operations(connection) as sent:
        def woken():
            found.append(list(sent))
            sent.clear()
            wake()

        monkeypatch.setattr(stream, "wake", woken)
        yield found


def test_a_run_and_its_read_are_one_message(connection, wakes):
    x = kiln.tensor([1.0, 2.0])
    (x + 1).numpy()
    wakes.clear()
    assert (x + 1).tolist() == [2.0, 3.0]
    assert wakes == [["run", "read"]]
    (x + 1).realize()
    assert wakes == [["run", "read"], ["run"]]


def test_the_run_of_a_large_value_does_not_wait_for_its_read(connection, wakes, monkeypatch):
    x = kiln.tensor(np.ones(1 << 19, np.float32)).realize()
    (x + 1).numpy()
    wakes.clear()
    blobs = connection._session.blobs
    download = blobs.download
    before = []
    monkeypatch.setattr(blobs, "download", lambda *args: before.extend(wakes) or download(*args))
    assert (x + 1).numpy()[-1] == 2
    assert wakes == before == [["run"]]


def test_a_run_goes_off_if_no_read_follows(connection, wakes, monkeypatch):
    x = kiln.tensor([1.0, 2.0])
    (x + 1).numpy()
    wakes.clear()
    monkeypatch.setattr(type(connection), "download", lambda self, buffer: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x + 1).numpy()
    assert wakes == [["run"]]


def test_a_number_that_is_asked_for_has_its_own_dtype(connection):
    for size, dtype in [(5, kiln.float32), (6, kiln.bfloat16), (7, kiln.int64), (8, kiln.float16)]:
        total, number = kiln.tensor(np.ones(size, np.float32)).sum(), kiln.zeros((), dtype=dtype)
        number[()] = 17
        kiln.realize(total, number)
        assert (total.item(), number.item(), number.dtype) == (size, 17, dtype)


def test_threads_share_numbers(connection):
    x = kiln.tensor(np.arange(20, dtype=np.float32)).realize()
    wrong = []

    def loop():
        for i in range(200):
            got = (x[i % 5 : i % 5 + 3] + i).tolist()
            if got != [i % 5 + i, i % 5 + i + 1, i % 5 + i + 2]:
                wrong.append((i, got))

    threads = [threading.Thread(target=loop) for _ in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong
