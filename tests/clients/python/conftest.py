"""A session with the run's kilnd for the end-to-end tests, and a stand-in for the others."""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
try:
    import kiln
except ImportError:
    sys.path.insert(0, str(HERE.parents[2] / "clients" / "python"))
    import kiln

from kiln import _connection  # noqa: E402
from stand_in_connection import StandInConnection  # noqa: E402


@pytest.fixture
def connection(kilnd):
    """A session of its own, which the test's tensors use."""
    opened = kiln.connect(kilnd.address)
    yield opened
    _connection._default = None
    opened.close()


@pytest.fixture
def stand_in(monkeypatch):
    """No daemon: a StandInConnection."""
    connection = StandInConnection()
    monkeypatch.setattr(_connection, "_default", connection)
    monkeypatch.setattr(_connection, "_default_pid", os.getpid())
    return connection
