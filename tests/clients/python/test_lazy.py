"""Laziness, shapes, dtypes, graphs and errors: everything that needs no daemon."""

import operator
import pathlib

import numpy as np
import pytest

import kiln
from kiln._basics import short_floats
from kiln._basics.dtype_table import FORMATS
from kiln._graph import build as _build
from op_table.row import FLOAT8


def graph_of(*tensors):
    return _build.build([tensor._node for tensor in tensors]).graph


def ops_of(*tensors):
    return [node.op for node in graph_of(*tensors).nodes]


def test_nothing_is_sent_before_a_value_is_read(stand_in):
    x = kiln.tensor(np.ones((2, 3), np.float32))
    y = (x * 2 + 1).sum()
    assert (y.shape, y.dtype) == ((), kiln.float32)
    assert not stand_in.runs and not stand_in.uploads
    y.item()
    assert len(stand_in.runs) == 1 and len(stand_in.uploads) == 1


def test_a_realised_tensor_is_an_input_and_is_not_computed_again(stand_in):
    x = kiln.tensor([1.0, 2.0])
    y = (x * 2).realize()
    y.realize()
    y.numpy()
    assert len(stand_in.runs) == 1
    z = y + 1
    z.realize()
    assert len(stand_in.runs) == 2
    assert ops_of(y + 1) == ["input", "const", "add"]


def test_equal_nodes_stand_in_the_graph_once():
    x = kiln.tensor([1.0, 2.0])
    assert ops_of((x * 2) + (x * 2)) == ["input", "const", "mul", "add"]


def test_constants_that_python_calls_equal_are_told_apart():
    x = kiln.tensor([1.0])
    graph = graph_of(x / 0.0, x / -0.0)
    constants = [node.attributes["value"].f for node in graph.nodes if node.op == "const"]
    assert [np.signbit(value) for value in constants] == [False, True]


def test_realize_computes_several_tensors_in_one_program(stand_in):
    x = kiln.tensor([1.0, 2.0])
    kiln.realize(x + 1, x * 2)
    assert len(stand_in.runs) == 1 and len(stand_in.runs[0][2]) == 2


def test_a_handle_is_released_when_the_tensor_dies(stand_in):
    x = (kiln.tensor([1.0]) + 1).realize()
    handle = x._node.buffer.handle
    releases = stand_in.stream.releases
    releases.drop(len(releases))
    del x
    assert handle in releases.first(len(releases))["handles"]


def test_the_dead_are_counted_by_their_bytes(stand_in):
    releases = stand_in.stream.releases
    tensors = [kiln.ones(1000).realize() for _ in range(5)]
    before = releases.nbytes()
    del tensors[:2]
    assert releases.nbytes() == before + 2 * 4000
    del tensors[:2]
    assert releases.nbytes() == releases.nbytes() == before + 4 * 4000
    releases.drop(len(releases) - 1)
    assert releases.nbytes() == 4000


def test_nodes_carry_the_users_line():
    x = kiln.tensor([1.0, 2.0])
    y = x.relu()
    node = graph_of(y).nodes[-1]
    name, line = node.source.split(":")
    text = pathlib.Path(__file__).read_text().splitlines()[int(line) - 1]
    assert name == "test_lazy.py" and "x.relu()" in text


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: kiln.zeros(2, 3) + kiln.zeros(4), ["(2, 3)", "(4,)", "test_lazy.py:"]),
        (lambda: kiln.zeros(2, 3) @ kiln.zeros(2, 3), ["(2, 3)", "matmul", "test_lazy.py:"]),
        (lambda: kiln.zeros(2, 3).sum(2), ["axis 2", "2 dimensions"]),
        (lambda: kiln.zeros(2, 3).reshape(7), ["(2, 3)", "(7,)"]),
        (lambda: kiln.zeros(2, 3).reshape(-1, 4), ["(2, 3)", "multiple of 4"]),
        (lambda: kiln.zeros(2, 3).permute(0, 0), ["permutation", "(2, 3)"]),
        (lambda: kiln.zeros(2, 3).expand(3, 3), ["(2, 3)", "(3, 3)"]),
        (lambda: kiln.zeros(2)[5], ["index 5", "(2,)"]),
        (lambda: kiln.zeros(2)[0, 0], ["2 indices", "(2,)"]),
        (lambda: kiln.cat([kiln.zeros(2, 3), kiln.zeros(2, 4)]), ["(2, 3)", "(2, 4)"]),
        (lambda: kiln.conv2d(kiln.zeros(1, 3, 8, 8), kiln.zeros(4, 2, 3, 3)), ["must be 3"]),
        (lambda: kiln.linear(kiln.zeros(2, 3), kiln.zeros(4, 5)), ["(2, 3)", "(4, 5)"]),
        (lambda: kiln.zeros(2) & 1, ["float32", "integer_or_bool"]),
        (lambda: kiln.tensor([1]).requires_grad_(), ["int64"]),
        (lambda: kiln.zeros(2).assign(kiln.zeros(3)), ["(2,)", "(3,)"]),
        (lambda: kiln.cross_entropy(kiln.zeros(4, 10), kiln.zeros(5)), ["(5,)", "(4, 10)"]),
        (lambda: kiln.tensor([1], "uint64") + kiln.tensor([1], "int8"), ["uint64", "int8"]),
        (lambda: kiln.tensor([1, 2], "uint8") + 300, ["300", "uint8"]),
        (lambda: kiln.max_pool2d(kiln.zeros(1, 1, 2, 2), 3), ["window", "3"]),
    ],
)
def test_wrong_use_raises_at_once_and_says_what_met(build, words):
    with pytest.raises(kiln.KilnError) as caught:
        build()
    for word in words:
        assert word in str(caught.value)


def test_errors_are_what_python_calls_them():
    with pytest.raises(ValueError):
        kiln.zeros(2) + kiln.zeros(3)
    assert issubclass(kiln.ResourceExhausted, MemoryError)
    assert issubclass(kiln.Unavailable, ConnectionError)


def test_a_chained_assignment_is_refused_instead_of_lost():
    x = kiln.zeros(2, 3)
    with pytest.raises(kiln.InvalidArgument, match=r"x\[0, 1\] = 5"):
        x[0][1] = 5
    for change in (lambda: x[0].zero_(), lambda: x[0].add_(1), lambda: x[:, 1].copy_(x[:, 0])):
        with pytest.raises(kiln.InvalidArgument, match=r"temporary.*x\[0\] = 5"):
            change()
    row = x[0]
    row[1] = 5
    row.zero_().add_(1)
    (x + 1).zero_()
    x.reshape(6)[0:3].clone().add_(1)
    holder = [kiln.zeros(3)]
    holder[0][1] = 5
    assert ops_of(holder[0])[-1] == "where"


def test_a_change_of_a_result_does_not_change_what_it_was_made_from():
    for act in (lambda x: x[:], lambda x: x[...], lambda x: x.reshape(2, 3), lambda x: x.flip(),
                lambda x: x.permute(0, 1), lambda x: x.expand(2, 3), lambda x: x.squeeze(),
                lambda x: x.trunc(), lambda x: x**1):  # fmt: skip
        x = kiln.zeros(2, 3, dtype="int64")
        before = x._node
        y = act(x)
        y += 1
        assert x._node is before and y is not x


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ("int8", "int32", "int32"), ("uint8", "int8", "int16"), ("uint32", "int32", "int64"),
        ("bool", "float32", "float32"), ("int64", "float32", "float32"),
        ("float16", "bfloat16", "float32"), ("float32", "float64", "float64"),
        ("uint16", "int64", "int64"), ("bool", "uint8", "uint8"),
    ],
)  # fmt: skip
def test_dtypes_promote(a, b, wanted):
    for left, right in ((a, b), (b, a)):
        result = kiln.zeros(2, dtype=left) + kiln.zeros(2, dtype=right)
        assert result.dtype.name == wanted


@pytest.mark.parametrize(
    ("dtype", "number", "wanted"),
    [
        ("float32", 2.5, "float32"), ("float16", 2.5, "float16"), ("float32", 2, "float32"),
        ("int32", 2, "int32"), ("int32", 2.5, "float32"), ("uint8", True, "uint8"),
        ("bool", 2, "int64"), ("int64", np.float64(2.5), "float32"),
    ],
)  # fmt: skip
def test_python_numbers_take_the_tensors_dtype(dtype, number, wanted):
    x = kiln.zeros(2, dtype=dtype)
    assert (x + number).dtype.name == wanted
    assert (number + x).dtype.name == wanted


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1.5, "float32", ()), (2, "int64", ()), (True, "bool", ()),
        ([[1, 2], [3, 4]], "int64", (2, 2)),
        ([1.0, 2], "float32", (2,)), (np.zeros((2, 0)), "float64", (2, 0)),
        (np.zeros(3, np.uint8), "uint8", (3,)), (np.float64(1), "float64", ()),
    ],
)  # fmt: skip
def test_tensors_of_python_and_numpy_data(data, dtype, shape):
    x = kiln.tensor(data)
    assert (x.dtype.name, x.shape) == (dtype, shape)
    np.testing.assert_array_equal(x.numpy(), np.asarray(data))


def test_a_tensor_of_tensors_is_stacked_and_reads_nothing(stand_in):
    a, b = kiln.zeros(3) + 1, kiln.zeros(3, requires_grad=True)
    x = kiln.tensor([[a, b], [b, a]])
    assert (x.shape, x.requires_grad) == ((2, 2, 3), False) and not stand_in.runs
    assert kiln.tensor([a[0], 2]).shape == (2,)
    assert kiln.asarray([a, b], dtype="int8").dtype is kiln.int8
    with pytest.raises(kiln.InvalidArgument, match=r"stack of shapes \(3,\) and \(2,\)"):
        kiln.tensor([a, kiln.zeros(2)])


def test_data_is_copied():
    array = np.ones(3, np.float32)
    x = kiln.tensor(array)
    array[:] = 5
    np.testing.assert_array_equal(x.numpy(), 1)


def test_bfloat16_rounds_to_even():
    values = np.array([1.0, 1.00390625, 1.01171875, 3.14159], np.float32)
    np.testing.assert_allclose(
        kiln.tensor(values, "bfloat16").numpy(), [1.0, 1.0, 1.015625, 3.140625])


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_rounds_to_the_nearest_and_ties_to_even(name):
    dtype = getattr(kiln, name)
    numbers = short_floats.widen(np.arange(256, dtype=np.uint8), dtype)
    finite = np.unique(numbers[np.isfinite(numbers)]).astype(np.float64)
    float_format = FORMATS[dtype]
    assert finite[-1] == kiln.finfo(dtype).max and len(finite) == 2 * float_format.beyond_bits - 1
    np.testing.assert_array_equal(kiln.tensor(numbers, dtype).numpy(), numbers)
    x = np.random.default_rng(0).normal(size=2000) * np.repeat(10.0 ** np.arange(-5, 3), 250)
    nearest = finite[np.abs(finite - x[:, None]).argmin(1)]
    np.testing.assert_array_equal(kiln.tensor(x, dtype).numpy(), nearest.astype(np.float32))
    even = short_floats.widen(np.arange(2, 40, 2, dtype=np.uint8), dtype).astype(np.float64)
    for side in (-1, 1):
        ties = (even + finite[np.searchsorted(finite, even) + side]) / 2
        np.testing.assert_array_equal(kiln.tensor(ties, dtype).numpy(), even)
    beyond = kiln.tensor([1e9, -1e9, np.nan, np.inf], dtype).numpy()
    most = finite[-1]
    infinity = np.inf if float_format.has_infinity else most
    np.testing.assert_array_equal(beyond, [most, -most, np.nan, infinity])


def test_repr_shows_values_or_says_lazy():
    x = kiln.tensor([1.0, 2.5])
    assert repr(x) == "tensor([1. , 2.5], dtype=float32)"
    assert repr(x + 1) == "tensor(lazy, shape=(2,), dtype=float32)"
    assert repr(kiln.zeros(2, requires_grad=True) * 2) == (
        "tensor(lazy, shape=(2,), dtype=float32)")


def test_conversions():
    assert int(kiln.tensor(3)) == 3 and float(kiln.tensor(2.5)) == 2.5
    assert bool(kiln.tensor(True)) and [10, 20][kiln.tensor(1)] == 20
    assert f"{kiln.tensor(2.5):.1f}" == "2.5"
    assert kiln.tensor([[1, 2]]).tolist() == [[1, 2]]
    assert len(kiln.zeros(4, 2)) == 4
    with pytest.raises(kiln.InvalidArgument, match="one element"):
        kiln.zeros(2).item()


def test_shape_attributes():
    x = kiln.zeros(2, 3, 4)
    assert (x.ndim, x.numel(), x.size(1), x.T.shape, x.mT.shape) == (3, 24, 3, (4, 3, 2), (2, 4, 3))
    assert x.nbytes == 96 and x.dim() == 3 and tuple(x.size()) == (2, 3, 4)


def test_numpy_leaves_arithmetic_to_the_tensor():
    for array in (np.ones(3, np.float32), np.float32(2)):
        for act in (operator.add, operator.sub, operator.pow, operator.lt, operator.eq):
            assert isinstance(act(array, kiln.zeros(3)), kiln.Tensor)
    assert isinstance(np.ones((2, 3)) @ kiln.zeros(3), kiln.Tensor)
    assert isinstance(np.sin(kiln.tensor([1.0])), np.ndarray)


def test_integers_that_only_uint64_holds(stand_in):
    x = kiln.full((2,), 2**64 - 1, "uint64")
    assert graph_of(x).nodes[0].attributes["value"].i == -1
    with pytest.raises(kiln.InvalidArgument, match="is not a value of uint64"):
        kiln.full((2,), 2**64, "uint64")


def test_a_deep_graph_needs_no_recursion(stand_in):
    x = kiln.tensor([1.0])
    for _ in range(20000):
        x = x + 1
    x.realize()
    assert len(stand_in.graphs[0][1].nodes) == 20002
