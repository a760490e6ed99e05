""""cuda" is the daemon's first accelerator: here an OpenCL device."""

# ruff: noqa: E501

import pytest

import kiln
import kiln.torch as torch
from kiln._session import connection as _connection


@pytest.fixture
def accelerator(mixed):
    opened = kiln.connect(mixed.address, device="cpu:0")
    yield "opencl:0"
    _connection._default = None
    opened.close()


def test_tensors_move_between_cpu_and_cuda(accelerator):
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
    x = torch.ones(2, 3, device="cuda")
    assert x.device == torch.device("cuda:0") and x.is_cuda and x.get_device() == 0 and kiln.Tensor.device.fget(x) == accelerator
    assert (x + 1).device.type == "cuda" and x[0].is_cuda and torch.zeros_like(x).is_cuda and x.new_ones(2).is_cuda
    assert "device='cuda:0'" in repr(x)
    y = x.cpu()
    assert y.device == torch.device("cpu") and y.tolist() == x.tolist()
    assert torch.tensor([1.0]).to("cuda", torch.float64).dtype == torch.float64
    with torch.device("cuda"):
        assert torch.rand(2).is_cuda
    assert torch.cuda.get_device_name() and torch.cuda.get_device_properties(0).total_memory > 0
    with pytest.raises(kiln.InvalidArgument, match="1 accelerators"):
        x.to("cuda:1")


def test_models_train_on_cuda(accelerator, tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)).to("cuda")
    assert all(value.is_cuda for value in [*model.parameters(), *model.buffers()][:-1])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    x, y = torch.rand(8, 3).cuda(), torch.zeros(8, 1, device="cuda")
    losses = []
    for _ in range(3):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[2] < losses[0] and model[0].weight.grad.is_cuda and loss.is_cuda
    torch.save(model.state_dict(), tmp_path / "model.pt")
    assert torch.load(tmp_path / "model.pt", map_location="cuda:0")["0.weight"].is_cuda
    other = torch.nn.Linear(3, 4, device="cuda")
    other.load_state_dict({"weight": torch.ones(4, 3), "bias": torch.zeros(4)})
    assert other.weight.is_cuda and other.weight.sum().item() == 12
    assert not model.cpu()[0].weight.is_cuda
