"""Checks that the check of the Python client's rooms finds violations."""

import pathlib
import subprocess
import sys

import pytest

CHECK = pathlib.Path(__file__).with_name("layering_python")


def check(folder: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True)


def test_the_client_keeps_the_rules():
    done = check(CHECK.parents[1])
    assert done.returncode == 0, done.stdout


def test_a_folder_without_a_client_does_not_pass(tmp_path):
    assert check(tmp_path).returncode == 1


# The planted violations, by file, and what the check must report.
PLANTED = {
    "a circle of modules": (
        {"kiln/_graph/one.py": "from kiln._graph.two import b\n",
         "kiln/_graph/two.py": "from kiln._graph import three\n",
         "kiln/_graph/three.py": "import kiln._graph.one\n"},
        "circle: kiln._graph.one -> kiln._graph.two -> kiln._graph.three -> kiln._graph.one"),
    "a room that imports one above it": (
        {"kiln/_basics/errors.py": "from kiln._graph.node import Node\n", "kiln/_graph/node.py": ""},
        "errors.py:1: imports kiln._graph.node: _basics imports only what is not of kiln"),
    "a room that its neighbour does not list": (
        {"kiln/amp.py": "from kiln import nn\n", "kiln/nn/__init__.py": ""}, "amp imports only _basics"),
    "the package itself": (
        {"kiln/__init__.py": "", "kiln/nn/linear.py": "from kiln import Tensor\n"}, "so none imports it"),
    "an import inside a function": (
        {"kiln/_graph/node.py": "def f():\n    from kiln._basics import errors\n", "kiln/_basics/errors.py": ""},
        "node.py:2: imports kiln._basics.errors: an import inside a function"),
    "an import inside a method, of another package": (
        {"kiln/tensor.py": "class A:\n    def f(self):\n        import weakref\n"},
        "tensor.py:3: imports weakref: an import inside a function"),
    "an import by name": (
        {"kiln/tensor.py": "import importlib\nimportlib.import_module('kiln.nn')\n"}, "tensor.py:2: imports importlib"),
    "an import for types from another room": (
        {"kiln/_session/handles.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import kiln._graph.node\n",
         "kiln/_graph/node.py": ""},
        "handles.py:3: imports kiln._graph.node: an import for types stays in its room, _session"),
    "a room without a row": ({"kiln/_new/part.py": ""}, "the room _new has no row in ROOMS"),
    "an example that imports what is private": (
        {"examples/digits.py": "from kiln import _graph\n", "kiln/_graph/__init__.py": ""},
        "digits.py:1: imports kiln._graph: examples import what users may"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_finds(tmp_path, name):
    files, wanted = PLANTED[name]
    for path, text in files.items():
        file = tmp_path / "clients" / "python" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    done = check(tmp_path)
    assert done.returncode == 1 and wanted in done.stdout, done.stdout


def test_optional_packages_and_types_of_the_own_room_are_allowed(tmp_path):
    room = tmp_path / "clients" / "python" / "kiln" / "_tensor"
    room.mkdir(parents=True)
    (room / "host_values.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from kiln._tensor.indexing import Indexing\n"
        "def to_torch():\n    import torch\n")
    (room / "indexing.py").write_text("from kiln._tensor.host_values import HostValues\n")
    done = check(tmp_path)
    assert done.returncode == 0, done.stdout
