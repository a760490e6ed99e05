"""Fixtures for tests of clients against a live kilnd."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kilnd_process import Kilnd  # noqa: E402


@pytest.fixture(scope="session")
def kilnd():
    """A daemon that all tests of the run share."""
    with Kilnd() as daemon:
        yield daemon


@pytest.fixture
def fresh_kilnd():
    """A daemon of the test's own."""
    with Kilnd() as daemon:
        yield daemon
