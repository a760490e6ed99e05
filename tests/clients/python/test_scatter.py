"""Writing and reading at places that are data, compared with NumPy."""

import numpy as np
import pytest

import kiln
from kiln._graph import checks

ONE_SESSION = True

pytestmark = pytest.mark.usefixtures("connection")

RANDOM = np.random.default_rng(5)
COMBINE = {"set": lambda old, new: new, "add": np.add, "mul": np.multiply, "max": np.maximum,
           "min": np.minimum}  # fmt: skip
EXTREMES = {
    "int8": [-128, 127, -1, 0, 5],
    "uint8": [255, 0, 5, 6, 200],
    "int32": [-(2**31), 2**31 - 1, 6, 0, 5],
    "int64": [-(2**63), 2**63 - 1, -(2**62), 2**62, 0, 5, 6, -6, -7],
    "uint64": [2**64 - 1, 2**63, 2**62, 0, 5, 6, 2**64 - 6],
}


def scattered(x, index, values, mode):
    """Combines rows of values into rows of x, one after the other; ignores places outside."""
    result = x.copy()
    for place, row in zip(index.tolist(), values):
        if 0 <= place < len(x):
            result[place] = COMBINE[mode](result[place], row)
    return result


@pytest.mark.parametrize("mode", COMBINE)
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64"])
@pytest.mark.parametrize("width", [1, 40, 300])
def test_rows(mode, dtype, width):
    x = RANDOM.integers(1, 5, (11, width)).astype(dtype)
    values = RANDOM.integers(1, 4, (30, width)).astype(dtype)
    index = RANDOM.integers(-3, 14, 30)
    result = kiln.ops.scatter(kiln.tensor(x), kiln.tensor(index), kiln.tensor(values), mode=mode)
    np.testing.assert_array_equal(result.numpy(), scattered(x, index, values, mode))


@pytest.mark.parametrize("dtype", ["bool", "float16", "bfloat16"])
def test_every_dtype_can_be_set(dtype):
    x = kiln.zeros(5, dtype=dtype)
    x[kiln.tensor([3, -1])] = kiln.ones(2, dtype=dtype)
    assert x.cast("int32").tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("dtype", EXTREMES)
def test_extreme_places_touch_nothing(dtype):
    index = np.array(EXTREMES[dtype], dtype)
    x = np.arange(12, dtype=np.float32).reshape(6, 2) + 1
    values = np.ones((len(index), 2), np.float32)
    known = kiln.tensor(index)
    inside = [int(place) if 0 <= int(place) < 6 else -1 for place in index]
    wanted = np.array([x[place] if place >= 0 else [0, 0] for place in inside])
    np.testing.assert_array_equal(kiln.ops.gather(kiln.tensor(x), known).numpy(), wanted)
    result = kiln.ops.scatter_add(kiln.tensor(x), known, kiln.tensor(values)).numpy()
    np.testing.assert_array_equal(result, scattered(x, np.array(inside), values, "add"))
    # Signed places count from the end, once; unsigned ones are large.
    wrapped = [int(place) + 6 if -6 <= int(place) < 0 else int(place) for place in index]
    wanted = np.array([x[place] if 0 <= place < 6 else [0, 0] for place in wrapped])
    np.testing.assert_array_equal(kiln.ops.take(kiln.tensor(x), known).numpy(), wanted)


def test_arithmetic_on_places_wraps():
    raw = np.array([2**62, 2**63 - 1, -(2**63), 3, 7], np.int64)
    x = kiln.arange(5, dtype="float32")
    place = kiln.tensor(raw)
    with np.errstate(over="ignore"):
        wanted = [raw * 4 // 4, raw * 8 // 3, (raw + 2**62) * 2 % 7]
    for made, index in zip([place * 4 // 4, place * 8 // 3, (place + 2**62) * 2 % 7], wanted):
        np.testing.assert_array_equal(made.numpy(), index)
        read = [float(i) if 0 <= i < 5 else 0.0 for i in index]
        assert kiln.ops.gather(x, made).tolist() == read


def test_histogram():
    # Long enough to be counted in pieces.
    data = RANDOM.integers(0, 16, 70_001)
    counts = kiln.zeros(16, dtype="int64").index_add(
        0, kiln.tensor(data), kiln.ones(len(data), dtype="int64"))
    np.testing.assert_array_equal(counts.numpy(), np.bincount(data, minlength=16))
    weights = RANDOM.random(len(data), dtype=np.float32)
    sums = kiln.zeros(16).index_add(0, kiln.tensor(data), kiln.tensor(weights)).numpy()
    np.testing.assert_allclose(sums, np.bincount(data, weights), rtol=1e-5)
    again = kiln.zeros(16).index_add(0, kiln.tensor(data), kiln.tensor(weights)).numpy()
    np.testing.assert_array_equal(sums, again)


def test_torch_names():
    x = RANDOM.random((4, 5), dtype=np.float32)
    index = RANDOM.integers(0, 4, (3, 5))
    source = RANDOM.random((3, 5), dtype=np.float32)
    added, most, placed = x.copy(), x.copy(), x.copy()
    distinct = np.argsort(RANDOM.random((3, 5)), axis=0)
    np.add.at(added, (index, np.arange(5)), source)
    np.maximum.at(most, (index, np.arange(5)), source)
    np.put_along_axis(placed, distinct, source, 0)
    ours = [kiln.tensor(part) for part in (x, index, source)]
    np.testing.assert_allclose(ours[0].scatter_add(0, *ours[1:]).numpy(), added, rtol=1e-6)
    result = ours[0].scatter_reduce(0, *ours[1:], "amax")
    np.testing.assert_array_equal(result.numpy(), most)
    result = ours[0].scatter(0, kiln.tensor(distinct), ours[2])
    np.testing.assert_array_equal(result.numpy(), placed)
    # An index that is smaller than the tensor, and values that are larger than the index.
    part = ours[0].scatter_add(1, kiln.tensor(index[:2, :1]), ours[2])
    wanted = x.copy()
    for row in range(2):
        wanted[row, index[row, 0]] += source[row, 0]
    np.testing.assert_allclose(part.numpy(), wanted, rtol=1e-6)
    with pytest.raises(IndexError):
        ours[0].index_add(0, kiln.tensor([4]), kiln.ones(1, 5))
    with pytest.raises(kiln.InvalidArgument):
        ours[0].scatter_reduce(0, *ours[1:], "mean")


def test_embedding_gradient():
    table = kiln.tensor(RANDOM.random((50, 24), dtype=np.float32), requires_grad=True)
    tokens = RANDOM.integers(0, 50, (4, 33))
    upstream = RANDOM.random((4, 33, 24), dtype=np.float32)
    (table[kiln.tensor(tokens)] * kiln.tensor(upstream)).sum().backward()
    wanted = np.zeros((50, 24), np.float32)
    np.add.at(wanted, tokens, upstream)
    np.testing.assert_allclose(table.grad.numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", COMBINE)
def test_second_gradients(mode):
    x = kiln.tensor([1.0, 2.0, 3.0], dtype="float64", requires_grad=True)
    values = kiln.tensor([1.5, 0.5, 4.0, 2.5], dtype="float64", requires_grad=True)
    index = kiln.tensor([1, 1, 2, 7])

    def once(a, b):
        written = kiln.ops.scatter(a, index, b, mode=mode)
        return kiln.autograd.gradients((written * written * written).sum(), [a, b])

    first = once(x, values)
    total = (first[0] * first[0]).sum() + (first[1] * first[1]).sum()
    second = kiln.autograd.gradients(total, [x, values])
    eps = 1e-6
    for which, gradient in enumerate(second):
        for i in range(gradient.shape[0]):
            sides = []
            for sign in (1, -1):
                arrays = [x.numpy().copy(), values.numpy().copy()]
                arrays[which][i] += sign * eps
                moved = [kiln.tensor(a, requires_grad=True) for a in arrays]
                sides.append(sum(float((part * part).sum().item()) for part in once(*moved)))
            assert gradient.numpy()[i] == pytest.approx((sides[0] - sides[1]) / (2 * eps), rel=1e-4)


def test_second_gradients_of_products_with_zeros():
    # An element is the product of one element of x and two of values.
    x = kiln.tensor([0.0, 2.0, 0.0], dtype="float64", requires_grad=True)
    values = kiln.tensor([[3.0, 0.0, 0.0], [4.0, 5.0, 6.0]], dtype="float64", requires_grad=True)
    index = kiln.tensor(np.zeros((2, 3), np.int64))
    weights = kiln.tensor([1.0, 10.0, 100.0], dtype="float64")

    def second_of(product):
        first = kiln.autograd.gradients((product * weights).sum(), [x, values])
        total = (first[0] * weights).sum() + (first[1] * kiln.tensor([[1.0], [7.0]])).sum()
        return [part.tolist() for part in kiln.autograd.gradients(total, [x, values])]

    scattered = kiln.ops.scatter_elements(x.reshape(1, 3), index, values, mode="mul")
    assert second_of(scattered.reshape(3)) == second_of(x * values[0] * values[1])


def test_chains_write_in_place_and_keep_what_is_read():
    x = kiln.zeros(6, 20)
    first = x.index_add(0, kiln.tensor([1, 1]), kiln.ones(2, 20))
    second = first.index_add(0, kiln.tensor([1, 2]), kiln.ones(2, 20))
    third = second.index_copy(0, kiln.tensor([5, 0]), first[1:3])
    sums = [part.sum(1).tolist() for part in (first, second, third)]
    assert sums == [[0, 40, 0, 0, 0, 0], [0, 60, 20, 0, 0, 0], [0, 60, 20, 0, 0, 40]]


def test_index_put(connection):
    x = RANDOM.normal(size=(3, 4, 2)).astype(np.float32)
    values = RANDOM.normal(size=(5, 2)).astype(np.float32)
    i, j = np.array([0, 2, -1, 2, 0]), np.array([1, 3, 3, -1, 0])
    tensors = (kiln.tensor(i), kiln.tensor(j))
    wanted = x.copy()
    np.add.at(wanted, (i, j), values)
    got = kiln.tensor(x).index_put(tensors, kiln.tensor(values), accumulate=True)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6)
    wanted = x.copy()
    wanted[i, j] = 7
    assert kiln.tensor(x).index_put(tensors, 7.0).tolist() == wanted.tolist()
    y = kiln.tensor(x)
    y.index_put_((kiln.tensor([[0], [1]]), kiln.tensor([[0, 1]])), 1, accumulate=True)
    x[:2, :2] += 1
    assert y.tolist() == x.tolist()
    v = kiln.tensor(values, requires_grad=True)
    (kiln.zeros(3, 4, 2).index_put(tensors, v, accumulate=True) ** 2).sum().backward()
    sums = np.zeros((3, 4, 2))
    np.add.at(sums, (i, j), values)
    np.testing.assert_allclose(v.grad.numpy(), 2 * sums[i, j], rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
def test_scatter_reduce_without_the_element_itself(connection, dtype):
    x = kiln.tensor([100, 1, 2], dtype=dtype)
    index, src = kiln.tensor([0, 0, 2]), kiln.tensor([3, 5, 7], dtype=dtype)
    wanted = {"sum": [8, 1, 7], "prod": [15, 1, 7], "amax": [5, 1, 7], "amin": [3, 1, 7]}
    for reduce, result in wanted.items():
        assert x.scatter_reduce(0, index, src, reduce, include_self=False).tolist() == result


@pytest.mark.parametrize("act", [
    "x.gather(0, i)", "x.scatter(0, i, v)", "x.scatter(0, i, 7.0)", "x.scatter_add(0, i, v)",
    "x.scatter_reduce(0, i, v, 'sum')", "x.scatter_reduce(0, i, v, 'amax', include_self=False)",
    "x.index_add(0, i, v)", "x.index_copy(0, i, v)", "x.index_reduce(0, i, v, 'prod')",
    "x.index_select(0, i)",
])  # fmt: skip
@pytest.mark.parametrize("places", [[0, -1], [-3, 0], [3, 0]])
def test_an_index_counts_from_no_end(connection, monkeypatch, act, places):
    """As in PyTorch. Without checks, a value known only to the device reads 0, writes nothing."""
    monkeypatch.setattr(checks, "enabled", False)
    named = {"x": kiln.tensor([1.0, 2.0, 3.0]), "v": kiln.tensor([5.0, 7.0])}
    sent = kiln.tensor(places)
    sent.realize()
    for index in (kiln.tensor(places), sent):
        with pytest.raises(IndexError, match=r"is out of range for 3 places: allowed 0\.\.2"):
            eval(act, {**named, "i": index})
    got = eval(act, {**named, "i": kiln.tensor(places) * 1})
    inside = [place in (0, 1, 2) for place in places]
    kept = {"v": named["v"][kiln.tensor(inside)],
            "i": kiln.tensor([place for place in places if place in (0, 1, 2)])}  # fmt: skip
    wanted = eval(act, {**named, **kept})
    if act.startswith(("x.gather", "x.index_select")):
        np.testing.assert_array_equal(got.numpy()[inside], wanted.numpy())
        assert not got.numpy()[np.logical_not(inside)].any()
    else:
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())


def test_a_key_counts_from_the_end(connection):
    x, i = kiln.tensor([1.0, 2.0, 3.0]), kiln.tensor([0, -1])
    assert x[i].tolist() == x.take_along_dim(i, 0).tolist() == kiln.take(x, i).tolist() == [1, 3]
    assert kiln.take_along_axis(x, i * 1, axis=0).tolist() == [1, 3]
    assert x.index_put((i,), kiln.ones(2), accumulate=True).tolist() == [2, 2, 4]
    matrix = kiln.tensor([[1, 2], [3, 4], [5, 6]])
    assert matrix.index_select(0, kiln.tensor(1)).tolist() == [[3, 4]]
    with pytest.raises(kiln.InvalidArgument, match=r"shape \(1, 2\); it must have one dimension"):
        matrix.index_select(0, kiln.tensor([[0, 1]]))
