"""A session with the run's kilnd for the end-to-end tests, a stand-in for the others, PyTorch."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import zlib

import numpy as np
import pytest

TORCH_PYTHON = "/usr/bin/python3"  # which Debian's python3-torch is for
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
try:
    import kiln
except ImportError:
    sys.path.insert(0, str(HERE.parents[2] / "clients" / "python"))
    import kiln

from kiln._session import connection as _connection  # noqa: E402
from kiln._session import session as _session  # noqa: E402
from device_memory import DeviceMemory  # noqa: E402
from eventually import GIVE_UP_SECONDS  # noqa: E402
from kilnd_process import NO_PROBES, Kilnd, opencl_is_installed  # noqa: E402
from link import Link  # noqa: E402
from stand_in_connection import StandInConnection  # noqa: E402

# What long calls tell on stderr would depend on how fast the machine is.
os.environ["KILN_PROGRESS"] = "off"
# Tests count on it that a session ends when its connection is closed, however busy the machine is.
_session._END_SECONDS = GIVE_UP_SECONDS


@pytest.fixture(autouse=True)
def draws(request):
    """What a test draws of its module's RANDOM does not depend on the tests that this process has run before."""
    random = getattr(request.module, "RANDOM", None)
    if random is not None:
        seed = zlib.crc32(request.node.name.encode())
        random.bit_generator.state = np.random.default_rng(seed).bit_generator.state


@pytest.fixture(scope="module")
def shared_connection(kilnd):
    """A session for all tests of a module."""
    opened = kiln.connect(kilnd.address)
    yield opened
    _connection._default = None
    opened.close()


@pytest.fixture
def connection(request, kilnd):
    """A session that the test's tensors use: its own, or the module's if that says ONE_SESSION.

    A module says so if it has many small tests, for which the session would take longer than what they compute, and if
    they leave nothing in it.
    """
    if getattr(request.module, "ONE_SESSION", False):
        yield request.getfixturevalue("shared_connection")
        return
    opened = kiln.connect(kilnd.address)
    yield opened
    _connection._default = None
    opened.close()


@pytest.fixture
def link(kilnd, monkeypatch):
    """A link to the daemon, over which clients behave as on another machine."""
    monkeypatch.setattr(_session, "is_local", lambda target: False)
    with Link(kilnd.tcp_address) as link:
        yield link
        _connection._default = None


@pytest.fixture(scope="module")
def four():
    """A daemon with four devices."""
    with Kilnd(threads=4, flags=["--cpu_devices=4"]) as daemon:
        yield daemon


@pytest.fixture
def session(four):
    """A session there."""
    opened = kiln.connect(four.address)
    yield opened
    _connection._default = None
    opened.close()


@pytest.fixture
def device_memory():
    """The memory of four devices that nobody has used yet; the test's tensors are there."""
    with Kilnd(threads=4, flags=["--cpu_devices=4"], config=NO_PROBES) as daemon:
        opened = kiln.connect(daemon.address)
        yield DeviceMemory()
        _connection._default = None
        opened.close()


@pytest.fixture(scope="module")
def example():
    """The example parallel.py, whose networks and layouts tests of several devices train."""
    path = HERE.parents[2] / "clients" / "python" / "examples" / "parallel.py"
    spec = importlib.util.spec_from_file_location("parallel", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["parallel"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def mixed():
    """A daemon with cpu:0 and opencl:0."""
    if not opencl_is_installed():
        pytest.skip("no OpenCL is installed")
    with Kilnd(threads=2, devices="cpu,opencl") as daemon:
        connection = kiln.connect(daemon.address)
        names = [device.name for device in kiln.devices()]
        _connection._default = None
        connection.close()
        if "opencl:0" not in names:
            pytest.skip(f"OpenCL has no device that Kiln can use; there are {', '.join(names)}")
        yield daemon


@pytest.fixture
def stand_in(monkeypatch):
    """No daemon: a StandInConnection."""
    connection = StandInConnection()
    monkeypatch.setattr(_connection, "_default", connection)
    monkeypatch.setattr(_connection, "_default_pid", os.getpid())
    return connection


@pytest.fixture(scope="session")
def ask_torch(tmp_path_factory):
    """Gives torch_oracle.py cases of a kind and returns its results by name."""
    probe = subprocess.run([TORCH_PYTHON, "-c", "import torch"], capture_output=True)

    def ask(kind, cases):
        if probe.returncode != 0:
            pytest.skip("PyTorch is the reference, and python3-torch is not installed")
        folder = tmp_path_factory.mktemp("torch")
        (folder / "cases.json").write_text(json.dumps(cases))
        done = subprocess.run(
            [TORCH_PYTHON, str(HERE / "torch_oracle.py"), kind, "cases.json", "results.npz"],
            cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with np.load(folder / "results.npz") as results:
            return dict(results)

    return ask


@pytest.fixture(scope="session")
def torch_values(ask_torch):
    """Gives torch_oracle.py functions, pairs of an expression and its arrays by name."""

    def ask(cases):
        return ask_torch("functions", [
            [expression,
             [[name, str(array.dtype), array.tolist(), array.shape]
              for name, array in arrays.items()]]
            for expression, arrays in cases
        ])  # fmt: skip

    return ask
