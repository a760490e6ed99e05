"""kiln.jit: what is traced again, what is an input, what is an error. No daemon needed."""

import itertools
import queue
import random
import warnings

import numpy as np
import pytest

import kiln
from kiln import nn

SCALE = 2.0
TABLE = kiln.zeros(3)


def inputs_of(stand_in, run=-1):
    return stand_in.runs[run][1]


def test_later_calls_are_one_run_of_one_program(stand_in):
    @kiln.jit
    def double(x):
        return x * 2

    x = kiln.tensor([1.0, 2.0])
    results = [double(x) for _ in range(5)]
    assert double.traces == 1 and len(stand_in.graphs) == 1
    assert len(stand_in.runs) == 5 and len(stand_in.uploads) == 1
    assert len({result._node.buffer.handle for result in results}) == 5


def test_another_shape_or_dtype_traces_again_and_the_first_is_kept(stand_in):
    @kiln.jit
    def double(x):
        return x * 2

    for data in (np.ones(2, np.float32), np.ones(3, np.float32), np.ones(2, np.int32)):
        assert double(kiln.tensor(data)).shape == data.shape
    assert double.traces == 3
    double(kiln.ones(2))
    assert double.traces == 3


def test_nested_arguments_and_results_keep_their_structure(stand_in):
    @kiln.jit
    def f(pair, *, options):
        a, (b,) = pair
        return {"sum": a + b, "rest": [options["c"], (a, 7)]}

    result = f((kiln.ones(2), [kiln.ones(2)]), options={"c": kiln.ones(3), "mode": "x"})
    assert result["sum"].shape == (2,) and result["rest"][0].shape == (3,)
    assert result["rest"][1][1] == 7
    f((kiln.ones(2), [kiln.ones(2)]), options={"c": kiln.ones(3), "mode": "y"})
    assert f.traces == 2


@pytest.mark.parametrize(
    ("first", "second"), [(1, 2), (1, 1.0), (0.0, -0.0), (True, 1), ("a", "b")])
def test_a_non_tensor_argument_is_part_of_the_key(stand_in, first, second):
    @kiln.jit
    def f(x, value):
        return x + (1 if value else 2)

    f(kiln.ones(2), first)
    f(kiln.ones(2), first)
    assert f.traces == 1
    f(kiln.ones(2), second)
    assert f.traces == 2
    f(kiln.ones(2), first)
    assert f.traces == 2


def test_numpy_arguments_are_tensor_inputs(stand_in):
    @kiln.jit
    def f(x):
        return x * 2

    f(np.ones(3, np.float32))
    f(np.zeros(3, np.float32))
    assert f.traces == 1 and len(stand_in.uploads) == 2


def test_a_closures_tensor_is_an_input_read_anew(stand_in):
    weight = kiln.ones(3).realize()

    @kiln.jit
    def f(x):
        return x * weight

    x = kiln.ones(3).realize()
    f(x)
    assert weight._node.buffer.handle in inputs_of(stand_in)
    weight.assign(kiln.zeros(3))
    f(x)
    assert weight._node.buffer.handle in inputs_of(stand_in)
    weight = kiln.zeros(3).realize()
    f(x)
    assert weight._node.buffer.handle in inputs_of(stand_in)
    assert f.traces == 1


def test_an_attributes_tensor_may_be_replaced(stand_in):
    model = nn.Linear(3, 2)
    f = kiln.jit(model)
    x = kiln.ones(1, 3).realize()
    f(x)
    model.weight = nn.Parameter(kiln.zeros(2, 3))
    f(x)
    assert model.weight._node.buffer.handle in inputs_of(stand_in)
    assert f.traces == 1
    model.weight = nn.Parameter(kiln.zeros(4, 3))
    model.bias = None
    assert f(x).shape == (1, 4)
    assert f.traces == 2


def test_globals_are_watched(stand_in, monkeypatch):
    module = globals()

    @kiln.jit
    def f(x):
        return x * SCALE + TABLE

    x = kiln.ones(3).realize()
    f(x)
    monkeypatch.setitem(module, "SCALE", 3.0)
    f(x)
    assert f.traces == 2
    monkeypatch.setitem(module, "TABLE", kiln.ones(3).realize())
    f(x)
    assert f.traces == 2 and module["TABLE"]._node.buffer.handle in inputs_of(stand_in)


def test_state_behind_a_called_function_and_a_class_is_watched(stand_in):
    settings = {"power": 2}

    def helper(x):
        return x ** settings["power"]

    class Model(nn.Module):
        factor = 1.5

        def forward(self, x):
            return helper(x) * self.factor

    model = Model()

    @kiln.jit
    def f(x):
        return model(x)

    x = kiln.ones(3)
    f(x)
    settings["power"] = 3
    f(x)
    Model.factor = 2.5
    f(x)
    assert f.traces == 3
    Model.forward = lambda self, x: x
    f(x)
    assert f.traces == 4


def test_train_and_eval_are_two_traces_that_are_kept(stand_in):
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    f = kiln.jit(model)
    x = kiln.ones(2, 3)
    for _ in range(3):
        f(x)
        model.eval()
        f(x)
        model.train()
    assert f.traces == 2


def test_assign_inside_is_an_update_of_the_same_run(stand_in):
    count = kiln.zeros(()).realize()
    handle = count._node.buffer.handle

    @kiln.jit
    def f(x):
        count.assign(count + 1)
        return x * count

    x = kiln.ones(2).realize()
    before = len(stand_in.runs)
    f(x)
    f(x)
    assert len(stand_in.runs) == before + 2
    graph = stand_in.graphs[-1][1]
    assert len(graph.updates) == 1 and count._node.buffer.handle == handle


def test_a_shared_buffer_is_copied_before_it_is_updated(stand_in):
    count = kiln.zeros(()).realize()
    seen = count.detach()
    later = count + 10
    handle = count._node.buffer.handle

    @kiln.jit
    def f():
        count.assign(count + 1)

    f()
    assert seen._node.buffer.handle == handle and later._node.operands[0].buffer.handle == handle
    assert count._node.buffer.handle != handle
    mine = count._node.buffer.handle
    f()
    assert count._node.buffer.handle == mine


def test_an_arguments_assignment_reaches_the_caller(stand_in):
    @kiln.jit
    def f(t):
        t += 1

    t = kiln.zeros(3).realize()
    f(t)
    assert stand_in.graphs[-1][1].updates


def test_a_training_step_is_one_run(stand_in):
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(),
                          nn.Dropout(0.1), nn.Linear(72, 4))  # fmt: skip
    optimizer = kiln.optim.Adam(model.parameters(), lr=1e-3)

    @kiln.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = kiln.ones(5, 1, 8, 8).realize(), kiln.zeros(5, dtype="int64").realize()
    step(x, y)
    graphs, runs, uploads = len(stand_in.graphs), len(stand_in.runs), len(stand_in.uploads)
    for _ in range(4):
        step(x, y)
    assert step.traces == 1
    assert (len(stand_in.graphs), len(stand_in.uploads)) == (graphs, uploads)
    assert len(stand_in.runs) == runs + 4
    # Weights, both moments, the count, running statistics and their count, the generator's key.
    assert len(stand_in.graphs[-1][1].updates) == 6 * 3 + 1 + 3 + 1
    optimizer.lr = 5e-4
    step(x, y)
    assert step.traces == 1 and len(stand_in.uploads) == uploads + 1


def test_gradients_left_behind_cannot_be_read(stand_in):
    weight = kiln.ones(3, requires_grad=True)

    @kiln.jit
    def f(x):
        weight.grad = None
        (weight * x).sum().backward()
        return weight.grad * 1

    f(kiln.ones(3))
    f(kiln.ones(3))
    assert f.traces == 1
    with pytest.raises(kiln.TraceError, match="return it"):
        weight.grad.numpy()


def test_gradients_that_would_add_up_over_calls_are_an_error(stand_in):
    weight = kiln.ones(3, requires_grad=True)

    @kiln.jit
    def f(x):
        (weight * x).sum().backward()

    with pytest.raises(kiln.TraceError, match="zero_grad"):
        f(kiln.ones(3))


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


def test_a_list_reached_by_its_method_is_watched(stand_in):
    seen = []

    @kiln.jit
    def f(x, note=seen.append):
        note(1)
        return x

    with pytest.raises(kiln.TraceError, match=r"note|default"):
        f(kiln.ones(2))


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


def test_many_kinds_of_call_warn_and_say_where_they_differ(stand_in):
    @kiln.jit
    def f(x, rate):
        return x * rate

    with pytest.warns(RuntimeWarning, match="argument"):
        for i in range(10):
            f(kiln.ones(2), float(i))


def test_few_kinds_of_call_do_not_warn(stand_in):
    @kiln.jit
    def f(x, rate):
        return x * rate

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(5):
            f(kiln.ones(2), float(i))


def test_random_numbers_go_on_with_no_message_of_their_own(stand_in):
    kiln.manual_seed(3)

    @kiln.jit
    def f():
        return kiln.rand(4), kiln.rand(4)

    f()
    uploads = len(stand_in.uploads)
    f()
    assert len(stand_in.uploads) == uploads and kiln.random.default_generator.draws == 4
    kiln.rand(2)
    f()
    assert len(stand_in.uploads) == uploads + 1
    assert stand_in.uploads[-1][1] == np.array([3, 5], np.uint32).tobytes()
    kiln.manual_seed(4)
    f()
    assert stand_in.uploads[-1][1] == np.array([4, 0], np.uint32).tobytes()
    assert f.traces == 1


def test_methods_may_be_jitted(stand_in):
    class Trainer:
        def __init__(self, factor):
            self.factor = factor

        @kiln.jit
        def step(self, x):
            """Doc."""
            return x * self.factor

    a, b = Trainer(2.0), Trainer(3.0)
    x = kiln.ones(2)
    a.step(x), b.step(x), a.step(x)
    assert Trainer.step.traces == 2 and Trainer.step.__doc__ == "Doc."


def test_a_jitted_function_inside_another_is_part_of_it(stand_in):
    @kiln.jit
    def inner(x):
        return x * 2

    @kiln.jit
    def outer(x):
        return inner(x) + 1

    x = kiln.ones(2).realize()
    before = len(stand_in.runs)
    outer(x)
    assert inner.traces == 0 and len(stand_in.runs) == before + 1


def test_grad_mode_is_part_of_the_key(stand_in):
    @kiln.jit
    def f(x):
        return x * (2 if kiln.is_grad_enabled() else 3)

    f(kiln.ones(2))
    with kiln.no_grad():
        f(kiln.ones(2))
    assert f.traces == 2


def test_one_tensor_given_twice_is_another_kind_of_call(stand_in):
    @kiln.jit
    def f(a, b):
        a += 1
        return a * b

    x, y = kiln.ones(2).realize(), kiln.ones(2).realize()
    f(x, y)
    f(x, x)
    assert f.traces == 2


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


def zeros():  # a global of the name of an attribute that a traced function uses
    return untouched


untouched = [1]


def test_an_attributes_name_is_not_a_global(stand_in):
    @kiln.jit
    def run(x):
        return x + kiln.zeros(2)

    run(kiln.ones(2))
    untouched.append(2)
    run(kiln.ones(2))
    assert run.traces == 1
