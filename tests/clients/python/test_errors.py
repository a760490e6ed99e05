"""Every error names what was wrong, what would be right, and the line of the user's program."""

import inspect
import pathlib
import pickle
import traceback

import numpy as np
import pytest

import kiln
from kiln import nn
from kiln._session import connection as _connection
from kilnd_process import Kilnd

# Each mistake is on its own line, which the message must name.
MISTAKES = {
    "two shapes": (lambda: kiln.zeros(2, 3)
                   + kiln.zeros(4), ["(2, 3)", "(4,)", "broadcast"]),
    "two dtypes": (lambda: kiln.zeros(2, dtype="uint64")
                   + kiln.zeros(2, dtype="int8"), ["uint64", "int8", "cast"]),
    "a dtype": (lambda:
                kiln.zeros(2) & 1, ["float32", "integer"]),
    "a dtype's name": (lambda:
                       kiln.zeros(2, dtype="float"), ["float", "float32"]),
    "a number": (lambda:
                 kiln.zeros(2, dtype="uint8") + 300, ["300", "uint8"]),
    "an axis": (lambda:
                kiln.zeros(2, 3).sum(2), ["axis 2", "[-2, 2)"]),
    "an axis twice": (lambda:
                      kiln.sum(kiln.zeros(2, 3), axis=(0, -2)), ["axis 0", "twice"]),
    "an axis of a function": (lambda:
                              kiln.concat([kiln.zeros(2)], axis=1), ["axis 1"]),
    "a shape": (lambda:
                kiln.zeros(2, 3).reshape(4, -1), ["(2, 3)", "multiple of 4"]),
    "a product": (lambda:
                  kiln.zeros(2, 3) @ kiln.zeros(2, 3), ["matmul", "(2, 3)"]),
    "an index": (lambda:
                 kiln.zeros(2, 3)[0, 3], ["index 3", "dimension 1", "[-3, 3)"]),
    "an index array": (lambda:
                       kiln.zeros(2, 3)[[0, 5]], ["index 5", "allowed -2..1"]),
    "a layer": (lambda:
                nn.Linear(3, 4)(kiln.zeros(2, 5)), ["(2, 5)", "(4, 3)"]),
    "in place": (lambda:
                 kiln.zeros(2).add_(kiln.zeros(3, 2)), ["(3, 2)", "(2,)"]),
    "a gradient": (lambda:
                   kiln.zeros(2, dtype="int32").requires_grad_(), ["int32", "floats"]),
    "no scalar": (lambda:
                  kiln.zeros(2, requires_grad=True).backward(), ["(2,)", "scalar"]),
    "an attribute": (lambda:
                     kiln.zeros(2).softmax("x"), ["dim", "'x'", "integer"]),
    "a name": (lambda:
               kiln.isdtype(kiln.bool, "float"), ["'float'", "real floating"]),
    "a size": (lambda:
               kiln.zeros(2.0, 3), ["a size is 2.0", "integer"]),
    "a fraction of an axis": (lambda:
                              kiln.zeros(2, 3).sum(1.0), ["dim is 1.0", "integer"]),
    "two unknown sizes": (lambda:
                          kiln.zeros(2, 3).view(-1, -1), ["(-1, -1)", "only one"]),
    "parts of nothing": (lambda:
                         kiln.zeros(2, 3).split(0), ["parts of 0", "1 or more"]),
    "no chunks": (lambda:
                  kiln.zeros(2, 3).chunk(0), ["0 chunks"]),
    "nothing to choose": (lambda:
                          kiln.zeros(0, 3).argmax(0), ["argmax", "(0, 3)", "no element"]),
    "a seed": (lambda:
               kiln.manual_seed("one"), ["'one'", "an int"]),
    "not tensors": (lambda:
                           kiln.load(__file__), ["test_errors.py", ".safetensors", ".npz"]),
    "places": (lambda:
               kiln.zeros(3).scatter(0, kiln.zeros(2), kiln.ones(2)), ["float32", "integers"]),
    "places of an op": (lambda:
                        kiln.ops.scatter(kiln.zeros(3), kiln.zeros(2), kiln.ones(2)),
                        ["scatter", "float32", "integer"]),
    "values": (lambda:
               kiln.ops.scatter(kiln.zeros(3), kiln.zeros(2, dtype="int8"), kiln.ones(5)),
               ["(5,)", "must have shape (2,)"]),
    "an equation": (lambda:
                    kiln.einsum("ij,jk->il", kiln.ones(2, 3), kiln.ones(3, 4)), ["'l'", "operand"]),
    "an equation's sizes": (lambda:
                            kiln.einsum("ij,jk->ik", kiln.ones(2, 3), kiln.ones(4, 4)),
                            ["'j'", "3 and 4", "equal"]),
    "an equation's operands": (lambda:
                               kiln.einsum("ij,jk->ik", kiln.ones(2, 3)), ["2 operands", "1"]),
    "no square": (lambda:
                  kiln.linalg.inv(kiln.ones(2, 3)), ["inv", "(2, 3)", "square"]),
    "no square factor": (lambda:
                         kiln.linalg.cholesky(kiln.ones(3, 2)), ["cholesky", "(3, 2)", "square"]),
    "large matrices": (lambda:
                       kiln.linalg.inv(kiln.ones(600, 600)), ["(600, 600)", "512", "blocks"]),
    "a word": (lambda:
               kiln.gelu(kiln.ones(3), approximate="quick"), ["quick", '"none" or "tanh"']),
    "a fraction": (lambda:
                   nn.functional.dropout(kiln.ones(3), 1.5), ["1.5", "[0, 1]"]),
    "labels": (lambda:
               kiln.cross_entropy(kiln.ones(4, 3), kiln.ones(4)), ["float32(4,)", "integers"]),
    "vectors of three": (lambda:
                         kiln.linalg.cross(kiln.ones(2, 4), kiln.ones(4)), ["axis 1", "size 4"]),
    "shifts": (lambda:
               kiln.roll(kiln.ones(2, 3), (1, 2), 0), ["roll"]),
    "a number too large": (lambda:
                           kiln.ones(2, dtype="float16") + 1e6, ["1000000.0", "float16", "wider"]),
    "a system": (lambda:
                 kiln.linalg.solve(kiln.ones(2, 2), kiln.ones(3)), ["(2, 2)", "(3,)", "must be"]),
    "an axis of sort": (lambda:
                        kiln.sort(kiln.zeros(2, 3), axis=2), ["axis 2", "[-2, 2)"]),
    "an axis of cumsum": (lambda:
                          kiln.zeros(2, 3).cumsum(4), ["axis 4", "[-2, 2)"]),
    "k": (lambda:
          kiln.zeros(3).topk(5), ["topk of 5", "size 3", "[0, 3]"]),
    "a variable's value": (lambda:
                           kiln.Variable("n", 1, 8).bind(9), ["n", "9", "1 to 8"]),
    "a stored number": (lambda:
                        kiln.zeros(2, dtype="float8_e5m2") + 1, ["float8_e5m2", "cast"]),
    "too large": (lambda:
                  kiln.zeros(1 << 40, 1 << 40), ["too many elements"]),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_names_its_line(name):
    act, words = MISTAKES[name]
    with pytest.raises((kiln.KilnError, TypeError)) as caught:
        act()
    lines, first = inspect.getsourcelines(act)
    message = str(caught.value)
    for word in words:
        assert word in message
    own = {f"test_errors.py:{number}" for number in range(first, first + len(lines))}
    assert caught.value.source in own and caught.value.source in message


def test_the_line_is_the_users_and_not_the_librarys():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(5, 2))
    with pytest.raises(kiln.InvalidArgument) as caught:
        model(kiln.zeros(1, 3))
    here = traceback.extract_tb(caught.value.__traceback__)[0]
    assert caught.value.source == f"{pathlib.Path(here.filename).name}:{here.lineno}"


def test_an_error_that_the_daemon_finds_names_the_line_that_built_the_node(connection):
    y = kiln.tensor([[1.0]]).expand(1 << 25, 1 << 25)  # more than this daemon takes
    line = inspect.currentframe().f_lineno - 1
    for tensor in (y.sum(), (y * 2).sum(axis=0)):
        with pytest.raises(kiln.InvalidArgument) as caught:
            tensor.numpy()
        assert caught.value.source == f"test_errors.py:{line}"
        assert caught.value.source in str(caught.value) and "the limit" in str(caught.value)
        with pytest.raises(kiln.InvalidArgument, match="limit"):
            print(tensor)
        assert "no value" in repr(tensor) and "limit" in repr(tensor)
    np.testing.assert_array_equal((kiln.ones(2) + 1).numpy(), 2)


def test_a_barrier_raises_what_nobody_has_seen():
    with Kilnd(threads=2, flags=["--memory_limit=64MiB"]) as daemon:
        with kiln.connect(daemon.address) as connection:
            one = kiln.tensor(1.0).realize()

            def large():
                return (kiln.zeros(10 << 20) + one).realize()

            first = large()
            connection.synchronize()
            second = large()
            with pytest.raises(kiln.ResourceExhausted, match="do not fit"):
                connection.synchronize()
            connection.synchronize()  # it was reported by now
            with pytest.raises(kiln.ResourceExhausted):
                second[:1].numpy()
            connection.synchronize()
            del second
            large()
            with pytest.raises(kiln.ResourceExhausted):
                connection.synchronize()
            result = (large() + 1).realize()
            with pytest.raises(kiln.ResourceExhausted, match="an input failed"):
                result.numpy()
            connection.synchronize()
            assert first[0].item() == 1
        _connection._default = None


def test_so_does_one_in_a_traced_function(connection):
    @kiln.jit
    def step(x):
        y = x * 2
        return y.expand(1 << 25, 1 << 25)

    with pytest.raises(kiln.InvalidArgument, match="limit") as caught:
        step(kiln.ones(1, 1)).numpy()
    first = inspect.getsourcelines(step._function)[1]
    assert caught.value.source == f"test_errors.py:{first + 3}"


def branch(x):
    if x.sum() > 0:
        return x
    return -x


def loop(x):
    while x.max() < 10:
        x = x * 2
    return x


def count(x):
    return sum(x for _ in range(x.sum().int()))


def place(x):
    return [1, 2, 3][x.argmax()]


def number(x):
    return x * float(x[0])


@pytest.mark.parametrize(
    ("function", "line", "reader"),
    [(branch, 1, "bool()"), (loop, 1, "bool()"), (count, 1, "index"), (place, 1, "index"),
     (number, 1, "float()")],
)  # fmt: skip
def test_a_branch_on_values_within_jit(stand_in, function, line, reader):
    with pytest.raises(kiln.TraceError) as caught:
        kiln.jit(function)(kiln.ones(3))
    assert caught.value.source == f"test_errors.py:{inspect.getsourcelines(function)[1] + line}"
    for word in (reader, "kiln.where", caught.value.source):
        assert word in str(caught.value)


@pytest.mark.parametrize("act", [
    kiln.nonzero, kiln.unique_values, lambda x: kiln.repeat(x, x.int()), lambda x: x[x > 0],
    lambda x: x.masked_select(x > 0), lambda x: x.tolist(), lambda x: x.allclose(x),
    lambda x: f"{x.sum():.2f}",
])  # fmt: skip
def test_a_shape_that_depends_on_values_within_jit(stand_in, act):
    @kiln.jit
    def step(x):
        act(x)
        return x

    with pytest.raises(kiln.TraceError, match=r"value is read.*test_errors\.py:"):
        step(kiln.ones(3))


def test_errors_travel_between_processes():
    with pytest.raises(kiln.OutOfRange) as caught:
        kiln.zeros(2)[7]
    copied = pickle.loads(pickle.dumps(caught.value))
    assert type(copied) is kiln.OutOfRange and str(copied) == str(caught.value)


def test_who_expects_pytorchs_pair_is_told_where_the_places_are(stand_in):
    x = kiln.tensor([[1.0, 5.0], [7.0, 2.0]])
    advice = r"the values alone; x\.max\(dim\) gives both, x\.argmax\(dim\) the places"
    with pytest.raises(AttributeError, match=advice):
        kiln.max(x, axis=0).indices  # noqa: B018
    with pytest.raises(AttributeError, match=advice):
        x.amax(0).indices  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'values'$"):
        x.values  # noqa: B018


@pytest.mark.parametrize("name", ["max", "min", "median", "cummax", "cummin"])
def test_places_are_along_one_dimension(name):
    with pytest.raises(kiln.InvalidArgument, match=r"\(0, 1\).*name one dimension"):
        getattr(kiln.zeros(2, 3), name)((0, 1))
    with pytest.raises(kiln.InvalidArgument, match=r"axis 2|dimension 2"):
        getattr(kiln.zeros(2, 3), name)(2)
