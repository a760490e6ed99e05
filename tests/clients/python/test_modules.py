"""Modules, their state, and files of tensors: no daemon needed."""

import json
import struct

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
        "body.1.running_mean", "body.1.running_var"]
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


@pytest.mark.parametrize("name", ["weights.npz", "weights.safetensors"])
def test_tensors_survive_a_file(tmp_path, name):
    tensors = {
        "a.b": kiln.tensor(np.arange(6, dtype=np.float32).reshape(2, 3)),
        "scalar": kiln.tensor(3),
        "flags": kiln.tensor([True, False]),
        "empty": kiln.tensor(np.zeros((0, 2), np.float64)),
    }
    kiln.save(tensors, tmp_path / name)
    loaded = kiln.load(tmp_path / name)
    assert list(loaded) == list(tensors)
    for key, tensor in tensors.items():
        assert (loaded[key].dtype, loaded[key].shape) == (tensor.dtype, tensor.shape)
        np.testing.assert_array_equal(loaded[key].numpy(), tensor.numpy())
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_bfloat16_survives_a_safetensors_file(tmp_path):
    kiln.save({"x": kiln.tensor([1.5, -2.0], "bfloat16")}, tmp_path / "x.safetensors")
    loaded = kiln.load(tmp_path / "x.safetensors")["x"]
    assert loaded.dtype is kiln.bfloat16
    np.testing.assert_array_equal(loaded.numpy(), [1.5, -2.0])


def test_the_safetensors_header_is_the_documented_one(tmp_path):
    kiln.save({"x": kiln.tensor([1.0, 2.0])}, tmp_path / "x.safetensors")
    data = (tmp_path / "x.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    assert json.loads(data[8 : 8 + size]) == {
        "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    assert data[8 + size :] == np.array([1, 2], np.float32).tobytes()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff" * 16, struct.pack("<Q", 4) + b"nope",
        struct.pack("<Q", 66)
        + b'{"x":{"dtype":"F32","shape":[9],"data_offsets":[0,4]}}'.ljust(66) + b"1234",
    ],
)  # fmt: skip
def test_a_damaged_file_is_an_error(tmp_path, data):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(kiln.DataLoss, match=r"bad\.safetensors"):
        kiln.load(path)


def test_optimizers_refuse_what_they_cannot_train():
    with pytest.raises(kiln.InvalidArgument):
        kiln.optim.SGD([])
    with pytest.raises(kiln.InvalidArgument, match="require"):
        kiln.optim.SGD([kiln.zeros(2)])
    with pytest.raises(kiln.InvalidArgument):
        kiln.optim.SGD([kiln.zeros(2, requires_grad=True)], lr=-1)
