"""Modules and their state: no daemon needed."""

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
