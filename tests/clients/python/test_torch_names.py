"""How many of PyTorch's names kiln.torch has, and that each of them is tested."""

# ruff: noqa: E501

import pathlib
import re
import sys

import pytest

import kiln.torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "pytorch"))
import torch_cases  # noqa: E402
import names_table  # noqa: E402
import torch_distributions  # noqa: E402
import torch_edges  # noqa: E402
import torch_functions  # noqa: E402

# The least share of each namespace's names.
LEAST = {
    "torch.Tensor": 0.98, "torch": 0.97, "torch.nn": 0.98, "torch.nn.functional": 0.99, "torch.nn.init": 1.0, "torch.nn.utils": 0.9,
    "torch.nn.utils.rnn": 1.0, "torch.optim": 0.93, "torch.optim.lr_scheduler": 1.0, "torch.linalg": 0.9, "torch.utils.data": 1.0,
    "torch.func": 0.8, "torch.autograd.functional": 1.0, "torch.distributions": 0.4,
}


def spaces():
    return [space for space in names_table.NAMES if space != "version"]


@pytest.mark.parametrize("space", spaces())
def test_most_names_are_available(space):
    lacking = names_table.missing(space)
    assert 1 - len(lacking) / len(names_table.NAMES[space]) >= LEAST[space], lacking
    assert not [name for name in lacking if names_table.reason(name) is None]


def test_every_available_name_is_tested():
    texts = [*torch_cases.expressions(), *torch_edges.expressions(), *[path.read_text() for path in HERE.glob("test_torch_*.py")],
             *[pathlib.Path(module.__file__).read_text() for module in (torch_functions, torch_distributions)],
             *[path.read_text() for path in (HERE / "pytorch" / "programs").glob("*.py")]]
    words = set(re.findall(r"\w+", "\n".join(texts)))
    untested = {space: [name for name in names_table.NAMES[space] if name not in words and name not in names_table.missing(space)]
                for space in spaces()}
    assert not any(untested.values()), untested


def test_the_page_of_names_is_up_to_date():
    root = next((parent for parent in HERE.parents if (parent / "docs" / "torch-names.md").exists()), None)
    if root is None:
        pytest.skip("the documents are not beside the tests")
    assert (root / "docs" / "torch-names.md").read_text() == "\n".join(names_table.page()) + "\n"


def test_names_of_packages_import():
    assert kiln.torch.__version__.startswith("2.")
    for name in ("nn.functional", "nn.init", "nn.utils.rnn", "nn.parameter", "optim.lr_scheduler", "optim.swa_utils", "utils.data",
                 "utils.checkpoint", "cuda.amp", "backends.cudnn", "backends.mps", "backends.cuda.matmul", "linalg", "amp", "random",
                 "autograd", "special", "testing", "version.cuda"):
        found = kiln.torch
        for part in name.split("."):
            found = getattr(found, part)
    kiln.torch.backends.cudnn.benchmark = True
    assert kiln.torch.backends.cudnn.benchmark and not kiln.torch.backends.mps.is_available()
