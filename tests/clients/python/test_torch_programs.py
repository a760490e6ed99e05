"""Programs in the idiom of public scripts, unchanged, have the losses that PyTorch has."""

# ruff: noqa: E501

import json
import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent / "pytorch"
LOSSES = json.loads((FOLDER / "losses.json").read_text())


def run(arguments, kilnd, **options):
    """Runs python -m kiln.torch."""
    import kiln

    paths = [str(pathlib.Path(kiln.__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "KILN_ADDRESS": kilnd.address, "KILN_PROGRESS": "off",
                   "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.run([sys.executable, "-m", "kiln.torch", *map(str, arguments)], capture_output=True,
                          text=True, env=environment, **options)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_losses_are_pytorchs(name, kilnd):
    done = run([FOLDER / "programs" / f"{name}.py"], kilnd)
    assert done.returncode == 0, done.stderr
    losses = [float(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("step")]
    assert len(losses) == len(LOSSES[name]) >= 30
    for step, (found, expected) in enumerate(zip(losses, LOSSES[name])):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4), f"step {step}"


# The runner itself: everything but `torch` is as under plain python.


def test_main_module_arguments_and_exit_code(kilnd, tmp_path):
    (tmp_path / "helper.py").write_text("import torch\nNAME = torch.__name__\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch, helper\n"
        "import torch.nn as nn, torch.nn.functional as F\n"
        "from torch.utils.data import DataLoader\n"
        "import importlib\n"
        "main = sys.modules['__main__']\n"
        f"print(__name__, main.__file__ == __file__, sys.argv[1:], sys.path[0] == r'{tmp_path.resolve()}')\n"
        "print(torch.__name__, helper.NAME, nn.__name__, F.__name__, importlib.import_module('torch.nn') is nn)\n"
        "if __name__ == '__main__':\n    sys.exit(3)\n")
    done = run([script, "--lr", "0.1"], kilnd)
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines() == [
        "__main__ True ['--lr', '0.1'] True",
        "kiln.torch kiln.torch kiln.torch.nn kiln.torch.nn.functional True"]


def test_traceback_and_status_of_an_error_are_pythons(kilnd, tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("def fail():\n    raise KeyError('here')\n\n\nfail()\n")
    done = run([script], kilnd)
    plain = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)


def test_module_and_command(kilnd, tmp_path):
    package = tmp_path / "project"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "model.py").write_text("import torch\nVALUE = torch.ones(2).sum().item()\n")
    (package / "train.py").write_text("import sys\nfrom .model import VALUE\nfrom . import model\n"
                                      "print(VALUE, __name__, sys.argv[1:])\n")
    done = run(["-m", "project.train", "a"], kilnd, cwd=tmp_path)
    assert done.stdout == "2.0 __main__ ['a']\n", done.stderr
    done = run(["-c", "import sys, torch; print(torch.__name__, sys.argv)", "b"], kilnd)
    assert done.stdout == "kiln.torch ['-c', 'b']\n", done.stderr


def test_installed_libraries_get_pytorch_itself(kilnd, tmp_path):
    """Here PyTorch is a stand-in: a library in site-packages sees it, and its tensors are accepted."""
    packages = tmp_path / "site-packages"
    (packages / "torch").mkdir(parents=True)
    (packages / "torch" / "__init__.py").write_text(
        "import numpy as np\n"
        "class Tensor:\n"
        "    dtype = 'torch.float32'\n"
        "    def detach(self): return self\n"
        "    def cpu(self): return self\n"
        "    def __array__(self, dtype=None, copy=None): return np.array([1.0, 2.0], np.float32)\n")
    (packages / "library.py").write_text(
        "import torch\nfrom torch import Tensor\n\ndef load():\n    return Tensor()\n\n\ndef name():\n    return torch.__name__\n")
    script = tmp_path / "script.py"
    script.write_text(f"import sys\nsys.path.append(r'{packages}')\nimport torch, library\n"
                      "print(torch.__name__, library.name(), torch.as_tensor(library.load()).tolist(),\n"
                      "      (torch.ones(2) + library.load()).tolist())\n")
    done = run([script], kilnd)
    assert done.stdout == "kiln.torch torch [1.0, 2.0] [2.0, 3.0]\n", done.stderr


def test_missing_script_and_usage(kilnd, tmp_path):
    assert run([tmp_path / "none.py"], kilnd).returncode == 2
    assert run([], kilnd).returncode == 2
