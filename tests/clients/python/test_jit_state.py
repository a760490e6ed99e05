"""kiln.jit: the changes made by a call. Needs no daemon."""

import numpy as np
import pytest

import kiln
from kiln import nn


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
