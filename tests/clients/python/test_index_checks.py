"""Indices out of range that only the device knows give an error with the next read."""

import os
import subprocess
import sys

import numpy as np
import pytest

import kiln
import kiln.functional as F
from kiln import nn
from kiln._graph import build, checks
from kiln._graph.node import TABLE
from kiln._session import connection as _connection
from kiln._session import verdicts
from kilnd_process import NO_PROBES, Kilnd
from meshes import FOUR, THREE
from sent_operations import sent_operations

# Each call is a program of its own.
pytestmark = pytest.mark.filterwarnings("ignore:.* has computed 32 programs in a row")

# In the tests below x is a float tensor (5, 3), i an index (3,), v values (3, 3), and BAD replaces
# a valid index.
BAD = 7


def _changed(tensor, change):
    copy = tensor * 1
    change(copy)
    return copy


def _put(x, i, v):
    return _changed(x, lambda y: y.__setitem__(i, v))


class Call:
    """A public function that takes indices: its name in errors, the number of valid indices, and
    whether negative ones count from the end."""

    def __init__(self, name, function, size=5, from_end=False, differentiable=True):
        self.name, self.function, self.size = name, function, size
        self.from_end, self.differentiable = from_end, differentiable

    def __repr__(self):
        return self.name

    def message(self, value):
        """Returns the beginning of the error for a value out of range."""
        if self.size is None:
            return f" {value} is out of range: it must not be negative"
        low = -self.size if self.from_end else 0
        return f" {value} is out of range for {self.size} "


def _along(index, x):
    """Returns an index for each column."""
    return index.unsqueeze(1).expand(3, x.shape[1])


EMBEDDING = Call("embedding", lambda x, i, v: F.embedding(i, x))
LAYER = Call("embedding", lambda x, i, v: nn.Embedding.from_pretrained(x, freeze=False)(i), differentiable=False)
BAG = Call("embedding_bag", lambda x, i, v: F.embedding_bag(i.reshape(1, 3), x))
KEY = Call("tensor[...]", lambda x, i, v: x[i], from_end=True)
SECOND_KEY = Call("tensor[...]", lambda x, i, v: x.T[1:, i, None], from_end=True)
TWO_KEYS = Call("tensor[...]", lambda x, i, v: x[i, i * 0], from_end=True)
TAKE = Call("take", lambda x, i, v: kiln.take(x, i, axis=0), from_end=True)
SELECT = Call("index_select", lambda x, i, v: x.index_select(0, i))
SORTER = Call("take", lambda x, i, v: kiln.searchsorted(x[:, 0], v, sorter=i), from_end=True, differentiable=False)
GATHER = Call("gather", lambda x, i, v: x.gather(0, _along(i, x)))
ALONG = Call("take_along_dim", lambda x, i, v: x.take_along_dim(_along(i, x), 0), from_end=True)
ALONG_AXIS = Call("take_along_dim", lambda x, i, v: kiln.take_along_axis(x, _along(i, x), axis=0), from_end=True)
SCATTER = Call("scatter", lambda x, i, v: x.scatter(0, _along(i, x), v))
NUMBER = Call("scatter", lambda x, i, v: x.scatter(0, _along(i, x), 2.0))
SCATTER_ADD = Call("scatter_add", lambda x, i, v: x.scatter_add(0, _along(i, x), v))
IN_PLACE = Call("scatter_add", lambda x, i, v: _changed(x, lambda y: y.scatter_add_(0, _along(i, x), v)),
                differentiable=False)
SCATTER_REDUCE = Call("scatter_reduce", lambda x, i, v: x.scatter_reduce(0, _along(i, x), v, "amax"))
WITHOUT_SELF = Call("scatter_reduce",
                    lambda x, i, v: x.scatter_reduce(0, _along(i, x), v, "sum", include_self=False))
INDEX_ADD = Call("index_add", lambda x, i, v: x.index_add(0, i, v))
INDEX_COPY = Call("index_copy", lambda x, i, v: x.index_copy(0, i, v))
INDEX_REDUCE = Call("index_reduce", lambda x, i, v: x.index_reduce(0, i, v, "prod"))
INDEX_PUT = Call("index_put", lambda x, i, v: x.index_put((i,), v), from_end=True)
ACCUMULATED = Call("index_put", lambda x, i, v: x.index_put((i,), v, accumulate=True), from_end=True)
ASSIGNMENT = Call("tensor[...] = value", _put, from_end=True, differentiable=False)
ONE_HOT = Call("one_hot", lambda x, i, v: F.one_hot(i, 5), differentiable=False)
COUNT = Call("bincount", lambda x, i, v: kiln.bincount(i, length=5), size=None, differentiable=False)
CROSS_ENTROPY = Call("cross_entropy", lambda x, i, v: F.cross_entropy(x.T, i))
OF_A_VECTOR = Call("cross_entropy", lambda x, i, v: F.cross_entropy(x[:, 0], i[1]))
LOSS_LAYER = Call("cross_entropy", lambda x, i, v: nn.CrossEntropyLoss(label_smoothing=0.1)(x.T, i))
NLL = Call("nll_loss", lambda x, i, v: F.nll_loss(x.T, i))

# The functions that are made of each op of the table that takes indices, or do the same. The op
# itself, in kiln.ops, behaves as the table says.
OF_OP = {
    "gather": [EMBEDDING, LAYER, BAG, KEY, SECOND_KEY, TAKE, SELECT, SORTER],
    "gather_elements": [GATHER],
    "take": [TAKE],
    "take_along_axis": [ALONG, ALONG_AXIS],
    "index": [KEY, TWO_KEYS],
    "scatter": [INDEX_ADD, INDEX_COPY, INDEX_REDUCE, ASSIGNMENT],
    "scatter_add": [COUNT],
    "scatter_elements": [SCATTER, NUMBER, SCATTER_ADD, IN_PLACE],
    "put_along_axis": [SCATTER_REDUCE, WITHOUT_SELF],
    "index_put": [INDEX_PUT, ACCUMULATED],
    "one_hot": [ONE_HOT],
    "cross_entropy": [CROSS_ENTROPY, OF_A_VECTOR, LOSS_LAYER],
    "nll_loss": [NLL],
}
CALLS = list(dict.fromkeys(call for calls in OF_OP.values() for call in calls))
FLOATS = [call for call in CALLS if call.differentiable]


def values():
    random = np.random.default_rng(0)
    return (kiln.tensor(random.normal(size=(5, 3)).astype(np.float32)).realize(),
            kiln.tensor(random.normal(size=(3, 3)).astype(np.float32)).realize())


def only_there(numbers, dtype="int64"):
    """Returns a tensor whose values this process does not know."""
    return (kiln.tensor(np.array(numbers, dtype)) * 1).realize()


def good(call):
    """Returns indices within every limit, including its ends."""
    return [-5, 4, 0] if call.from_end else [4, 0, 1]


def bad(call):
    return [1, -2 if call.size is None else BAD, 0]


def raises(call, value=None):
    value = value if value is not None else bad(call)[1]
    return pytest.raises(kiln.OutOfRange, match="^" + (call.name + ": ").replace("[", r"\[").replace(".", r"\.")
                         + r"\w+" + call.message(value))


def test_each_op_that_takes_indices_has_its_calls():
    found = {op.name for op in TABLE.values()
             if (op.special_operand >= 0 and op.operands[op.special_operand].rstrip("*?") in ("index", "labels"))
             or any(attribute.name == "classes" for attribute in op.attributes)}
    assert found == set(OF_OP)
    # Operands of only integers under other names are not indices: the keys of random numbers.
    others = {op.operands[op.special_operand] for op in TABLE.values()
              if op.special_operand >= 0 and op.special_class in ("integer", "numeric")} - {"index", "index*", "labels"}
    assert not others


@pytest.mark.parametrize("call", CALLS, ids=repr)
class TestEachCall:
    """Tests of each function that takes indices."""

    def test_eager(self, connection, call):
        x, v = values()
        wrong = call.function(x, only_there(bad(call)), v)
        with raises(call) as caught:
            wrong.numpy()
        assert isinstance(caught.value, IndexError)
        assert caught.value.source.startswith("test_index_checks.py:")
        assert (x + 1).shape == (x + 1).numpy().shape
        call.function(x, only_there(good(call)), v).numpy()

    @pytest.mark.parametrize("value", [5, -1, -6, 2**40, -(2**40), 2**63 - 1, -(2**63)])
    def test_the_ends(self, connection, call, value):
        x, v = values()
        tensor = call.function(x, only_there([1, value, 0]), v)
        is_bad = value < 0 if call.size is None else not (-5 if call.from_end else 0) <= value < 5
        if is_bad:
            with raises(call, value):
                tensor.numpy()
        else:
            tensor.numpy()

    def test_traced(self, connection, call):
        x, v = values()
        traced = kiln.jit(lambda x, i, v: call.function(x, i, v) * 2)
        wrong = traced(x, only_there(bad(call)), v)
        with raises(call):
            x.numpy()
        with raises(call):
            wrong.numpy()
        for _ in range(3):
            result = traced(x, only_there(good(call)), v)
        result.numpy()
        x.numpy()

    def test_known_here(self, connection, call):
        x, v = values()
        with raises(call):
            call.function(x, kiln.tensor(bad(call)), v).numpy()
        call.function(x, kiln.tensor(good(call)), v).numpy()
        if call.from_end:
            with raises(call, -6):
                call.function(x, kiln.tensor([0, -6, 1]), v).numpy()

    def test_on_a_mesh(self, session, call):
        x, v = [kiln.shard(tensor, THREE, ()) for tensor in values()]
        for index in (only_there(bad(call)), kiln.shard(only_there(bad(call)), THREE, ("data",))):
            wrong = call.function(x, index, v)
            with raises(call):
                wrong.numpy()
        with raises(call):
            kiln.jit(call.function)(x, kiln.shard(only_there(bad(call)), THREE, ("data",)), v).numpy()
        call.function(x, kiln.shard(only_there(good(call)), THREE, ("data",)), v).numpy()

    def test_not_checked(self, connection, call, monkeypatch):
        monkeypatch.setattr(checks, "enabled", False)
        x, v = values()
        call.function(x, only_there(bad(call)), v).numpy()


@pytest.mark.parametrize("call", FLOATS, ids=repr)
@pytest.mark.parametrize("traced", [False, True])
def test_gradients(connection, call, traced):
    """Also if only the gradient is requested, and for the gradient of a gradient."""
    x, v = values()

    def slope(x, i):
        return kiln.grad(lambda x: (call.function(x, i, v) ** 2).sum())(x)

    def curvature(x, i):
        return kiln.grad(lambda x: (slope(x, i) ** 2).sum())(x)

    for function in (slope, curvature):
        run = kiln.jit(function) if traced else function
        gradient = run(x, only_there(bad(call)))
        with raises(call):
            gradient.numpy()
        run(x, only_there(good(call))).numpy()


def test_the_error_names_the_line_and_what_is_allowed(connection):
    table = kiln.zeros(50257, 2)
    rows = F.embedding(only_there([3, 50257, 7]), table)
    line = sys._getframe().f_lineno - 1
    with pytest.raises(kiln.OutOfRange) as caught:
        rows.sum().item()
    assert str(caught.value) == ("embedding: index 50257 is out of range for 50257 rows: allowed 0..50256 "
                                 f"(test_index_checks.py:{line})")
    with pytest.raises(IndexError, match=r"index -4 is out of range for 3 places: allowed -3\.\.2 \("):
        kiln.zeros(3)[only_there([2, -4])].numpy()


def test_a_label_that_is_ignored(connection):
    logits = kiln.zeros(3, 4)
    for function in (F.cross_entropy, F.nll_loss):
        for labels in (kiln.tensor([0, -100, 3]), only_there([0, -100, 3]), only_there([0, -100, 3], "int8")):
            function(logits, labels).item()
        for labels in ([0, -1, 3], [0, 9, 3]):
            function(logits, only_there(labels), ignore_index=labels[1]).item()
        message = r"label -1 is out of range for 4 classes: allowed 0\.\.3, and -100, which is ignored"
        with pytest.raises(IndexError, match=message):
            function(logits, kiln.tensor([0, -1, -100]))
        with pytest.raises(IndexError, match=message):
            function(logits, only_there([0, -1, -100])).item()
    probabilities = kiln.full((3, 4), 9.0)
    F.cross_entropy(logits, probabilities).item()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_every_dtype_of_an_index(connection, dtype):
    x = kiln.zeros(5)
    largest = int(np.iinfo(dtype).max)
    for call in (lambda i: x[i], lambda i: F.embedding(i, x.reshape(5, 1))):
        call(only_there([4, 0], dtype)).numpy()
        with pytest.raises(IndexError, match=f"index {largest} is out of range"):
            call(only_there([4, largest], dtype)).numpy()
        with pytest.raises(IndexError, match=f"index {largest} is out of range"):
            call(kiln.tensor(np.array([4, largest], dtype))).numpy()


def outputs(tensor):
    return len(build.build([tensor._node]).graph.outputs)


def test_what_needs_no_check(connection):
    """The values are known here, or always valid, or an index out of range has a meaning."""
    x, here, there = kiln.zeros(256, 4), kiln.tensor([0, 1]), only_there([0, 1])
    byte = only_there([0, 1], "uint8")
    sent, far = kiln.tensor([0, 1]).realize(), kiln.tensor([0, 900]).realize()
    short = kiln.tensor([900, 1], dtype="int32").realize()
    for tensor in (x[there], x[far[:1]], x[kiln.arange(256) + 1], x[sent + sent], x[there.int()], x[far.int()],
                   F.cross_entropy(x.T[:2], far.reshape(2), ignore_index=900)):
        assert outputs(tensor) == 2
    for wrong in (far.reshape(1, 2), far.flip(0), short.long(), kiln.arange(257), kiln.full((3,), 256)):
        with pytest.raises(IndexError, match="is out of range for 256 places"):
            x[wrong]
    for tensor in (x[here], x[sent], x[byte], F.embedding(byte, x), x[here, here], x[2:5],
                   F.one_hot(here, 9), x[sent.reshape(2, 1).expand(2, 3)], x[kiln.arange(256)],
                   x[sent[1:]], x[kiln.full((2,), 255)], F.embedding(there[:0], x), kiln.bincount(byte, length=3),
                   kiln.ops.gather(x, there), kiln.ops.cross_entropy(x, kiln.ops.cast(x[:, 0], dtype="int64")),
                   x.sort(0).values, x.topk(2).values, kiln.quantile(x, 0.5), kiln.interp(x, x[:, 0], x[:, 1]),
                   kiln.histc(x, 4, 0, 1), kiln.histogram(x, 4, (0.0, 1.0))[0],
                   F.grid_sample(x.reshape(1, 1, 32, 32), kiln.ones(1, 2, 2, 2) * 3)):
        assert outputs(tensor) == 1


def test_checks_of_one_program_are_one_output(connection):
    x, i, j = kiln.zeros(5), only_there([1, 2]), only_there([3, 4])
    assert outputs(x[i] + x[j] + kiln.zeros(7)[i] + F.embedding(j, x.reshape(5, 1))[:, 0]) == 2
    y = x[i] + kiln.zeros(7)[i]
    graph = build.build([y._node]).graph
    told = [node for node in graph.nodes if node.source.endswith(": check of the indices of tensor[...]")]
    assert [node.op for node in told].count("max") == 1  # one number decides both limits
    assert told[-1].op == "reshape" and list(graph.outputs)[1:] == [list(graph.nodes).index(told[-1])]


def test_what_was_computed_from_it_stays_an_error(connection):
    x = kiln.ones(5)
    wrong, right = x[only_there([9])], x * 2
    together = kiln.stack([wrong, wrong]) + 1
    both = kiln.jit(lambda i: (x[i], x + 1))(only_there([9]))
    for _ in range(2):
        with pytest.raises(IndexError, match="index 9"):
            wrong.numpy()
        with pytest.raises(IndexError, match="index 9"):
            both[0].numpy()
    assert right.tolist() == [2.0] * 5 and both[1].tolist() == [2.0] * 5
    with pytest.raises(IndexError):
        together.numpy()
    assert x.tolist() == [1.0] * 5


@pytest.mark.parametrize("traced", [False, True])
def test_training_goes_on(connection, traced):
    """Weights were updated with results from zeros, and can be read."""
    model = nn.Embedding(5, 2)
    optimizer = kiln.optim.SGD(model.parameters(), lr=0.5)

    def step(index):
        optimizer.zero_grad()
        loss = (model(index) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    run = kiln.jit(step) if traced else step
    before = model.weight.numpy()
    loss = run(only_there([1, 8]))
    with pytest.raises(IndexError, match="embedding: index 8"):
        loss.item()
    changed = model.weight.numpy()
    assert (changed[1] == 0).all() and (changed[0] == before[0]).all()
    assert run(only_there([0, 2])).item() > 0
    connection.synchronize()


def test_a_thousand_replays_lose_no_error(connection):
    x = kiln.ones(5)
    gather = kiln.jit(lambda i: x[i].sum())
    fine, wrong = only_there([1, 2]), only_there([1, 5])
    for broken in (0, 1, 500, 998, 999):
        for number in range(1000):
            result = gather(wrong if number == broken else fine)
        with pytest.raises(IndexError, match="index 5"):
            x.numpy()
        if broken < 999:
            assert result.item() == 2
        x.numpy()


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 10, verdicts.UNREAD_MAX, verdicts.UNREAD_MAX + 1,
                                   verdicts.UNREAD_MAX + 2])
def test_each_run_of_a_number_is_judged(connection, count):
    """Whichever way their checks are read: one by one, or joined on the device."""
    x = kiln.ones(5)
    gather = kiln.jit(lambda i, j: x[i].sum() + x[j].sum())
    one = kiln.jit(lambda i: x[i].sum())
    fine, too, wrong = only_there([1, 2]), only_there([1, 2]), only_there([1, 5])
    for broken in {0, count // 2, count - 1}:
        for number in range(count):
            gather(fine, wrong if number == broken else too)
            one(fine)
        with pytest.raises(IndexError, match="index 5"):
            connection.synchronize()
        connection.synchronize()


@pytest.mark.parametrize("where", [FOUR[2], THREE], ids=["another", "mesh"])
def test_runs_elsewhere_are_judged_together(session, where):
    def there(tensor):
        return tensor.to(where) if isinstance(where, str) else kiln.shard(tensor, where, ())

    x, fine, wrong = there(kiln.ones(5)), there(only_there([1, 2])), there(only_there([1, 5]))
    gather = kiln.jit(lambda i: x[i])
    for broken in (0, 9, 70):
        for number in range(100):
            gather(wrong if number == broken else fine)
        with pytest.raises(IndexError, match="index 5"):
            session.synchronize()
        session.synchronize()
    with sent_operations(session) as sent:
        for _ in range(verdicts.UNREAD_MAX + 1):
            gather(fine)
    assert sent.count("read") == 1


def test_runs_that_nobody_reads_are_bounded(connection):
    x = kiln.ones(5)
    gather, index = kiln.jit(lambda i: x[i].sum()), only_there([1, 2])
    for _ in range(1000):
        gather(index)
        assert len(connection.verdicts._unread) <= verdicts.UNREAD_MAX
    connection.synchronize()
    assert not connection.verdicts._unread and not connection.verdicts._asked


def test_what_tells_of_checks_keeps_no_run_from_being_cancelled(connection, monkeypatch):
    """Cancelling goes back to the last run whose results the user holds."""
    missed = []
    send = connection.stream.send

    def remembers(*args, **operation):
        missed.extend(operation.get("missed") or ())
        send(*args, **operation)

    monkeypatch.setattr(connection.stream, "send", remembers)
    result = kiln.jit(lambda i: kiln.ones(5)[i])(only_there([1, 2]))
    assert missed[-1]() is result._node.buffer and len(missed) == 2  # and the index


def test_graphs_that_are_equal_but_for_checks_are_not_one(connection):
    """An op of the table means what it says, whatever was computed by the same graph before."""
    def total(rows):
        return rows.sum().item()  # nothing is held, which would be a result as well

    def both(size, wrong):
        table, index = kiln.ones(size, 2).realize(), only_there([0, wrong] * size)
        plain = total(kiln.ops.gather(table, index, axis=0))
        assert plain == (2 if wrong < size else 1) * 2 * size
        if wrong < size:
            checked = total(F.embedding(index, table))
            assert checked == 4 * size
        else:
            with pytest.raises(IndexError, match=f"index {wrong} is out of range for {size} rows"):
                total(F.embedding(index, table))

    for size in range(10, 20):  # those after the first share a program of any size
        both(size, 3)
        both(size, 99)


def test_many_errors_are_one(connection):
    x = kiln.ones(5)
    gather = kiln.jit(lambda i: x[i].sum())
    wrong = only_there([1, 5])
    for _ in range(200):
        gather(wrong)
    with pytest.raises(IndexError):
        x.numpy()
    x.numpy()


def test_checks_are_read_in_the_message_of_the_value(connection, monkeypatch):
    x, i = kiln.ones(5).realize(), only_there([1, 2])
    for _ in range(2):
        x[i].numpy()
    monkeypatch.setattr(connection.stream, "wake", lambda: sent.append("off it goes") or type(connection.stream).wake(
        connection.stream))
    with sent_operations(connection) as sent:
        x[i].numpy()
    assert sent == ["run", "read", "read", "off it goes"]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16", "uint64", "float16", "bfloat16", "float32",
                                   "float64", "float8_e4m3"])
def test_numbers_are_read_with_the_checks(connection, traced, dtype):
    """One read gives both, however often and in whichever order they are read."""
    wanted = (np.array([1.0, 0.0, 2.5, 3.0, 1.0]) * (1 if "u" in dtype or dtype == "bool" else -1)).astype(np.float32)
    x = kiln.tensor(wanted).cast(dtype).realize()
    wanted = x.float().numpy()
    pick = kiln.jit(lambda i: (x[i][0], x[i], x[i][1])) if traced else lambda i: (x[i][0], x[i], x[i][1])
    for places in ([2, 3], [0, 4], [1, 2]):
        first, both, second = pick(only_there(places))
        kiln.realize(first, both, second)
        with sent_operations(connection) as sent:
            assert first.item() == first.item() == wanted[places[0]]
            assert second.item() == wanted[places[1]]
        assert sent == ["read"] * 3
        assert (both.float().numpy() == wanted[places]).all()
    wrong = pick(only_there([2, 9]))
    with pytest.raises(IndexError, match="index 9"):
        wrong[0].item()


def test_a_number_is_read_with_the_checks_in_one_operation(connection):
    x = kiln.ones(5).realize()
    total = kiln.jit(lambda i: x[i].sum())
    index = only_there([1, 2, 3])
    for run in (total, lambda index: x[index].sum()):
        for _ in range(3):
            with sent_operations(connection) as sent:
                assert run(index).item() == 3
        assert sent == ["run", "read"]
    connection.synchronize()


def test_state_that_was_read_with_checks_changes(connection):
    """A scalar that is then updated in place is read again, and so are its limits as an index."""
    x, count = kiln.arange(4.0).realize(), kiln.tensor(0.0)
    count.assign(count + x[only_there(1)])
    assert count.item() == 1
    place = kiln.tensor(0).realize()

    @kiln.jit
    def advance():
        count.assign(count + 1)
        place.assign(place + 3)

    advance()
    assert count.item() == 2 and x[place].item() == 3
    advance()
    assert count.item() == 3
    with pytest.raises(IndexError, match="index 6"):
        x[place].item()


def test_a_run_that_fails_takes_no_other_verdict_along(monkeypatch):
    """Outputs that are read together are read one by one if one of the runs has failed."""
    asked = []

    class Stream:
        """Records reads: their handles and callbacks."""

        def send(self, callback, wakes, read):
            asked.append((read.handle, callback))

    class Buffer:
        placement, shape, nbytes = None, (1,), 8

        def __init__(self, handle):
            self.handle = handle

    class Connection:
        stream = Stream()

    class Answer:
        data = bytes(8)

    monkeypatch.setattr(verdicts, "_joined", lambda connection, buffers: Buffer(99))
    judged = []
    own = verdicts.Verdicts()
    for number in range(4):
        own.expect(Connection, Buffer(number), lambda data, number=number: judged.append(number))
    own.ask(Connection)
    (handle, callback), = asked
    assert handle == 99
    callback(None, kiln.KilnError("an input failed"))
    own.raise_error()
    asked.clear()
    own.ask(Connection)
    assert [handle for handle, _ in asked] == [0, 1, 2, 3]
    for handle, callback in asked:
        callback(*((None, kiln.KilnError("failed")) if handle == 2 else (Answer, None)))
    own.raise_error()
    assert judged == [0, 1, 3]


def test_text_of_a_tensor(connection):
    x = kiln.ones(5)
    wrong = x[only_there([9])]
    with pytest.raises(IndexError):
        print(wrong)
    assert "no value: tensor[...]: index 9 is out of range" in repr(wrong)


def test_two_devices_in_one_program(session):
    """Each device has its own output."""
    first, second = kiln.ones(5, 2).to(FOUR[0]), kiln.ones(7, 2).to(FOUR[1])

    @kiln.jit
    def both(i, j):
        return F.embedding(i, first).to(FOUR[1]) + F.embedding(j, second)

    fine, six = [only_there([1, 2]).to(FOUR[0]), only_there([1, 2]).to(FOUR[1])], only_there([1, 6])
    for _ in range(3):
        both(*fine).numpy()
    both(fine[0], six.to(FOUR[1])).numpy()
    wrong = both(six.to(FOUR[0]), fine[1])
    with pytest.raises(IndexError, match="index 6 is out of range for 5 rows"):
        wrong.numpy()
    wrong = both(fine[0], (six + 1).to(FOUR[1]))
    with pytest.raises(IndexError, match="index 7 is out of range for 7 rows"):
        wrong.numpy()
    graphs = [trace.graph for trace in both._traces.values()]
    assert {[node.op for node in graph.nodes].count("send") for graph in graphs} == {1}


def test_on_another_device(session):
    x = kiln.ones(5).to(FOUR[2])
    wrong = x[only_there([9]).to(FOUR[2])]
    with pytest.raises(IndexError, match="index 9"):
        wrong.numpy()


def test_sizes_that_are_variables(connection):
    n = kiln.Variable("n", 1, 8)
    table = kiln.ones(5, 2)
    for count in (3, 5):
        index = only_there([4] * count).with_variable(0, n)
        assert F.embedding(index, table).sum().item() == 2 * count
    with pytest.raises(IndexError, match="index 5"):
        F.embedding(only_there([1, 5]).with_variable(0, n), table).sum().item()


@pytest.fixture(scope="module")
def idle():
    """A daemon that compiles nothing on its own."""
    with Kilnd(threads=2, config=NO_PROBES) as daemon:
        yield daemon


def test_loops_run_the_same_programs(idle):
    """Sizes, numbers and lines of the program change, and errors are still found."""
    with kiln.connect(idle.address) as connection:
        def compiled():
            connection.synchronize()
            return idle.metric("kiln_compiles_total", absent=0)

        def once(size, wrong):
            index = only_there(np.arange(size)) * 1 + wrong
            return (kiln.ones(size)[index] * (size / 2)).sum()

        for size in range(30, 36):
            once(size, 0).item()
        before = compiled()
        for size in range(36, 90):
            assert once(size, 0).item() == size * size / 2
            wrong = once(size, 3)
            with pytest.raises(IndexError, match=f"index {size + 2} is out of range for {size} places"):
                wrong.item()
        assert compiled() <= before + 4
    _connection._default = None


def test_kiln_checks_0_is_silent(kilnd):
    program = ("import kiln\n"
               "i = (kiln.tensor([1, 9]) * 1).realize()\n"
               "print(kiln.ones(5)[i].tolist(), kiln.jit(lambda i: kiln.ones(5)[i])(i).tolist())\n")
    for value, code in (("0", 0), ("1", 1)):
        ran = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False,
            env={**os.environ, "KILN_ADDRESS": kilnd.address, "KILN_CHECKS": value})
        assert ran.returncode == code, ran.stderr
        assert ("index 9 is out of range" in ran.stderr) == bool(code)
        assert (ran.stdout == "[1.0, 0.0] [1.0, 0.0]\n") == (not code)
