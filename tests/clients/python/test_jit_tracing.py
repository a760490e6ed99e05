"""kiln.jit: what causes another trace, and what becomes an input. Needs no daemon."""

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


def test_a_list_reached_by_its_method_is_watched(stand_in):
    seen = []

    @kiln.jit
    def f(x, note=seen.append):
        note(1)
        return x

    with pytest.raises(kiln.TraceError, match=r"note|default"):
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


def zeros():  # a global with the name of an attribute that a traced function uses
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
