"""kiln.torch's tensors: views, dtypes, devices, gradients, beside Kiln's own tensors."""

# ruff: noqa: E501

import copy
import pickle
import warnings

import numpy as np
import pytest

import kiln
import kiln.torch as torch
from kiln.torch import _device

ONE_SESSION = True


@pytest.fixture(autouse=True)
def _session(connection):
    pass


# Beside Kiln's own tensors.


def test_results_have_the_dialect_of_their_operands():
    ours, theirs = kiln.ones(2, 3), torch.ones(2, 3)
    assert type(kiln.exp(ours)) is kiln.Tensor and not hasattr(ours, "is_cuda")
    for result in (theirs + 1, ours + theirs, kiln.exp(theirs), kiln.functional.relu(theirs), theirs.max(1).values,
                   kiln.where(theirs > 0, ours, 0), torch.as_tensor(ours), kiln.nn.Linear(3, 2)(theirs)):
        assert type(result) is torch.Tensor
    assert type(ours.exp()) is kiln.Tensor
    assert ours.size == 6 and theirs.size() == (2, 3)


def test_as_tensor_leaves_kilns_own_tensor_as_it_is():
    ours = kiln.ones(2) * 2
    theirs = torch.as_tensor(ours)
    theirs.add_(1)
    assert ours.tolist() == [2, 2] and theirs.tolist() == [3, 3]
    assert type(ours + 1) is kiln.Tensor


def test_jit_keeps_the_dialect():
    @kiln.jit
    def double(x):
        return x * 2

    assert type(double(torch.ones(2))) is torch.Tensor
    assert double(torch.ones(2)).tolist() == [2, 2]


# Views.


def test_changes_of_views_reach_the_base_and_each_other():
    x = torch.zeros(3, 4)
    row, flat, turned = x[1], x.view(-1), x.t()
    row.fill_(1)
    flat[0] = 5
    turned[3, 2] += 7
    assert x.tolist() == [[5, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 7]]
    assert row.tolist() == [1, 1, 1, 1] and flat[4:8].tolist() == [1, 1, 1, 1]
    x.zero_()
    assert flat.sum().item() == row.sum().item() == turned.sum().item() == 0


@pytest.mark.parametrize("change", [
    "x[0][1] = 5", "x[:, ::2].mul_(3)", "x[1:, None, :2] -= 1", "x.diagonal().fill_(9)", "x.unfold(1, 2, 2)[0].zero_()",
    "x.chunk(2, 1)[1].neg_()", "x.transpose(0, 1)[1:3].add_(x[0, 0])", "x.unsqueeze(0).squeeze(0).exp_()", "x.flatten().clamp_(2, 5)",
    "x.narrow(0, 1, 1).copy_(torch.arange(4.))", "x.data[0].fill_(3)", "x.detach().mul_(2)", "[r.add_(i) for i, r in enumerate(x)]",
    "x.permute(1, 0).reshape(2, 2, 3)[0].zero_()", "x.split([1, 3], 1)[1][:, 1:].sub_(4)", "x.select(1, 2).sqrt_()",
    "x[x > 5] = 0", "x[[0, 2], 1] = torch.tensor([7., 8.])", "x[1, :, None][torch.tensor([0, 1])] = 0", "x.expand(3, 4)[0, 0] = 2",
    "x.view(2, 6)[1, ::3] = x.view(2, 6)[0, 1]", "x.T.view(4, 3).fill_diagonal_(1)", "x.swapaxes(0, 1).tril_()", "x.reshape(12)[3:9].view(2, 3)[1].zero_()",
])
def test_changes_in_place_are_numpys(change):
    """NumPy's views behave as PyTorch's do."""
    pairs = {
        "x[0][1] = 5": "x[0][1] = 5", "x[:, ::2].mul_(3)": "x[:, ::2] *= 3", "x[1:, None, :2] -= 1": "x[1:, None, :2] -= 1",
        "x.diagonal().fill_(9)": "np.fill_diagonal(x, 9)", "x.unfold(1, 2, 2)[0].zero_()": "x[0] = 0",
        "x.chunk(2, 1)[1].neg_()": "x[:, 2:] *= -1", "x.transpose(0, 1)[1:3].add_(x[0, 0])": "x[:, 1:3] += x[0, 0]",
        "x.unsqueeze(0).squeeze(0).exp_()": "x[:] = np.exp(x)", "x.flatten().clamp_(2, 5)": "np.clip(x, 2, 5, out=x)",
        "x.narrow(0, 1, 1).copy_(torch.arange(4.))": "x[1] = np.arange(4)", "x.data[0].fill_(3)": "x[0] = 3",
        "x.detach().mul_(2)": "x *= 2", "[r.add_(i) for i, r in enumerate(x)]": "x += np.arange(3)[:, None]",
        "x.permute(1, 0).reshape(2, 2, 3)[0].zero_()": "x[:, :2] = 0", "x.split([1, 3], 1)[1][:, 1:].sub_(4)": "x[:, 2:] -= 4",
        "x.select(1, 2).sqrt_()": "x[:, 2] = np.sqrt(x[:, 2])", "x[x > 5] = 0": "x[x > 5] = 0",
        "x[[0, 2], 1] = torch.tensor([7., 8.])": "x[[0, 2], 1] = [7, 8]",
        "x[1, :, None][torch.tensor([0, 1])] = 0": "x[1, :2] = 0", "x.expand(3, 4)[0, 0] = 2": "x[0, 0] = 2",
        "x.view(2, 6)[1, ::3] = x.view(2, 6)[0, 1]": "x.reshape(2, 6)[1, ::3] = x[0, 1]",
        "x.T.view(4, 3).fill_diagonal_(1)": "np.fill_diagonal(x.T, 1)", "x.swapaxes(0, 1).tril_()": "x[:] = np.triu(x)",
        "x.reshape(12)[3:9].view(2, 3)[1].zero_()": "x.reshape(12)[6:9] = 0",
    }
    start = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    ours, theirs = torch.from_numpy(start), start.copy()
    kept = ours[1]  # another view, which has to follow
    exec(change, {"x": ours, "torch": torch})
    exec(pairs[change], {"x": theirs, "np": np})
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)
    np.testing.assert_allclose(kept.numpy(), theirs[1], rtol=1e-6)


def test_copies_are_not_views():
    x = torch.zeros(2, 3)
    for copied in (x.clone(), x[torch.tensor([0, 1])], x + 0, x.t().reshape(-1), x.t().contiguous(), torch.cat([x]), x.repeat(1, 1)):
        copied.fill_(1)
    assert x.sum().item() == 0


def test_a_change_of_an_expanded_tensor_raises():
    x = torch.zeros(3, 1)
    wide = x.expand(3, 4)
    with pytest.raises(kiln.InvalidArgument, match="clone"):
        wide.add_(1)


def test_a_change_of_an_as_strided_view_reaches_its_base_and_its_views():
    base = torch.arange(6.0)
    row = base[1:3]
    part = base.as_strided((2, 2), (1, 2))
    part[0].mul_(10)
    assert base.tolist() == [0, 1, 20, 3, 4, 5] and row.tolist() == [1, 20]
    row.zero_()
    assert part.tolist() == [[0, 0], [0, 3]] and part.stride() == (1, 2)


def test_a_change_of_overlapping_elements_raises():
    base = torch.arange(4.0)
    for change in (lambda: base.as_strided((2, 2), (1, 1)).zero_(), lambda: base.as_strided((3,), (0,))[1:].add_(1)):
        with pytest.raises(kiln.InvalidArgument, match="several elements are one"):
            change()
    assert base.tolist() == [0, 1, 2, 3]


def test_gradients_are_those_of_the_values_before_a_change():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    changes = (lambda u: u.zero_(), lambda u: u.add_(10), lambda u: u[:1].fill_(7), lambda u: u.view(2, 1).mul_(0))
    for change in changes:
        x.grad = None
        u = x * 2
        loss = (u * u).sum()
        change(u)
        loss.backward()
        assert x.grad.tolist() == [8, 16]
    weight, scale, place = torch.nn.Parameter(torch.tensor([3.0, 4.0])), torch.tensor([1.0, 2.0]), torch.tensor([0, 1])
    cubes = (weight ** 3).sum()
    scaled = (weight * scale)[place].pow(2).sum()
    torch.optim.SGD([weight], lr=1.0).step(lambda: (weight.grad, weight.square().sum().backward())[0])
    scale.zero_()
    place.zero_()
    weight.grad = None
    cubes.backward()
    assert weight.grad.tolist() == [27, 48]
    weight.grad = None
    scaled.backward()
    assert weight.grad.tolist() == [6, 32]


def test_parameters_change_through_data_and_keep_their_gradients():
    w = torch.nn.Parameter(torch.ones(3))
    w.data.mul_(2)
    w.data[0] = 7
    assert w.tolist() == [7, 2, 2] and w.requires_grad and w.is_leaf
    (w * w).sum().backward()
    assert w.grad.tolist() == [14, 4, 4]
    with torch.no_grad():
        w[1:] -= 1
    assert w.tolist() == [7, 1, 1] and w.requires_grad
    with pytest.raises(kiln.InvalidArgument, match="no_grad"):
        w.add_(1)
    with pytest.raises(kiln.InvalidArgument, match="no_grad"):
        w[0].mul_(2)


def test_gradients_flow_through_changes_of_views():
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 2
    y[0] = y[0] * 3
    y.view(-1)[4:] = 0.0
    y.sum().backward()
    assert x.grad.tolist() == [[6, 6, 6], [2, 0, 0]]


def test_a_change_through_detach_of_a_result_raises():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    alias = y.detach()
    with pytest.raises(kiln.InvalidArgument, match="clone"):
        alias.add_(1)
    del y
    alias.add_(1)  # nothing else sees it
    assert alias.tolist() == [3, 3]


def test_state_dict_shares_values_and_deepcopy_does_not():
    layer = torch.nn.Linear(2, 1)
    state, kept = layer.state_dict(), copy.deepcopy(layer.state_dict())
    with torch.no_grad():
        layer.weight.fill_(3)
    assert state["weight"].tolist() == [[3, 3]] and kept["weight"].tolist() != [[3, 3]]


# Dtypes, numbers, text.


def test_zero_dimensional_tensors_promote_only_to_a_higher_kind():
    x, i = torch.ones(2), torch.ones(2, dtype=torch.int32)
    assert (x * torch.tensor(2.0, dtype=torch.float64)).dtype == torch.float32
    assert (i * torch.tensor(2)).dtype == torch.int32
    assert (i * torch.tensor(2.0, dtype=torch.float64)).dtype == torch.float64
    assert (x.half() + x).dtype == torch.float32 and (x.half() + x[0]).dtype == torch.float16
    assert torch.where(x > 0, x.half(), torch.tensor(0.0)).dtype == torch.float16


def test_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor([1.0]).dtype == torch.zeros(1).dtype == torch.rand(1).dtype == torch.float64
        assert torch.tensor([1]).dtype == torch.int64
    finally:
        torch.set_default_dtype(torch.float32)


def test_attributes_pickles_and_copies():
    x = torch.ones(2, requires_grad=True)
    x.note = "kept"
    assert copy.deepcopy(x).note == "kept"
    again = pickle.loads(pickle.dumps(x))
    assert type(again) is torch.Tensor and again.requires_grad and again.tolist() == [1, 1]
    parameter = pickle.loads(pickle.dumps(torch.nn.Parameter(torch.zeros(2))))
    assert isinstance(parameter, torch.nn.Parameter) and parameter.requires_grad


def test_random_numbers_repeat_after_manual_seed():
    torch.manual_seed(3)
    first = torch.rand(4), torch.randn(2), torch.randint(10, (5,)), torch.randperm(6), torch.ones(3).normal_()
    torch.manual_seed(3)
    second = torch.rand(4), torch.randn(2), torch.randint(10, (5,)), torch.randperm(6), torch.ones(3).normal_()
    assert all(torch.equal(one, other) for one, other in zip(first, second))
    state = torch.get_rng_state()
    drawn = torch.rand(3)
    torch.set_rng_state(state)
    assert torch.equal(drawn, torch.rand(3))
    generator = torch.Generator().manual_seed(5)
    assert not torch.equal(torch.rand(3, generator=generator), torch.rand(3, generator=generator))


@pytest.mark.parametrize("draw, mean, deviation", [
    ("torch.zeros(20000).normal_(2, 3)", 2, 3), ("torch.zeros(20000).uniform_(1, 3)", 2, 3**-0.5),
    ("torch.zeros(20000).exponential_(2)", 0.5, 0.5), ("torch.zeros(20000).bernoulli_(0.3)", 0.3, 0.21**0.5),
    ("torch.zeros(20000).geometric_(0.5)", 2, 2**0.5), ("torch.zeros(20000).random_(0, 11)", 5, 10**0.5),
    ("torch.zeros(20000).log_normal_(0, 0.5)", 1.1331, 0.6039), ("torch.rand_like(torch.zeros(20000))", 0.5, 12**-0.5),
    ("torch.randn_like(torch.zeros(20000))", 0, 1), ("torch.randint_like(torch.zeros(20000), 3)", 1, (2 / 3)**0.5),
    ("torch.normal(1.0, 2.0, (20000,))", 1, 2), ("torch.normal(torch.ones(20000), 0.5)", 1, 0.5),
    ("torch.bernoulli(torch.full((20000,), 0.2))", 0.2, 0.4), ("torch.poisson(torch.full((20000,), 3.0))", 3, 3**0.5),
    ("torch.binomial(torch.full((20000,), 10.0), torch.full((20000,), 0.5))", 5, 2.5**0.5),
    ("torch.multinomial(torch.tensor([1.0, 1.0]), 20000, True).float()", 0.5, 0.5),
])
def test_distributions(draw, mean, deviation):
    torch.manual_seed(1)
    found = eval(draw).numpy()
    assert found.mean() == pytest.approx(mean, abs=0.06 * max(1, deviation))
    assert found.std() == pytest.approx(deviation, rel=0.06)


def test_cauchy_numbers_have_their_median():
    torch.manual_seed(1)
    assert torch.zeros(20001).cauchy_(2, 1).median().item() == pytest.approx(2, abs=0.1)


# Devices: this daemon has only its CPU.


def test_cuda_is_the_cpu_without_an_accelerator(monkeypatch):
    monkeypatch.setattr(_device, "_warned", [])
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x = torch.ones(2, device="cuda")
        y = x.cuda().to("cuda:0", torch.float64, non_blocking=True)
        torch.nn.Linear(2, 1).to(torch.device("cuda"))
    assert len(seen) == 1 and "no accelerator" in str(seen[0].message)
    assert x.device == y.device == torch.device("cpu") and y.dtype == torch.float64


def test_devices_have_names_and_compare():
    assert str(torch.device("cuda", 1)) == "cuda:1" and torch.device("cuda:1") == torch.device("cuda", 1)
    assert torch.device("cpu") != torch.device("cuda") and {torch.device("cpu"): 1}[torch.device("cpu")] == 1
    with pytest.raises(kiln.InvalidArgument, match="must be one of"):
        torch.device("gpu")
    with torch.device("cpu"):
        assert torch.ones(1).device.type == "cpu"


@pytest.mark.parametrize("make", [
    "torch.zeros(2, device='cpu', dtype=torch.float16)", "torch.full((2,), 1.0, device='cpu', dtype=torch.float16)",
    "torch.arange(2, device='cpu', dtype=torch.float16)", "torch.rand(2, device='cpu', dtype=torch.float16)",
    "torch.randn(2, device='cpu', dtype=torch.float16)", "torch.eye(2, device='cpu', dtype=torch.float16)",
    "torch.linspace(0, 1, 2, device='cpu', dtype=torch.float16)", "torch.empty(2, device='cpu', dtype=torch.float16)",
    "torch.ones_like(torch.zeros(2), device='cpu', dtype=torch.float16)", "torch.tensor([1.0], device='cpu', dtype=torch.float16)",
    "torch.zeros(2).new_ones(2, device='cpu', dtype=torch.float16)", "torch.nn.Linear(2, 2, device='cpu', dtype=torch.float16).weight",
    "torch.nn.Conv2d(1, 1, 1, device='cpu', dtype=torch.float16).weight", "torch.nn.LSTM(1, 1, device='cpu', dtype=torch.float16).weight_ih_l0",
    "torch.nn.LayerNorm(2, device='cpu', dtype=torch.float16).weight", "torch.nn.Embedding(2, 2, device='cpu', dtype=torch.float16).weight",
    "torch.nn.MultiheadAttention(2, 1, device='cpu', dtype=torch.float16).in_proj_weight",
])
def test_factories_take_device_and_dtype(make):
    made = eval(make)
    assert made.dtype == torch.float16 and made.device.type == "cpu"


def test_factories_take_requires_grad():
    for made in (torch.zeros(2, requires_grad=True), torch.rand(2, requires_grad=True), torch.tensor([1.0], requires_grad=True)):
        assert made.requires_grad and made.is_leaf


# Gradients.


def test_hooks_change_gradients_of_leaves():
    x = torch.ones(2, requires_grad=True)
    handle = x.register_hook(lambda slope: slope * 10)
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [22, 22]


def test_results_keep_their_gradient_when_asked():
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [6, 6] and y.retains_grad and x.new([1, 2]).tolist() == [1, 2] and not x.is_shared()


def test_modes_of_gradients():
    x = torch.ones(2, requires_grad=True)

    @torch.no_grad()
    def one():
        return x * 2

    @torch.inference_mode()
    def two():
        return x * 2

    with torch.set_grad_enabled(False):
        three = x * 2
    with torch.no_grad(), torch.enable_grad():
        four = x * 2
    assert [one().requires_grad, two().requires_grad, three.requires_grad, four.requires_grad] == [False, False, False, True]
    assert torch.is_grad_enabled()


def test_backward_of_several_and_again():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.sum().backward(retain_graph=True)
    y.backward(torch.ones(2))
    assert x.grad.tolist() == [4, 8]
    torch.autograd.backward([x.sum(), (2 * x).sum()])
    assert x.grad.tolist() == [7, 11]
    slope, = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert torch.autograd.grad(slope.sum(), x)[0].tolist() == [6, 12]


def test_zero_grad_without_set_to_none():
    w = torch.nn.Parameter(torch.ones(2))
    w.sum().backward()
    torch.optim.SGD([w], 0.1).zero_grad(set_to_none=False)
    assert w.grad.tolist() == [0, 0]
