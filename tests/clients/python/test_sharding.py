"""The client's decisions about tensors on meshes: the messages sent, and placements."""

import numpy as np
import pytest

import kiln
from kiln import nn
from kiln._placement import placement as _placement

PAIR = kiln.Mesh("data", ["cpu:0", "cpu:1"])
SQUARE = kiln.Mesh(("data", "model"), [["cpu:0", "cpu:1"], ["cpu:2", "cpu:3"]])


def specs(messages):
    return [[list(dim.axes) for dim in spec.dims] for spec in messages]


# Meshes.


def test_a_mesh_is_a_grid_of_devices():
    assert SQUARE.shape == (2, 2) and SQUARE.axis_names == ("data", "model") and len(SQUARE) == 4
    assert SQUARE.devices == ("cpu:0", "cpu:1", "cpu:2", "cpu:3")
    assert kiln.Mesh(["data", "model"], np.array(SQUARE.devices).reshape(2, 2)) == SQUARE
    assert hash(SQUARE) == hash(eval(repr(SQUARE), {"Mesh": kiln.Mesh})) and SQUARE != PAIR
    assert repr(PAIR) == "Mesh(('data',), ['cpu:0', 'cpu:1'])"


@pytest.mark.parametrize("axes, devices, message", [
    ((), [], "0 axes"),
    (("a", "b", "c", "d", "e"), ["cpu:0"], "5 axes"),
    ("a b", ["cpu:0"], "'a b'"),
    (("a", "a"), [["cpu:0"]], "its own name"),
    ("a", [], "leave none empty"),
    ("a", "cpu:0", "nest lists"),
    (("a", "b"), ["cpu:0", "cpu:1"], "nest lists"),
    ("a", [["cpu:0"]], "not a grid"),
    (("a", "b"), [["cpu:0", "cpu:1"], ["cpu:2"]], "not a grid"),
    ("a", ["cpu:0", "cpu:0"], "cpu:0 twice"),
    ("a", ["CPU 0"], "is not the name of a device"),
    ("a", [0, 1], "is not the name of a device"),
    ("a", [f"cpu:{i}" for i in range(65)], "at most 64 are allowed"),
])  # fmt: skip
def test_what_makes_no_mesh_is_told(axes, devices, message):
    with pytest.raises(kiln.InvalidArgument, match=message):
        kiln.Mesh(axes, devices)


@pytest.mark.parametrize("shape, spec, message", [
    ((4,), ("data", None), "2 entries"),
    ((4,), ("batch",), "no axis 'batch'"),
    ((4, 4), ("data", "data"), "twice"),
    ((4,), 3, "an entry for each dimension"),
    ((4,), (3,), "neither None"),
])  # fmt: skip
def test_specs_that_do_not_fit_are_told(stand_in, shape, spec, message):
    with pytest.raises(kiln.InvalidArgument, match=message):
        kiln.shard(kiln.ones(shape), SQUARE, spec)


# Values.


def test_data_is_written_in_parts_by_one_message(stand_in):
    x = kiln.shard(kiln.tensor(np.zeros((4, 6), np.float32)), SQUARE, ("data", "model"))
    assert stand_in.messages == 1 and x.device == SQUARE.devices
    (shape, placement), = stand_in.written
    assert shape == (4, 6) and placement.home == SQUARE
    assert placement.spec == (("data",), ("model",))


def test_sizes_that_an_axis_does_not_divide_are_split_all_the_same(stand_in):
    x = kiln.shard(np.zeros((5, 3), np.float32), SQUARE, ("data", "model"))
    y = kiln.shard(np.zeros((6, 1), np.float32), SQUARE, (("model", "data"),))
    assert [(shape, placement.spec) for shape, placement in stand_in.written] == [
        ((5, 3), (("data",), ("model",))), ((6, 1), (("model", "data"),))]
    kiln.shard(x.sum() + y.sum() + kiln.arange(7.0), SQUARE, ("data",)).realize()
    _, graph = stand_in.graphs[-1]
    assert specs(graph.sharding.inputs) == [[[0], [1]], [[1, 0]]]
    assert specs(graph.sharding.outputs) == [[[0]]]


def test_what_is_on_the_device_moves(stand_in):
    x = kiln.tensor([1.0, 2.0]).realize()
    y = kiln.shard(x, PAIR)
    assert [(source, handle) for source, handle, _ in stand_in.moves] == [
        (x._node.buffer.handle, y._node.buffer.handle)]
    assert kiln.shard(y, PAIR)._node is y._node and len(stand_in.moves) == 1
    assert x.device == "cpu:0"


def test_structures_are_laid_out_item_by_item(stand_in):
    made = kiln.shard({"a": [np.zeros(4), kiln.zeros(2, 2)]}, PAIR, ("data",))
    assert made["a"][0].device == made["a"][1].device == PAIR.devices
    with pytest.raises(kiln.InvalidArgument, match="shard\\(\\) of int"):
        kiln.shard(3, PAIR)


def test_what_is_lazy_is_laid_out_by_its_program(stand_in):
    x = kiln.shard(kiln.ones(4, 8) + 1, SQUARE, (None, ("model", "data"))).realize()
    assert stand_in.messages == 2  # a graph and its run
    (_, graph), = stand_in.graphs
    assert stand_in.defined_on == [SQUARE.devices]
    assert [(axis.name, axis.size) for axis in graph.sharding.mesh.axes] == [
        ("data", 2), ("model", 2)]
    shard, = [node for node in graph.nodes if node.op == "shard"]
    assert list(shard.attributes["spec"].ints.values) == [0, 2, 1, 0]
    assert specs(graph.sharding.outputs) == [[[], [1, 0]]]
    assert x._node.buffer.placement.spec == ((), ("model", "data"))


def test_a_program_runs_where_its_inputs_lie(stand_in):
    x = kiln.shard(kiln.tensor(np.ones((4, 2), np.float32)), PAIR, ("data",))
    y = (x * kiln.tensor([1.0, 2.0]) + kiln.tensor([[3.0]])).realize()
    _, graph = stand_in.graphs[0]
    assert stand_in.defined_on == [PAIR.devices]
    assert specs(graph.sharding.inputs) == [[[0]], [], []]
    # Host data is written to the mesh at once.
    assert [placement.spec for _, placement in stand_in.written] == [(("data",),), (), ()]
    assert not stand_in.moves and y.device == PAIR.devices
    # A result is whole on each device.
    assert specs(graph.sharding.outputs) == [[]] and y._node.buffer.placement.spec == ()


def test_one_devices_tensor_is_copied_to_the_mesh_once(stand_in):
    scale = kiln.tensor([1.0, 2.0]).realize()
    x = kiln.shard(np.ones((4, 2), np.float32), PAIR, ("data",))
    for i in range(3):
        (x * scale + i).realize()
    assert len(stand_in.moves) == 1 and scale.device == "cpu:0"
    # Its device was not chosen: a program with only this tensor runs on the session's device.
    (scale + 1).realize()
    assert stand_in.defined_on[-1] == () and len(stand_in.moves) == 1
    other = kiln.shard(np.ones((4, 2), np.float32), SQUARE)
    (other * scale).realize()
    assert len(stand_in.moves) == 2


def test_data_that_went_to_a_mesh_follows_to_another(stand_in):
    rate = kiln.tensor(0.5)
    (kiln.shard(np.ones(4), PAIR) * rate).realize()
    assert rate.device == PAIR.devices
    (kiln.shard(np.ones(4), SQUARE) * rate).realize()
    (rate + 1).realize()
    assert [placement and placement.home for _, _, placement in stand_in.moves] == [SQUARE, None]


def test_tensors_of_two_meshes_do_not_meet(stand_in):
    x, y = kiln.shard(np.ones(4), PAIR), kiln.shard(np.ones(4), SQUARE)
    with pytest.raises(kiln.InvalidArgument) as told:
        x + y
    assert repr(PAIR) in told.value.message and repr(SQUARE) in told.value.message
    assert "test_sharding.py" in told.value.source

    @kiln.jit
    def add(x, y):
        return x + y

    with pytest.raises(kiln.InvalidArgument, match="are used together"):
        add(x, y)


def test_assignment_keeps_how_a_tensor_lies(stand_in):
    x = kiln.shard(np.ones((4, 2), np.float32), PAIR, ("data",))
    before = x._node.buffer.placement
    x.assign(x * 2).realize()
    assert x._node.buffer.placement == before
    x.assign(np.zeros((4, 2), np.float32))
    assert x._node.buffer.placement == before
    x += 1
    x[0] = 5
    kiln.realize(x, x.clone(), x.detach())
    assert x._node.buffer.placement == before


def test_variables_do_not_go_to_meshes(stand_in):
    rows = kiln.Variable("rows", 1, 8)
    x = kiln.tensor(np.ones((4, 2), np.float32)).with_variable(0, rows)
    with pytest.raises(kiln.InvalidArgument, match=r'"rows" is used with tensors on Mesh'):
        (x + kiln.shard(np.ones(2, np.float32), PAIR)).realize()
    with pytest.raises(kiln.InvalidArgument, match=(
            r"dimension 0 of shape .*rows.* 'data' of Mesh.* only fixed sizes can be split. L")):
        kiln.shard(x, PAIR, ("data",))


# Single devices.


def test_a_tensor_goes_to_another_device(stand_in):
    x = kiln.tensor([1.0, 2.0]).to("cpu:1")
    assert x.device == "cpu:1" and stand_in.written[0][1].devices == ("cpu:1",)
    assert (x + 1).device == "cpu:1" and x.to("cpu:1") is x
    (x + kiln.tensor([1.0, 1.0])).realize()
    assert stand_in.defined_on == [("cpu:1",)] and not stand_in.graphs[0][1].HasField("sharding")
    back = x.to("cpu:0")
    assert back.device == "cpu:0" and stand_in.moves[-1][2].devices == ("cpu:0",)
    assert kiln.zeros(2, device="cpu:1").device == "cpu:1"
    assert kiln.zeros(2, device=kiln.shard(x, PAIR).device).device == "cpu:0"
    with pytest.raises(kiln.InvalidArgument, match="cpu:1 and on cpu:2"):
        x + back.to("cpu:2")


def test_what_is_lazy_is_computed_where_it_goes(stand_in):
    x = (kiln.tensor([1.0, 2.0]) * 2).to("cpu:1").realize()
    assert stand_in.defined_on == [("cpu:1",)] and x.device == "cpu:1"
    y = (x + 1).to("cpu:2")  # computed there, then moved
    assert stand_in.defined_on == [("cpu:1",)] * 2 and len(stand_in.moves) == 1
    assert y.device == "cpu:2"


def test_what_is_put_on_the_sessions_device_stays_there(stand_in):
    x = kiln.tensor([1.0, 2.0]).to("cpu:0")
    assert x.device == "cpu:0" and x.to("cpu:0") is x
    with pytest.raises(kiln.InvalidArgument, match="cpu:0 and on cpu:1"):
        x + kiln.tensor([1.0, 2.0]).to("cpu:1")


# Stages.


def stages_of(graph):
    """Returns each node's op, and for sends the source and target."""
    return [f"send {node.attributes['source'].i}-{node.attributes['target'].i}"
            if node.op == "send" else node.op for node in graph.nodes]


def test_a_traced_function_sends_within_one_program(stand_in):
    x = kiln.tensor([1.0, 2.0]).to("cpu:1")

    @kiln.jit
    def move(x):
        return x.to("cpu:2") + 1, x * 2

    there, here = move(x)
    assert stand_in.defined_on == [("cpu:1", "cpu:2")]
    graph = stand_in.graphs[-1][1]
    assert "send 0-1" in stages_of(graph) and graph.sharding.mesh.axes[0].size == 2
    assert list(graph.sharding.stages.inputs) == [0]
    assert list(graph.sharding.stages.outputs) == [1, 0]
    assert there.device == "cpu:2" and here.device == "cpu:1"


def step_of(first, second, hop=None):
    """Returns a traced step of two layers; `hop` is the target of the tensor between them."""
    optimizer = kiln.optim.Adam([*first.parameters(), *second.parameters()], 0.1)

    @kiln.jit
    def step(x):
        optimizer.zero_grad()
        hidden = first(x) if hop is None else first(x).to(hop)
        loss = second(hidden).sum()
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("devices", [("cpu:1", "cpu:2"), ("cpu:0", "cpu:1"), ("cpu:2", "cpu:0")])
def test_layers_on_two_devices_are_one_program(stand_in, devices):
    first, second = nn.Linear(2, 2).to(devices[0]), nn.Linear(2, 2).to(devices[1])
    with pytest.raises(kiln.InvalidArgument,
                       match=rf"{devices[0]} and on {devices[1]} .* x\.to\(device\)"):
        step_of(first, second)(kiln.ones(1, 2))
    step = step_of(first, second, devices[1])
    x = kiln.tensor([[1.0, 2.0]])
    loss = step(x)
    assert set(stand_in.defined_on[-1]) == set(devices)
    assert loss.device == devices[1]
    for layer, device in ((first, devices[0]), (second, devices[1])):
        assert layer.weight.device == device
        for name in ("weight", "bias"):
            assert getattr(layer, name)._node.buffer.placement.devices == (device,)
    runs = len(stand_in.runs)
    moves = len(stand_in.moves)
    step(x)
    # The step counter, which has no particular placement, stays where the program placed it.
    assert len(stand_in.runs) == runs + 1 and len(stand_in.moves) == moves


def test_eager_gradients_flow_through_sends(stand_in):
    x = kiln.tensor([1.0, 2.0], requires_grad=True).to("cpu:1")
    y = (x * 2).to("cpu:2")
    assert y.device == "cpu:2" and y.requires_grad
    (y * 3).sum().backward()
    assert not stand_in.defined_on
    kiln.realize(y)
    assert stand_in.defined_on[-1] == ("cpu:1", "cpu:2")


# Modules and optimizers.


def placements(tensors):
    kiln.realize(*tensors)
    return [tensor._node.buffer.placement for tensor in tensors]


def test_rules_lay_out_modules(stand_in):
    def layouts(rule):
        model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 3))
        assert kiln.shard(model, SQUARE, rule) is model
        found = placements([*model.parameters()])
        assert all(parameter.requires_grad for parameter in model.parameters())
        assert all(placement.home == SQUARE for placement in found)
        return [placement.spec for placement in found]

    assert layouts(None) == [(), (), (), ()]
    assert layouts("data") == [(("data",),), (("data",),), ((), ("data",)), ()]
    assert layouts({"0.weight": ("model",), "*.weight": (None, "model")}) == [
        (("model",),), (), ((), ("model",)), ()]
    assert layouts(lambda name, tensor: ("data",) if name == "0.bias" else None) == [
        (), (("data",),), (), ()]
    assert layouts(("data",)) == [(("data",),)] * 4
    with pytest.raises(kiln.InvalidArgument, match=r"0.bias: the spec .* has 2 entries"):
        layouts(("data", "model"))
    with pytest.raises(kiln.InvalidArgument, match=r"like 'head.\*'; names are 0.weight"):
        layouts({"head.*": ("data",)})


def test_an_optimizers_state_lies_as_its_parameters(stand_in):
    model = kiln.shard(nn.Linear(4, 6), SQUARE, {"weight": ("model",)})
    optimizer = kiln.optim.Adam(model.parameters(), lr=0.1)
    state = [tensor for _, tensor in optimizer.named_state()]
    assert [placement.spec for placement in placements(state)] == [
        (("model",),), (("model",),), (), ()]
    kiln.shard(optimizer, SQUARE, "data")
    assert [placement.spec for placement in placements(state)] == [(("data",),)] * 4
    average = kiln.optim.EMA(model.parameters())
    assert placements(average.averages)[0].spec == (("model",),)


def test_a_module_goes_to_another_device(stand_in):
    model = nn.Linear(2, 2).to("cpu:1")
    assert model.weight.device == "cpu:1" and model(kiln.ones(1, 2)).device == "cpu:1"
    assert model.half().weight.device == "cpu:1"


def test_state_that_is_loaded_lies_as_what_it_replaces(stand_in):
    model = kiln.shard(nn.Linear(4, 6), PAIR, "data")
    model.load_state_dict({"weight": np.zeros((6, 4), np.float32), "bias": kiln.zeros(6)})
    assert [placement.spec for placement in placements([*model.parameters()])] == [
        (("data",),), (("data",),)]
    assert placements([*model.state_dict().values()])[0].spec == (("data",),)


# Traced functions.


def trainer(model, optimizer):
    @kiln.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def test_a_traced_step_is_one_program_and_one_message(stand_in):
    model = kiln.shard(nn.Linear(4, 2), PAIR)
    optimizer = kiln.shard(kiln.optim.Adam(model.parameters(), lr=0.1), PAIR, "data")
    step = trainer(model, optimizer)

    def call():
        x, y = kiln.shard(
            (np.ones((6, 4), np.float32), np.ones((6, 2), np.float32)), PAIR, ("data",))
        return step(x, y)

    loss = call()
    name, graph = stand_in.graphs[-1]
    assert name.endswith("step") and stand_in.defined_on[-1] == PAIR.devices
    assert loss.device == PAIR.devices
    state = [tensor for _, tensor in optimizer.named_state()]
    assert [placement.spec for placement in placements(state)] == [
        (("data",),), (("data",),), (("data",),), (("data",),)]
    by_index = {node.attributes["index"].i: node for node in graph.nodes if node.op == "input"}
    lie = dict(zip(by_index, specs(graph.sharding.inputs)))
    batch = [i for i, node in by_index.items()
             if [dim.size for dim in node.attributes["shape"].shape.dims] in ([6, 4], [6, 2])]
    assert [lie[i] for i in batch] == [[[0]], [[0]]]
    before = stand_in.messages
    call()
    optimizer.lr = 0.01
    call()
    # Two batches and a run, twice; and the learning rate, which goes to the mesh by one message.
    assert stand_in.messages - before == 2 * 3 + 1
    assert step.traces == 1 and not any(
        source in [buffer.handle for buffer in ()] for source, *_ in stand_in.moves)


def test_state_of_one_device_moves_to_the_mesh_for_good(stand_in):
    count = kiln.zeros(1).realize()

    @kiln.jit
    def step(x):
        count.assign(count + x.sum())
        return count

    x = kiln.shard(np.ones(4, np.float32), PAIR, ("data",))
    for _ in range(3):
        step(x)
    assert len(stand_in.moves) == 1 and count.device == PAIR.devices
    handles = {run[1][0] for run in stand_in.runs[-3:]}
    assert handles == {count._node.buffer.handle}


def test_a_copy_of_what_a_step_changes_is_made_anew(stand_in):
    weight = kiln.ones(4).realize()
    x = kiln.shard(np.ones(4, np.float32), PAIR)

    @kiln.jit
    def change():
        weight.assign(weight + 1)

    (x * weight).realize()
    (x * weight).realize()
    assert len(stand_in.moves) == 1
    change()
    (x * weight).realize()
    assert len(stand_in.moves) == 2


def test_what_is_returned_as_it_was_given_lies_so(stand_in):
    @kiln.jit
    def both(x):
        return x, x + 1, kiln.shard(x * 2, PAIR, (None, "data"))

    x = kiln.shard(np.ones((4, 2), np.float32), PAIR, ("data",))
    same, whole, sharded = both(x)
    assert [tensor._node.buffer.placement.spec for tensor in (same, whole, sharded)] == [
        (("data",),), (), ((), ("data",))]
    assert specs(stand_in.graphs[-1][1].sharding.outputs) == [[[0]], [], [[], [0]]]
    # Another layout is another kind of call.
    both(kiln.shard(np.ones((4, 2), np.float32), PAIR))
    assert both.traces == 2
    both(x)
    assert both.traces == 2 and len(stand_in.graphs) == 2


def test_an_eager_step_keeps_how_parameters_lie(stand_in):
    model = kiln.shard(nn.Linear(4, 2), PAIR, {"weight": (None, "data")})
    optimizer = kiln.optim.Adam(model.parameters(), lr=0.1)
    kiln.realize(*model.parameters())
    graphs, runs = len(stand_in.graphs), len(stand_in.runs)
    for _ in range(3):
        optimizer.zero_grad()
        model(kiln.shard(np.ones((6, 4), np.float32), PAIR, ("data",))).sum().backward()
        optimizer.step()
    # One program for the first step, whose moments are zeros, and one for all others.
    assert len(stand_in.graphs) == graphs + 2 and len(stand_in.runs) == runs + 3
    assert model.weight._node.buffer.placement.spec == ((), ("data",))
    state = dict(optimizer.named_state())
    assert placements([state["state.0.exp_avg"]])[0].spec == ((), ("data",))


def test_a_function_may_be_the_first_to_lay_something_out(stand_in, monkeypatch):
    monkeypatch.setattr(_placement, "in_use", False)
    monkeypatch.setattr(_placement, "_known", {})
    weight = kiln.ones(4, 2).realize()

    @kiln.jit
    def step(x):
        hidden = kiln.shard(x * 2, PAIR, ("data",))
        weight.assign(weight + hidden)
        return hidden

    for _ in range(2):
        assert step(kiln.ones(4, 2)).device == PAIR.devices
    assert step.traces == 1 and weight.device == PAIR.devices


def test_random_numbers_are_drawn_on_a_mesh(stand_in):
    x = kiln.shard(np.ones(4, np.float32), PAIR)

    @kiln.jit
    def noisy(x):
        return x + kiln.rand(4)

    noisy(x)
    before = stand_in.messages
    noisy(x)
    assert stand_in.messages == before + 1
