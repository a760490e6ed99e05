"""Finds the Python that has PyTorch: the peer of training steps."""

import functools
import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

from kilnd_process import ROOT

DEBIANS = "/usr/bin/python3"
VENV = ROOT / "build/torch_venv"
# Names another Python; tests/bench/run --torch sets it.
VARIABLE = "KILN_BENCH_TORCH"


class TorchPython(NamedTuple):
    """A Python with PyTorch."""

    path: str
    version: str

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes of torch_step.py: torch.compile came with 2.0."""
        return ("eager", "channels-last", "compile") if int(self.version.split(".")[0]) >= 2 else ("eager", "channels-last")


def version_in(python: str) -> str | None:
    """Returns the version of PyTorch that `python` imports, or None."""
    asked = [python, "-c", "import numpy, torch; print(torch.__version__.split('+')[0])"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def install(venv: pathlib.Path) -> bool:
    """Makes a venv with PyPI's PyTorch 2.x, of some gigabytes; returns False if PyPI does not answer."""
    print(f"  installs PyTorch 2.x from PyPI in {venv}; --torch PYTHON, or ${VARIABLE}, names one that is there", file=sys.stderr)
    pip = [str(venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "torch>=2,<3", "numpy", "setuptools"]
    for command in ([DEBIANS, "-m", "venv", str(venv)], pip):
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            return False
    return True


@functools.cache
def torch_python() -> TorchPython:
    """Returns the Python that $KILN_BENCH_TORCH names; else the bench's own venv, installed if PyPI answers; else Debian's.
    Prints its version."""
    named = os.environ.get(VARIABLE, "")
    own = str(VENV / "bin/python")
    for python in [named] if named else [own, DEBIANS]:
        version = version_in(python)
        if version is None and python == own and install(VENV):
            version = version_in(python)
        if version is not None:
            print(f"  PyTorch {version}: {python}", file=sys.stderr)
            return TorchPython(python, version)
    raise RuntimeError(f"{named or DEBIANS} has no PyTorch with numpy")
