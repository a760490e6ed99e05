"""Modules and their state. Needs no daemon."""

import copy
import pickle

import numpy as np
import pytest

import kiln
from kiln import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.heads = [nn.Linear(4, 2), nn.Linear(4, 3, bias=False)]
        self.scale = nn.Parameter([1.0])

    def forward(self, x):
        x = self.body(x).mean((2, 3))
        return self.heads[0](x) * self.scale


def test_parameters_and_buffers_are_found_by_name():
    net = Net()
    assert sorted(dict(net.named_parameters())) == [
        "body.0.bias", "body.0.weight", "body.1.bias", "body.1.weight", "heads.0.bias",
        "heads.0.weight", "heads.1.weight", "scale",
    ]  # fmt: skip
    assert [name for name, _ in net.named_buffers()] == [
        "body.1.running_mean", "body.1.running_var", "body.1.num_batches_tracked"]
    assert all(parameter.requires_grad for parameter in net.parameters())
    assert net(kiln.zeros(2, 1, 8, 8)).shape == (2, 2)


def test_a_shared_module_counts_once():
    layer = nn.Linear(2, 2)
    assert len(list(nn.Sequential(layer, nn.ReLU(), layer).parameters())) == 2


def test_train_and_eval_reach_all_modules():
    net = Net()
    net.eval()
    assert not any(module.training for module in net.modules())
    assert all(module.training for module in net.train().modules())


def test_load_state_dict_sets_values_and_names_what_does_not_fit():
    source, target = nn.Linear(3, 2), nn.Linear(3, 2)
    state = {"weight": np.ones((2, 3), np.float32), "bias": np.zeros(2, np.float32)}
    source.load_state_dict(state)
    target.load_state_dict(source.state_dict())
    np.testing.assert_array_equal(target.weight.numpy(), 1)
    assert target.weight.requires_grad and isinstance(target.weight, nn.Parameter)
    with pytest.raises(kiln.NotFound, match="bias"):
        target.load_state_dict({"weight": state["weight"]})
    with pytest.raises(kiln.InvalidArgument, match="weight"):
        target.load_state_dict({**state, "weight": np.ones((3, 2), np.float32)})
    target.load_state_dict({"weight": state["weight"] * 2}, strict=False)
    np.testing.assert_array_equal(target.weight.numpy(), 2)


def test_repr_shows_the_layers():
    text = repr(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
    assert "(0): Linear(3, 2, bias=True)" in text and "(1): ReLU()" in text


def test_optimizers_refuse_what_they_cannot_train():
    with pytest.raises(kiln.InvalidArgument):
        kiln.optim.SGD([])
    with pytest.raises(kiln.InvalidArgument, match="require"):
        kiln.optim.SGD([kiln.zeros(2)])
    with pytest.raises(kiln.InvalidArgument):
        kiln.optim.SGD([kiln.zeros(2, requires_grad=True)], lr=-1)


def test_containers_name_their_parts_as_pytorchs():
    model = nn.ModuleDict({
        "stem": nn.Sequential({"layer": nn.Linear(2, 3)}),
        "blocks": nn.ModuleList([nn.Linear(3, 3)]),
        "scales": nn.ParameterList([kiln.ones(3), nn.Parameter([2.0])]),
        "named": nn.ParameterDict({"shift": kiln.zeros(3)}),
    })
    assert list(model.state_dict()) == [
        "stem.layer.weight", "stem.layer.bias", "blocks.0.weight", "blocks.0.bias", "scales.0",
        "scales.1", "named.shift"]
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert model.get_submodule("stem.layer") is model["stem"][0]
    with pytest.raises(kiln.NotFound, match=r"stem\.other"):
        model.get_submodule("stem.other")


def test_a_shared_module_stands_in_the_state_by_both_names():
    layer = nn.Linear(2, 2, bias=False)
    assert list(nn.Sequential(layer, layer).state_dict()) == ["0.weight", "1.weight"]


def test_buffers_that_are_not_persistent_are_no_state():
    module = nn.Module()
    module.register_buffer("kept", kiln.ones(2))
    module.register_buffer("made", kiln.ones(2), persistent=False)
    assert list(module.state_dict()) == ["kept"] and len(list(module.buffers())) == 2
    module.load_state_dict({"kept": kiln.zeros(2)})


def test_apply_comes_to_children_first():
    seen = []
    nn.Sequential(nn.Linear(1, 1), nn.ReLU()).apply(lambda module: seen.append(type(module)))
    assert seen == [nn.Linear, nn.ReLU, nn.Sequential]


def test_a_module_changes_its_dtype():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight = model[0].weight
    assert model.half() is model
    assert model[0].weight is weight and weight.dtype is kiln.float16 and weight.requires_grad
    assert model[1].running_mean.dtype is kiln.float16
    assert model[1].num_batches_tracked.dtype is kiln.int64
    assert model(kiln.zeros(3, 2, dtype=kiln.float16)).dtype is kiln.float16
    model.float().load_state_dict(model.state_dict())
    with pytest.raises(kiln.InvalidArgument, match="int32"):
        model.to(kiln.int32)


def test_copies_have_parameters_of_their_own():
    layer = nn.Linear(2, 2)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(nn.Embedding.from_pretrained(
            kiln.tensor([[1.0, 2.0]]), freeze=False)))):
        assert isinstance(other.weight, nn.Parameter) and other.weight.requires_grad
        assert other.weight is not layer.weight
        other.weight.assign(0)


def test_what_does_not_load_changes_nothing():
    layer = nn.Linear(1, 1)
    layer.weight.assign(kiln.tensor([[5.0]]))
    with pytest.raises(kiln.InvalidArgument, match="bias"):
        layer.load_state_dict({"weight": kiln.zeros(1, 1), "bias": kiln.zeros(7)})
    np.testing.assert_array_equal(layer.weight.numpy(), 5)
    result = layer.load_state_dict({"weight": kiln.zeros(1, 1), "other": 1}, strict=False)
    assert result == (["bias"], ["other"])


@pytest.mark.parametrize(("make", "message"), [
    (lambda: nn.Conv2d(3, 4, 3, groups=2), "2 groups"),
    (lambda: nn.Conv1d(3, 4, (3, 3)), "kernel_size"),
    (lambda: nn.Conv2d(3, 4, 3, padding="full"), "full"),
    (lambda: nn.Conv2d(3, 4, 3, 2, padding="same"), "stride of 1"),
    (lambda: nn.Conv2d(3, 4, 3, padding_mode="mirror"), "mirror"),
    (lambda: nn.Conv2d(3, 4, 3)(kiln.zeros(1, 4, 8, 8)), r"\(N, 3, H, W\)"),
    (lambda: nn.ConvTranspose1d(2, 2, 3, 2)(kiln.zeros(1, 2, 4), output_size=[12]), "9 to 10"),
    (lambda: nn.ZeroPad2d((1, 2, 3)), "4"),
    (lambda: nn.BatchNorm2d(3)(kiln.zeros(2, 3, 4)), "4 dimensions"),
    (lambda: nn.GroupNorm(2, 5), "2 groups"),
    (lambda: nn.MultiheadAttention(10, 3), "3 heads"),
    (lambda: nn.LSTM(3, 4)(kiln.zeros(5, 2, 7)), r"\(T, N, 3\)"),
    (lambda: nn.GRU(3, 4)(kiln.zeros(5, 2, 3), kiln.zeros(1, 1, 4)), r"\(1, 2, 4\)"),
    (lambda: nn.RNN(3, 4, nonlinearity="cube"), "cube"),
    (lambda: nn.TransformerEncoderLayer(4, 2, activation="cube"), "cube"),
    (lambda: nn.Embedding(3, 2, padding_idx=5), "5"),
])
def test_mistakes_are_named(make, message):
    with pytest.raises(kiln.InvalidArgument, match=message):
        make()


def test_hooks_see_and_change_what_goes_in_and_out(connection):
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    seen = []
    first = model[0].register_forward_hook(
        lambda module, arguments, result: seen.append((type(module), arguments[0].shape,
                                                       result.shape)))
    second = model[1].register_forward_pre_hook(lambda module, arguments: (arguments[0] * 0 - 1,))
    third = model[1].register_forward_hook(lambda module, arguments, result: result + 5)
    assert model(kiln.ones(4, 2)).tolist() == [[5.0] * 3] * 4
    assert seen == [(nn.Linear, (4, 2), (4, 3))]
    assert sorted(model.state_dict()) == ["0.bias", "0.weight"]
    first.remove()
    traced = kiln.jit(model)
    assert traced(kiln.ones(1, 2)).tolist() == [[5.0] * 3]
    for handle in (first, second, third):
        handle.remove()
    assert model(kiln.ones(1, 2)).tolist() == model[0](kiln.ones(1, 2)).relu().tolist()
    assert traced(kiln.ones(1, 2)).tolist() == model(kiln.ones(1, 2)).tolist()
    assert len(seen) == 1


def test_batch_norm_in_training_needs_several_values_per_channel():
    for layer, shape in ((nn.BatchNorm1d(3), (1, 3)), (nn.BatchNorm2d(3), (1, 3, 1, 1))):
        with pytest.raises(kiln.InvalidArgument, match="more than one value"):
            layer(kiln.ones(*shape))
        assert layer.eval()(kiln.ones(*shape)).shape == shape


def test_counts_and_extremes_take_numpys_names(connection):
    x = kiln.tensor([[1, 0], [3, 4]])
    assert x.count_nonzero(axis=0).tolist() == [2, 1]
    assert [part.tolist() for part in x.aminmax(axis=0, keepdims=True)] == [[[1, 0]], [[3, 4]]]
