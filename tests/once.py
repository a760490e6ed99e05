"""Makes something once for all processes of a test run (pytest-xdist)."""

import fcntl
import os
import pathlib
from collections.abc import Callable

import pytest


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[pathlib.Path], object]) -> pathlib.Path:
    """Returns a folder that `make` has filled in the first process that asks; the others wait for it.

    If `make` raises, the next process tries again.
    """
    base = factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        base = base.parent  # each worker has a folder of its own in it
    folder, made = base / name, base / f"{name}.made"
    with open(base / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            made.touch()
    return folder
