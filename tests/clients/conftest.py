"""Fixtures for tests of clients against a live kilnd."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kilnd_process import Kilnd  # noqa: E402


# Of a daemon, on every machine: kernels are split, and the daemons of several of pytest's processes fit beside each other.
THREADS = 2


def pytest_terminal_summary(terminalreporter):
    """How much the table of numerics has compared. (Here, since the process that sums up reads no deeper folder.)"""
    counts = [value for report in terminalreporter.getreports("passed")
              for name, value in report.user_properties if name == "comparisons"]
    if counts:
        terminalreporter.write_line(f"table of numerics: {len(counts)} pairs of an op and a dtype, "
                                    f"{sum(counts)} comparisons")


@pytest.fixture(scope="session")
def kilnd():
    """A daemon that all tests of the process share."""
    with Kilnd(threads=THREADS) as daemon:
        yield daemon


@pytest.fixture
def fresh_kilnd():
    """A daemon of the test's own."""
    with Kilnd(threads=THREADS) as daemon:
        yield daemon
