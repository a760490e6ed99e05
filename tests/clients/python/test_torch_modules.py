"""kiln.torch's modules, optimizers, files and data sets: their state and bookkeeping, as in PyTorch."""

# ruff: noqa: E501

import collections
import copy
import os
import pathlib
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import kiln
import kiln.torch as torch
from kiln.torch import nn, optim
from kiln.torch.nn import functional as F
from kiln.torch.utils import data

FOLDER = pathlib.Path(__file__).resolve().parent / "pytorch"
ONE_SESSION = True


@pytest.fixture(autouse=True)
def _session(connection):
    pass


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False))
        self.register_buffer("scale", torch.ones(2))
        self.register_buffer("cache", torch.zeros(1), persistent=False)
        self.plain = torch.zeros(5)
        self.in_list = [nn.Linear(1, 1)]
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.rest(self.first(x)) * self.scale * self.gain


# Modules.


def test_only_assigned_parameters_buffers_and_modules_are_registered():
    net = Net()
    assert list(net.state_dict()) == ["gain", "scale", "first.weight", "first.bias", "rest.1.weight"]
    assert [name for name, _ in net.named_parameters()] == ["gain", "first.weight", "first.bias", "rest.1.weight"]
    assert [name for name, _ in net.named_buffers()] == ["scale", "cache"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert [name for name, _ in net.named_children()] == ["first", "rest"] and len(list(net.modules())) == 5
    assert net.rest[1].bias is None and "bias" in net.rest[1]._parameters
    del net.gain
    assert not hasattr(net, "gain")
    net.first = None
    assert net.first is None and "first" in net._modules


def test_attributes_are_checked_as_in_pytorch():
    net = Net()
    with pytest.raises(TypeError, match=r"Parameter or None expected"):
        net.gain = torch.ones(1)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        net.missing  # noqa: B018
    with pytest.raises(KeyError, match="dot"):
        net.register_buffer("a.b", torch.ones(1))

    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="before Module"):
        Early()


def test_data_parallel_has_the_module():
    model = nn.DataParallel(nn.Linear(2, 1))
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    assert torch.equal(model(torch.ones(1, 2)), model.module(torch.ones(1, 2)))


def test_recurrent_layers_by_mode():
    assert isinstance(nn.RNNBase("LSTM", 4, 3), nn.LSTM) and nn.RNNBase("RNN_RELU", 4, 3).mode == "RNN_RELU"


def test_layers_of_layers_are_torch_modules():
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    for module in stack.modules():
        assert isinstance(module, nn.Module)
    assert isinstance(stack.layers[0].self_attn.out_proj, nn.Linear) and isinstance(stack.layers, nn.ModuleList)
    assert all(isinstance(value, nn.Parameter) for value in stack.parameters())
    norm = nn.BatchNorm1d(3)
    assert isinstance(norm.running_mean, torch.Tensor) and next(name for name, _ in norm.named_buffers()) == "running_mean"
    assert copy.deepcopy(stack).layers[0].linear1.weight is not stack.layers[0].linear1.weight


def test_loading_reports_what_does_not_fit():
    net = Net()
    state = net.state_dict()
    assert "matched successfully" in repr(net.load_state_dict(state))
    state = collections.OrderedDict(state, extra=torch.ones(1))
    del state["gain"]
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "gain"(.|\n)*Unexpected key\(s\) in state_dict: "extra"'):
        net.load_state_dict(state)
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["gain"] and found.unexpected_keys == ["extra"]
    state["scale"] = torch.ones(3)
    with pytest.raises(RuntimeError, match="size mismatch for scale"):
        net.load_state_dict(state, strict=False)


def test_hooks_see_and_replace():
    layer = nn.Linear(2, 1)
    seen = []
    before = layer.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    after = layer.register_forward_hook(lambda module, args, output: seen.append(tuple(output.shape)) or output + 1)
    assert torch.allclose(layer(torch.ones(3, 2)), layer.bias + 1) and seen == [(3, 1)]
    before.remove()
    after.remove()
    assert not layer._before and not layer._after


def test_modes_apply_and_moves():
    net = Net()
    net.eval()
    assert not any(module.training for module in net.modules())
    names = []
    net.apply(lambda module: names.append(type(module).__name__))
    assert names == ["Linear", "ReLU", "Linear", "Sequential", "Net"]
    before = net.first.weight
    net.double()
    assert net.first.weight is before and before.dtype == torch.float64 and net.scale.dtype == torch.float64
    net.to("cpu", torch.float32).requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())
    assert net.to(torch.device("cpu")) is net and "Linear(3, 4)" in repr(net)


def test_zero_grad_and_reset_parameters():
    layer = nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0, 0]]
    layer.zero_grad()
    assert layer.weight.grad is None
    old = layer.weight.clone()
    layer.reset_parameters()
    assert not torch.equal(old, layer.weight) and layer.weight.abs().max() <= 2**-0.5


def test_containers_change():
    net = nn.Sequential(collections.OrderedDict(a=nn.Linear(2, 2), b=nn.ReLU()))
    net[1] = nn.Tanh()
    net.append(nn.Sigmoid())
    assert list(net._modules) == ["a", "b", "2"] and isinstance(net.b, nn.Tanh) and len(net[:2]) == 2
    del net[0]
    assert len(net) == 2
    layers = nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])
    layers.insert(1, nn.ReLU())
    layers.extend([nn.Tanh()])
    assert [type(layer).__name__ for layer in layers] == ["Linear", "ReLU", "Linear", "Linear", "Tanh"]
    assert isinstance(layers.pop(1), nn.ReLU) and isinstance(layers[-1], nn.Tanh) and list(layers._modules) == list("0123")
    named = nn.ModuleDict({"x": nn.ReLU()})
    named["y"] = nn.Linear(1, 1)
    named.update({"z": nn.Tanh()})
    assert list(named) == list(named.keys()) == ["x", "y", "z"] and "y" in named and len(named.pop("x")._modules) == 0
    weights = nn.ParameterList([torch.ones(2)])
    weights.append(nn.Parameter(torch.zeros(1)))
    assert len(weights) == 2 and all(isinstance(value, nn.Parameter) for value in weights)
    table = nn.ParameterDict({"a": torch.ones(1)})
    table["b"] = nn.Parameter(torch.ones(2))
    assert list(table.state_dict()) == ["a", "b"]


def test_dropout_and_batch_norm_in_training():
    torch.manual_seed(0)
    x = torch.ones(4000)
    dropped = nn.Dropout(0.25)(x)
    assert dropped.mean().item() == pytest.approx(1, abs=0.05) and set(np.unique(dropped.numpy().round(4))) == {0.0, np.float32(1.3333)}
    for kind, shape in ((nn.Dropout1d, (50, 40, 3)), (nn.Dropout2d, (50, 40, 2, 2)), (nn.Dropout3d, (50, 40, 1, 2, 2)),
                        (nn.FeatureAlphaDropout, (50, 40, 2, 2))):
        rows = kind(0.5)(torch.ones(shape)).numpy().reshape(2000, -1)
        assert (rows == rows[:, :1]).all() and len(np.unique(rows)) == 2
    assert nn.AlphaDropout(0.5)(torch.randn(20000)).std().item() == pytest.approx(1, abs=0.05)
    assert F.rrelu(-torch.ones(1000), training=True).std().item() > 0.01


def test_embedding_bounds_its_norms():
    table = nn.Embedding(3, 2, max_norm=1.0)
    table.weight.data.fill_(3)
    assert table(torch.tensor([1])).norm().item() == pytest.approx(1, abs=1e-4)
    assert table.weight[0].norm().item() > 4  # not read
    frozen = nn.Embedding.from_pretrained(torch.ones(2, 2))
    assert not frozen.weight.requires_grad and frozen(torch.tensor([0])).tolist() == [[1, 1]]


def test_normalized_weights():
    torch.manual_seed(0)
    layer = nn.utils.spectral_norm(nn.Linear(6, 4), n_power_iterations=50)
    layer(torch.ones(1, 6))
    assert np.linalg.norm(layer.weight.detach().numpy(), 2) == pytest.approx(1, abs=1e-3)
    assert sorted(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    nn.utils.remove_spectral_norm(layer)
    assert isinstance(layer.weight, nn.Parameter)


@pytest.mark.parametrize("fill, spread", [
    ("kaiming_normal_", (2 / 300) ** 0.5), ("kaiming_uniform_", (2 / 300) ** 0.5), ("xavier_normal_", (2 / 700) ** 0.5),
    ("xavier_uniform_", (2 / 700) ** 0.5), ("orthogonal_", 400**-0.5),
])
def test_initial_values_have_their_spread(fill, spread):
    torch.manual_seed(2)
    weight = nn.Linear(300, 400).weight
    assert getattr(nn.init, fill)(weight) is weight
    assert weight.std().item() == pytest.approx(spread, rel=0.03) and weight.requires_grad


def test_sparse_and_truncated_initial_values():
    torch.manual_seed(2)
    assert (nn.init.sparse_(torch.ones(100, 10), 0.3) == 0).sum(0).tolist() == [30] * 10
    assert nn.init.trunc_normal_(torch.zeros(9000), 0, 1, -1, 1).abs().max() <= 1


# Optimizers.


def test_own_optimizers_follow_pytorchs_protocol():
    class Plain(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    if len(state) == 0:
                        state["buffer"] = torch.zeros_like(p)
                    state["buffer"].mul_(0.5).add_(p.grad)
                    p.add_(state["buffer"], alpha=-group["lr"])

    w = nn.Parameter(torch.ones(2))
    optimizer = Plain([w], 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (w * torch.tensor([1.0, 2.0])).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(w.tolist(), [0.75, 0.5], rtol=1e-6)


def test_optimizer_state_loads_into_another():
    def train(w, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
        return w.tolist()

    w = nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = optim.Adam([w], lr=0.1)
    train(w, optimizer, 3)
    state = copy.deepcopy(optimizer.state_dict())
    assert sorted(state["state"][0]) == ["exp_avg", "exp_avg_sq", "step"] and state["param_groups"][0]["params"] == [0]
    other = nn.Parameter(w.detach().clone())
    resumed = optim.Adam([other], lr=0.5)
    resumed.load_state_dict(state)
    assert resumed.param_groups[0]["lr"] == 0.1
    assert train(other, resumed, 2) == train(w, optimizer, 2)


def test_a_state_of_pytorchs_sgd_has_no_count():
    w = nn.Parameter(torch.ones(2))
    optimizer = optim.SGD([w], lr=0.1, momentum=0.5)
    group = {name: value for name, value in optimizer.state_dict()["param_groups"][0].items() if name != "params"}
    optimizer.load_state_dict({"state": {0: {"momentum_buffer": torch.full((2,), 2.0)}},
                               "param_groups": [{**group, "foreach": None, "params": [0]}]})
    w.sum().backward()
    optimizer.step()
    np.testing.assert_allclose(w.tolist(), [0.8, 0.8], rtol=1e-6)


def test_parameters_without_a_gradient_keep_their_own_count():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    both, alone = optim.Adam([a, b], 0.1), nn.Parameter(torch.ones(1))
    single = optim.Adam([alone], 0.1)
    for step in range(4):
        both.zero_grad()
        (a * 2).sum().backward()
        if step % 2:
            (b * 3).sum().backward()
            single.zero_grad()
            (alone * 3).sum().backward()
            single.step()
        both.step()
    assert b.item() == pytest.approx(alone.item(), abs=1e-6) and float(both.state[b]["step"]) == 2 and float(both.state[a]["step"]) == 4


def test_groups_hooks_and_errors():
    w = nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([{"params": [w], "lr": 0.5, "name": "one"}], lr=0.1)
    assert optimizer.param_groups[0]["name"] == "one"
    optimizer.add_param_group({"params": nn.Parameter(torch.ones(1))})
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    optimizer.step()
    assert calls == ["before", "after"]
    with pytest.raises(ValueError, match="more than one"):
        optimizer.add_param_group({"params": w})
    with pytest.raises(ValueError, match="empty"):
        optim.SGD([], 0.1)
    with pytest.raises(TypeError, match="unexpected keyword"):
        optim.SGD([w], 0.1, betas=(0.9, 0.99))


def test_amp_trains_and_skips_infinite_steps():
    w = nn.Parameter(torch.ones(2, 2))
    optimizer, scaler = optim.SGD([w], 0.1), torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    with torch.autocast("cpu", dtype=torch.float16):
        product = w @ torch.ones(2, 2)
    assert product.dtype == torch.float16 and not torch.is_autocast_enabled()
    scaler.scale(product.float().sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert w[0].tolist() == pytest.approx([0.8, 0.8]) and scaler.get_scale() == 8.0
    w.grad = torch.full((2, 2), float("inf"))
    scaler.step(optimizer)
    scaler.update()
    assert w[0].tolist() == pytest.approx([0.8, 0.8]) and scaler.get_scale() == 4.0


def test_clipping_by_value_and_by_a_given_norm():
    w = nn.Parameter(torch.ones(2))
    w.grad = torch.tensor([3.0, -4.0])
    assert nn.utils.clip_grad_norm(w, 1.0).item() == 5.0
    nn.utils.clip_grads_with_norm_([w], 1.0, torch.tensor(2.0))
    np.testing.assert_allclose(w.grad.tolist(), [0.3, -0.4], rtol=1e-5)
    nn.utils.clip_grad_value_([w], 0.35)
    np.testing.assert_allclose(w.grad.tolist(), [0.3, -0.35], rtol=1e-5)
    nn.utils.vector_to_parameters(torch.zeros(2), [w])
    assert w.tolist() == [0, 0]


def test_sparse_adam_is_adam():
    ends = []
    for kind in (optim.SparseAdam, optim.Adam):
        w = nn.Parameter(torch.ones(2))
        optimizer = kind([w], 0.1)
        (w * w).sum().backward()
        optimizer.step()
        ends.append(w.tolist())
    assert ends[0] == ends[1]


def test_hooks_after_accumulation_and_settings():
    w = nn.Parameter(torch.ones(2))
    seen = []
    handle = w.register_post_accumulate_grad_hook(lambda parameter: seen.append(parameter.grad.tolist()))
    w.sum().backward()
    handle.remove()
    w.sum().backward()
    assert seen == [[1, 1]]
    torch.set_num_interop_threads(2)
    torch.set_num_threads(3)
    assert (torch.get_num_threads(), torch.get_num_interop_threads()) == (3, 2)
    torch.manual_seed(11)
    assert torch.initial_seed() == 11
    torch.set_printoptions(precision=2)
    assert str(torch.tensor([1.234])) == "tensor([1.23])"
    torch.set_printoptions(profile="default")
    assert torch.compile(w.sum)() is not None and torch.compile(mode="max-autotune")(len)([1]) == 1
    count, = torch.while_loop(lambda x: x < 5, lambda x: (x + 2,), (torch.tensor(0),))
    assert count.item() == 6
    start, end = torch.Event(), torch.cuda.Event(enable_timing=True)
    with torch.Stream():
        start.record()
        end.record()
    assert start.elapsed_time(end) >= 0 and issubclass(torch.AcceleratorError, MemoryError)


def test_amp_for_cuda_is_off_without_an_accelerator():
    with pytest.warns(UserWarning, match="no accelerator"), torch.autocast("cuda"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    with pytest.warns(UserWarning, match="no accelerator"):
        assert not torch.cuda.amp.GradScaler().is_enabled()


def test_imports_of_submodules():
    from kiln.torch.autograd import Variable
    from kiln.torch.nn.modules.module import Module
    from kiln.torch.nn.modules.utils import _pair
    from kiln.torch.utils.data.dataloader import DataLoader
    from kiln.torch.utils.data.dataset import Dataset
    from kiln.torch.utils.data.sampler import SubsetRandomSampler

    assert Module is nn.Module and Dataset is data.Dataset and DataLoader is data.DataLoader
    assert SubsetRandomSampler is data.SubsetRandomSampler and _pair(3) == (3, 3) and _pair((1, 2)) == (1, 2)
    assert Variable(torch.ones(1), requires_grad=True).requires_grad


def test_gradient_descent_by_hand():
    """As in tutorials: Parameters change through data, gradients are set to zero in place."""
    torch.manual_seed(0)
    w = torch.randn(3, requires_grad=True)
    layer = nn.Linear(3, 1)
    x = torch.randn(16, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5])
    first = None
    for _ in range(100):
        loss = (x @ w - y).pow(2).mean() + (layer(x).squeeze(1) - y).pow(2).mean()
        first = loss.item() if first is None else first
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad.zero_()
        for p in layer.parameters():
            p.data.sub_(p.grad.data * 0.1)
            p.data -= 0
            p.grad.data.zero_()
    assert loss.item() < 0.01 * first and w.grad.tolist() == [0, 0, 0]


# Files.


def test_a_file_of_pytorch_loads():
    loaded = torch.load(FOLDER / "checkpoint.pth", map_location="cpu", weights_only=True)
    assert loaded["epoch"] == 3 and loaded["note"] == "text" and loaded["half"].tolist() == [1.5, 2.5]
    assert loaded["turned"].tolist() == [[0, 3], [1, 4], [2, 5]] and loaded["part"].tolist() == [2, 3]
    assert loaded["half"].dtype == torch.bfloat16 and loaded["dtype"] is torch.float32 and loaded["size"] == (2, 3)
    assert isinstance(loaded["parameter"], nn.Parameter) and loaded["empty"].shape == (0, 2)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model.load_state_dict(loaded["model"])
    optimizer = optim.Adam(model.parameters())
    optimizer.load_state_dict(loaded["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.25 and float(optimizer.state[model[0].bias]["step"]) == 1
    model(torch.arange(6.0).reshape(2, 3)).sum().backward()
    optimizer.step()


def test_saved_files_load_here_and_say_what_pytorch_reads(tmp_path):
    x = torch.arange(6.0).reshape(2, 3)
    values = {"x": x, "t": x.t(), "h": x.to(torch.bfloat16), "n": [1, 2.5, None, "a", (True,)], "p": nn.Parameter(x),
              "d": torch.int64, "s": x.shape, "o": collections.OrderedDict(a=torch.zeros(0))}
    path = tmp_path / "file.pt"
    torch.save(values, path)
    loaded = torch.load(path)
    assert loaded["t"].tolist() == x.t().tolist() and loaded["h"].dtype == torch.bfloat16 and loaded["n"] == values["n"]
    assert loaded["d"] is torch.int64 and loaded["s"] == (2, 3) and isinstance(loaded["p"], nn.Parameter)
    with zipfile.ZipFile(path) as archive:
        assert {"file/data.pkl", "file/version", "file/byteorder", "file/data/0"} <= set(archive.namelist())
    with open(tmp_path / "other.pt", "wb") as file:
        torch.save(x, file)
    with open(tmp_path / "other.pt", "rb") as file:
        assert torch.equal(torch.load(file), x)


def test_pytorch_reads_saved_files(tmp_path):
    """With a PyTorch 2.x only, whose Python $KILN_TORCH_PYTHON names."""
    python = os.environ.get("KILN_TORCH_PYTHON")
    if not python:
        pytest.skip("KILN_TORCH_PYTHON names no Python with PyTorch")
    torch.save({"x": torch.arange(6.0).reshape(2, 3).t(), "h": torch.ones(2, dtype=torch.bfloat16), "p": nn.Parameter(torch.ones(1))},
               tmp_path / "file.pt")
    done = subprocess.run([python, "-c", "import torch; d = torch.load('file.pt'); print(d['x'].tolist(), d['h'], d['p'])"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] tensor([1., 1.], dtype=torch.bfloat16) Parameter"), done.stderr


class Malicious:
    def __reduce__(self):
        return os.system, ("echo harm",)


def test_loading_runs_no_code_of_a_file(tmp_path, capfd):
    path = tmp_path / "file.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("file/data.pkl", pickle.dumps(Malicious(), 2))
        archive.writestr("file/version", "3\n")
    with pytest.raises(pickle.UnpicklingError, match="does not run"):
        torch.load(path, weights_only=False)
    assert "harm" not in capfd.readouterr().out
    with pytest.raises(RuntimeError, match="not an archive"):
        (tmp_path / "old.pt").write_bytes(b"\x80\x02")
        torch.load(tmp_path / "old.pt")


# Data sets.


def test_batches_in_order_shuffled_and_dropped():
    x, y = torch.arange(10.0), torch.arange(10)
    rows = data.TensorDataset(x, y)
    batches = list(data.DataLoader(rows, batch_size=4))
    assert [batch[1].tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] and isinstance(batches[0], list)
    assert len(data.DataLoader(rows, 4, drop_last=True)) == len(list(data.DataLoader(rows, 4, drop_last=True))) == 2
    generator = torch.Generator().manual_seed(1)
    shuffled = [i for _, batch in data.DataLoader(rows, 4, shuffle=True, generator=generator) for i in batch.tolist()]
    assert sorted(shuffled) == list(range(10)) != shuffled
    generator.manual_seed(1)
    assert shuffled == [i for _, batch in data.DataLoader(rows, 4, shuffle=True, generator=generator) for i in batch.tolist()]


class Squares(data.Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, index):
        if index >= 7:
            raise IndexError
        return {"x": np.full(2, index, np.float32), "y": index**2, "name": f"n{index}", "pair": (float(index), torch.tensor([index]))}


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_are_collated_and_workers_keep_the_order(workers):
    seen = []
    loader = data.DataLoader(Squares(), batch_size=3, num_workers=workers, pin_memory=True,
                             worker_init_fn=lambda number: seen.append((number, data.get_worker_info().num_workers)))
    batches = list(loader)
    assert [batch["y"].tolist() for batch in batches] == [[0, 1, 4], [9, 16, 25], [36]]
    assert batches[0]["x"].dtype == torch.float32 and batches[0]["x"].shape == (3, 2) and batches[1]["name"] == ["n3", "n4", "n5"]
    assert batches[0]["pair"][0].dtype == torch.float64 and batches[0]["pair"][1].shape == (3, 1)
    assert all(entry == (number, 2) for number, entry in enumerate(sorted(seen))) and data.get_worker_info() is None


def test_an_error_in_a_worker_reaches_the_loop():
    class Fails(Squares):
        def __getitem__(self, index):
            raise ValueError(f"sample {index}")

    with pytest.raises(ValueError, match="sample 0"):
        next(iter(data.DataLoader(Fails(), num_workers=2)))


def test_iterable_data_sets():
    class Count(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            return iter(range(0 if info is None else info.id, 6, 1 if info is None else info.num_workers))

    assert [batch.tolist() for batch in data.DataLoader(Count(), batch_size=4)] == [[0, 1, 2, 3], [4, 5]]
    assert sorted(i for batch in data.DataLoader(Count(), batch_size=2, num_workers=2) for i in batch.tolist()) == list(range(6))
    assert list(data.ChainDataset([Count(), Count()])) == [*range(6), *range(6)]


def test_samplers_and_splits():
    one, two = data.random_split(range(10), [0.75, 0.25], generator=torch.Generator().manual_seed(0))
    assert (len(one), len(two)) == (8, 2) and sorted([*one, *two]) == list(range(10))
    joined = data.ConcatDataset([[1, 2], [3]])
    assert [joined[i] for i in range(3)] == [1, 2, 3] and joined[-1] == 3 and len(joined) == 3
    assert data.StackDataset([1, 2], [3, 4])[1] == (2, 4) and data.StackDataset(a=[1], b=[2])[0] == {"a": 1, "b": 2}
    assert list(data.Subset("abcd", [3, 1])) == ["d", "b"] and list(data.SequentialSampler("abc")) == [0, 1, 2]
    assert sorted(data.RandomSampler("abcd")) == [0, 1, 2, 3] and len(list(data.RandomSampler("ab", True, 9))) == 9
    assert sorted(data.SubsetRandomSampler([5, 7])) == [5, 7] and set(data.WeightedRandomSampler([0.0, 1.0], 5)) == {1}
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]] and len(data.BatchSampler(range(5), 2, True)) == 2
    parts = [list(data.DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in (0, 1)]
    assert parts == [[0, 2, 4], [1, 3, 0]] and isinstance(data.SequentialSampler([1]), data.Sampler)
    assert data.default_convert({"a": np.ones(2)})["a"].tolist() == [1, 1] and data.default_collate([1, 2]).tolist() == [1, 2]


def test_tensors_of_kiln_itself_are_taken():
    assert data.default_collate([kiln.ones(2), kiln.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert type(data.default_collate([kiln.ones(2)])) is torch.Tensor
    assert sys.modules["kiln.torch"] is torch
