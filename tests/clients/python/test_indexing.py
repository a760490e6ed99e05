"""tensor[key] and tensor[key] = value compared with NumPy."""

import numpy as np
import pytest

import kiln
from kiln._graph import checks

CUBE = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
FLAGS = np.arange(60).reshape(3, 4, 5) % 3 == 0
ROWS = np.array([2, 0, -1, 0])

KEYS = [
    0, -1, np.int64(1), (0, -2, 3), np.s_[1:], np.s_[:, 1:3], np.s_[::2], np.s_[::-1],
    np.s_[:, ::-2, 1::3], np.s_[-2:, 3:0:-1], np.s_[..., 1], np.s_[1, ..., 2], None,
    np.s_[:, None, 1], np.s_[..., None], np.s_[None, 0, :, None, ::-3], np.s_[2:1], np.s_[:, 4:],
    np.s_[:, :, 10:-10:-2], np.s_[5:0:-1], (),
    ROWS, np.s_[:, [1, 3]], np.s_[..., [4, 0, 1]], np.s_[[1]], np.s_[[]], np.s_[ROWS, ::-1],
    np.s_[1:, :, ROWS], np.s_[ROWS, [0, 1, 2, 3]], np.s_[[[0], [1]], [[2, 3]]],
    np.s_[:, [0, 1], [2, 3]], np.s_[[0, 1], :, [2, 3]], np.s_[0, :, [2, 3]], np.s_[:, 0, [2, 3]],
    np.s_[[2, 1], 0], np.s_[[2, 1], ..., 0], np.s_[[0, 1], None, [2, 3]], np.s_[None, [0, 1], 2],
    np.s_[[0, 1], [1, 2], ..., [3, 4]], np.s_[0, [1, 2], 1:4:2], np.s_[ROWS.astype(np.int8)],
    np.s_[np.array(1)], np.s_[np.array(1), :, np.array([0, 2])], np.s_[[0], ..., [1], [2]],
    np.s_[:, [1, 2], ..., 3], np.s_[:, 0, ..., [3, 4]], np.s_[[[1], [0]], ..., :, 2],
    np.s_[np.array([1, 2], np.uint8), :, np.array([0, 4], np.uint64)],
    FLAGS, FLAGS[:, :, 0], np.s_[FLAGS[:, 0, 0]], np.s_[:, FLAGS[0, :, 0]],
    np.s_[..., FLAGS[0, 0]], np.s_[:, FLAGS[0]], np.s_[1:, FLAGS[0]], np.s_[0, FLAGS[0]],
    np.s_[FLAGS[:, 0, 0], 1], np.s_[FLAGS[:, 0, 0], :, 1], np.s_[FLAGS[:, 0, 0], [0]],
    np.s_[FLAGS[:, 0, 0], ::-1, None], FLAGS & False, True, False, np.s_[True, 1], np.s_[:, True],
    np.s_[[True, False, True]], np.s_[None, FLAGS[:, :, 0], ..., None],
]  # fmt: skip


def as_tensors(key):
    """Returns the key with tensors in place of arrays."""
    if isinstance(key, tuple):
        return tuple(as_tensors(part) for part in key)
    return kiln.tensor(key) if isinstance(key, np.ndarray) else key


def on_device(key):
    """Returns the key with tensors whose values this process does not know."""
    if isinstance(key, tuple):
        return tuple(on_device(part) for part in key)
    if isinstance(key, np.ndarray):
        return kiln.tensor(key) ^ kiln.zeros(key.shape, dtype=key.dtype.name)
    return key


def forms(key):
    """Returns the key and, if it has arrays, keys with tensors here and on the device."""
    parts = key if isinstance(key, tuple) else (key,)
    has_arrays = any(isinstance(part, np.ndarray) for part in parts)
    return (key, as_tensors(key), on_device(key)) if has_arrays else (key,)


def check(got, wanted):
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got.numpy(), wanted)


@pytest.mark.parametrize("part", range(4))
def test_reading(connection, part):
    x = kiln.tensor(CUBE)
    pairs = [(x[form], CUBE[key]) for key in KEYS[part::4] for form in forms(key)]
    kiln.realize(*[got for got, _ in pairs])
    for got, wanted in pairs:
        check(got, wanted)


def written(key, value):
    """Returns NumPy's result; None if it has too many dimensions for NumPy's masks."""
    wanted = CUBE.copy()
    try:
        wanted[key] = value
    except (TypeError, ValueError):
        return None
    return wanted


@pytest.mark.parametrize("part", range(8))
def test_assigning(connection, part):
    pairs = []
    for key in KEYS[part::8]:
        shape = CUBE[key].shape
        count = np.prod(shape, dtype=int)
        last = (shape[-1:] or (1,))[0]
        for value in (-7.5, np.arange(100, 100 + count, dtype=np.float32).reshape(shape),
                      np.arange(50, 50 + last, dtype=np.float32)[None]):  # fmt: skip
            wanted = written(key, value)
            for form in forms(key) if wanted is not None else ():
                x = kiln.tensor(CUBE)
                x[form] = value
                pairs.append((x, wanted))
    assert len(pairs) > 10
    kiln.realize(*[got for got, _ in pairs])
    for got, wanted in pairs:
        check(got, wanted)


def random_key(random, shape):
    """Returns a random key that NumPy takes."""
    key = []
    axis = 0
    wide = tuple(random.integers(1, 4, size=random.integers(1, 3)))
    while axis < len(shape):
        size = shape[axis]
        kind = random.integers(0, 7)
        if kind == 0:
            key.append(int(random.integers(-size, size)))
        elif kind == 1:
            step = int(random.choice([-3, -2, -1, 1, 2, 3]))
            start, stop = random.integers(-size - 2, size + 3, size=2)
            key.append(slice(*[None if random.integers(3) == 0 else int(end)
                               for end in (start, stop)], step))
        elif kind == 2:
            key.append(None)
            continue
        elif kind == 3:
            own = tuple(1 if random.integers(3) == 0 else length for length in wide)
            key.append(random.integers(-size, size, size=own[int(random.integers(len(own))) :]))
        elif kind == 4 and Ellipsis not in [part for part in key if not hasattr(part, "shape")]:
            key.append(Ellipsis)
            axis += int(random.integers(0, 2))
            continue
        else:
            key.append(slice(None))
        axis += 1
    return tuple(key)


def test_random_keys(connection):
    random = np.random.default_rng(5)
    pairs = []
    while len(pairs) < 100:
        shape = tuple(random.integers(1, 5, size=random.integers(1, 5)))
        data = random.normal(size=shape).astype(np.float32)
        key = random_key(random, shape)
        try:
            wanted = data[key]
        except IndexError:
            continue
        pairs.append((kiln.tensor(data)[key], wanted))
        changed = data.copy()
        changed[key] = values = random.normal(size=wanted.shape).astype(np.float32)
        x = kiln.tensor(data)
        x[key] = values
        pairs.append((x, changed))
    kiln.realize(*[got for got, _ in pairs])
    for got, wanted in pairs:
        check(got, wanted)


def test_the_last_of_several_values_for_one_element_stays(connection):
    for form in (kiln.tensor, lambda values: kiln.tensor(values) * 1):
        x = kiln.zeros(3)
        x[form([1, 1, 1])] = kiln.tensor([5.0, 6.0, 7.0])
        x[form([0, 0])] += kiln.tensor([1.0, 2.0])
        check(x, np.float32([2, 7, 0]))


def test_a_place_out_of_range(connection):
    x = kiln.tensor(CUBE)
    for key in (3, -4, (0, 4), (0, 0, -6), [3], (slice(None), kiln.tensor([0, 9])),
                ([0, 1], [0, 5])):  # fmt: skip
        with pytest.raises(IndexError, match="must be in|is out of range"):
            x[key]
        with pytest.raises(IndexError, match="must be in|is out of range"):
            x[key] = 0
    uploaded = kiln.tensor([0, 3])
    assert (uploaded + 0).tolist() == [0, 3] and uploaded._node.host is None
    with pytest.raises(IndexError, match="index 3 is out of range for 3 places: allowed -3..2"):
        x[uploaded]


def test_a_place_out_of_range_that_only_the_device_knows(connection, monkeypatch):
    """Without checks it reads 0 and writes nothing, also in merged dimensions."""
    monkeypatch.setattr(checks, "enabled", False)
    x = kiln.tensor(CUBE)
    far = kiln.tensor([1, 7, -9]) * 1
    check(x[far, 0, 0], np.float32([20, 0, 0]))
    check(x[0, far, kiln.tensor([4, 0, 0]) * 1], np.float32([9, 0, 0]))
    x[far, far] = -1
    changed = CUBE.copy()
    changed[1, 1] = -1
    check(x, changed)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda x: x[0, 0, 0, 0], ["4 indices", "(3, 4, 5)"]),
        (lambda x: x[..., 0, ...], ["one ellipsis"]),
        (lambda x: x[1.5], ["1.5", "is not an index"]),
        (lambda x: x[kiln.zeros(2)], ["float32", "integers or bool"]),
        (lambda x: x[kiln.zeros(2, dtype="bool")], ["mask of shape (2,)", "(3,)"]),
        (lambda x: x["a"], ["'a'", "is not an index"]),
        (lambda x: x[::0], ["step of 0"]),
        (lambda x: x[[0, 1], [0, 1, 2]], ["(2,)", "(3,)"]),
        (lambda x: x.__setitem__(0, kiln.zeros(2, 5)), ["(2, 5)", "(4, 5)"]),
        (lambda x: x.long().__setitem__(0, kiln.zeros(5)), ["float32", "int64", "cast"]),
        (lambda x: x.long().__setitem__(0, 1.5), ["1.5", "int64"]),
    ],
)
def test_wrong_keys_and_values(act, words):
    with pytest.raises(kiln.InvalidArgument) as caught:
        act(kiln.tensor(CUBE))
    for word in [*words, "test_indexing.py:"]:
        assert word in str(caught.value)


def test_gradients_flow_through_reading_and_assigning(connection):
    rows = kiln.tensor([2, 0, 2])

    def loss(x, v):
        y = x * 2
        y[1:, ::2] = v
        y[rows, 1] *= 3
        y[y > 100] = 0.5
        return (y[rows, ::-1] * kiln.arange(1, 6).float()).sum() + (y[:, 3] ** 2).sum()

    x, v = kiln.tensor(CUBE[:, :, 0] / 7), kiln.tensor(np.float32([[1, 2], [3, 4]]))
    x, v = x[:, [0, 1, 2, 3, 0]], kiln.cat([v, v[:, :1]], 1)
    got = kiln.grad(loss, argnums=(0, 1))(x, v)
    for which, step in ((0, x), (1, v)):
        data = step.numpy().astype(np.float64)
        slope = np.zeros_like(data)
        for place in np.ndindex(*data.shape):
            ends = []
            for change in (1e-4, -1e-4):
                moved = data.copy()
                moved[place] += change
                given = [part.double() for part in (x, v)]
                given[which] = kiln.tensor(moved)
                ends.append(loss(*given))
            slope[place] = ((ends[0] - ends[1]) / 2e-4).item()
        np.testing.assert_allclose(got[which].numpy(), slope, rtol=1e-4, atol=1e-4)


def test_assignment_within_jit(connection):
    @kiln.jit
    def update(cache, row, place):
        cache[place] = row
        cache[cache < 0] = 0
        cache[..., -1] += 1
        return cache.sum()

    cache = kiln.zeros(3, 4).realize()
    wanted = np.zeros((3, 4), np.float32)
    for i in range(3):
        row = np.arange(-1, 3, dtype=np.float32) * (i + 1)
        update(cache, kiln.tensor(row), kiln.tensor(i))
        wanted[i] = row
        wanted[wanted < 0] = 0
        wanted[..., -1] += 1
        check(cache, wanted)
    assert update.traces == 1


def test_a_mask_within_jit_is_an_error_that_says_where(stand_in):
    @kiln.jit
    def positive(x):
        return x[x > 0]

    with pytest.raises(kiln.TraceError, match=r"(?s)mask.*kiln\.where.*test_indexing\.py:"):
        positive(kiln.ones(3))


def test_two_programs_serve_a_loop_over_places(stand_in):
    x, other = kiln.zeros(20, 8).realize(), kiln.zeros(20, 8).realize()
    before = len(stand_in.graphs)
    for i in range(5):
        (x[i] + 1).realize()
        (x[4 * i : 4 * i + 4] * 2).realize()
        other[i, 2].realize()
    for row in x:
        (row - 1).realize()
    graphs = {graph.SerializeToString(deterministic=True) for _, graph in stand_in.graphs[before:]}
    assert len(graphs) == 2 * 4


def test_python_sees_a_sequence(connection):
    x = kiln.tensor(CUBE)
    assert len(x) == 3 and [part.shape for part in x] == [(4, 5)] * 3
    for row, wanted in zip(kiln.tensor([[1, 2], [3, 4]]), ([1, 2], [3, 4])):
        assert row.tolist() == wanted
    with pytest.raises(TypeError):
        iter(kiln.tensor(1))
