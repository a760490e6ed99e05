"""Fixtures for tests of clients against a live kilnd."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kilnd_process import Kilnd  # noqa: E402


def threads() -> int | None:
    """The cores' share of one of pytest's processes, but two, so that kernels are split; None: all cores."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return None if processes == 1 else max(2, (os.cpu_count() or 1) // processes)


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
    with Kilnd(threads=threads()) as daemon:
        yield daemon


@pytest.fixture
def fresh_kilnd():
    """A daemon of the test's own."""
    with Kilnd(threads=threads()) as daemon:
        yield daemon
