"""Fixtures: a session with the run's kilnd, a stand-in for tests without a daemon, PyTorch."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import zlib

import numpy as np
import pytest

TORCH_PYTHON = "/usr/bin/python3"  # the Python that Debian's python3-torch is for
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

# Progress on stderr would depend on the speed of the machine.
os.environ["KILN_PROGRESS"] = "off"
# Tests rely on a session being closed when its connection is, however busy the machine is.
_session._END_SECONDS = GIVE_UP_SECONDS


@pytest.fixture(autouse=True)
def draws(request):
    """Seeds the module's RANDOM by the test's name: draws do not depend on other tests."""
    random = getattr(request.module, "RANDOM", None)
    if random is not None:
        seed = zlib.crc32(request.node.name.encode())
        random.bit_generator.state = np.random.default_rng(seed).bit_generator.state


@pytest.fixture(scope="module")
def shared_connection(kilnd):
    """A session shared by all tests of a module."""
    opened = kiln.connect(kilnd.address)
    yield opened
    _connection._default = None
    opened.close()


@pytest.fixture
def connection(request, kilnd):
    """The session of the test's tensors: a new one, or the module's if that sets ONE_SESSION.

    Modules set it if they have many small tests, which take less time than opening a session, and
    if the tests leave nothing in the session.
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
    """A link to the daemon; clients treat it as a connection to another machine."""
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
    """A session with the daemon of four devices."""
    opened = kiln.connect(four.address)
    yield opened
    _connection._default = None
    opened.close()


@pytest.fixture
def device_memory():
    """The memory of four unused devices, which are those of the test's tensors."""
    with Kilnd(threads=4, flags=["--cpu_devices=4"], config=NO_PROBES) as daemon:
        opened = kiln.connect(daemon.address)
        yield DeviceMemory()
        _connection._default = None
        opened.close()


@pytest.fixture(scope="module")
def example():
    """The example parallel.py: tests of several devices train its networks and layouts."""
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
    """A StandInConnection in place of a daemon."""
    connection = StandInConnection()
    monkeypatch.setattr(_connection, "_default", connection)
    monkeypatch.setattr(_connection, "_default_pid", os.getpid())
    return connection


@pytest.fixture(scope="session")
def ask_torch(tmp_path_factory):
    """A function that runs torch_oracle.py on cases of a kind and returns its results by name."""
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
    """A function that runs torch_oracle.py on pairs of an expression and its arrays by name."""

    def ask(cases):
        return ask_torch("functions", [
            [expression,
             [[name, str(array.dtype), array.tolist(), array.shape]
              for name, array in arrays.items()]]
            for expression, arrays in cases
        ])  # fmt: skip

    return ask
