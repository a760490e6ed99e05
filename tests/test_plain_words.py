"""Checks that the check of plain words finds violations."""

import pathlib
import subprocess
import sys

import pytest

CHECK = pathlib.Path(__file__).with_name("plain_words")
OF_CODE = "k" + "MostBytes", "k" + "Least"


def check(folder: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True)


def plant(folder: pathlib.Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_the_project_keeps_the_rules():
    done = check(CHECK.parents[1])
    assert done.returncode == 0, done.stdout


def test_a_folder_without_sources_does_not_pass(tmp_path):
    assert check(tmp_path).returncode == 1


# The planted text, by file, and the start of the line that the check must print.
PLANTED = {
    "a comment in C++": (
        "server/a.cc", "// Runs once.\n//   Goes behind the others.\nint a;\n", "server/a.cc:2: behind: write"),
    "a comment after code": ("server/a.h", "int a;\nint b;  // comes behind a\n", "server/a.h:2: behind: write"),
    "a comment after a string": (
        "server/a.cc", "auto a = \"//\\\"\";  // set behind it\n", "server/a.cc:1: behind: write"),
    "a comment in a proto": ("proto/a.proto", "// Behind.\n", "proto/a.proto:1: behind: write"),
    "a comment in Python": ("clients/a.py", "a = 1  # \"quoted\"\n# set\n# behind it\n", "clients/a.py:3: behind: write"),
    "a docstring": (
        "clients/a.py", 'def f():\n    """Returns.\n\n    It runs\n    behind g.\n    """\n', "clients/a.py:5: behind: write"),
    "a script": ("deploy/a", "#!/bin/sh\necho '# behind' # it comes behind\n", "deploy/a:2: behind: write"),
    "a script in Python": ("tests/a", "#!/usr/bin/env python3\n# behind\n", "tests/a:2: behind: write"),
    "CMake": ("cmake/a.cmake", "set(a 1)\n# It comes behind.\n", "cmake/a.cmake:2: behind: write"),
    "a paragraph": ("docs/a.md", "# A\n\nOne line.\nIt comes behind.\n", "docs/a.md:4: behind: write"),
    "an item of a list": ("README.md", "- One.\n- It comes\n  behind.\n", "README.md:3: behind: write"),
    "the name of a bound": ("drivers/a.cc", f"int a = {OF_CODE[0]};\n", "drivers/a.cc:1: a constant"),
    "the name of a bound, in a string": ("drivers/a.cc", f"\n\"{OF_CODE[1]}\"\n", "drivers/a.cc:2: a constant"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_finds(tmp_path, name):
    path, text, wanted = PLANTED[name]
    plant(tmp_path, {path: text})
    done = check(tmp_path)
    assert done.returncode == 1 and [line for line in done.stdout.splitlines() if line.startswith(wanted)], done.stdout


@pytest.mark.parametrize("text, most", [
    ("// What it is.\nint a;\n", 20),
    ("// A number: What it is.\nint a;\n", 20),
    ("// The list that somebody reads.\nint a;\n", 10),
    ("// Nobody reads it.\nint a;\n", 10),
    ("// Stops whoever reads it.\nint a;\n", 10),
])  # fmt: skip
def test_a_limit_is_for_all_files_together(tmp_path, text, most):
    plant(tmp_path, {"server/a.cc": text * (most - 1), "server/b.cc": text})
    done = check(tmp_path)
    assert done.returncode == 0 and f"{most} places" in done.stdout, done.stdout
    plant(tmp_path, {"docs/c.md": text.split("\n")[0].lstrip("/ ")})
    done = check(tmp_path)
    assert done.returncode == 1
    assert sum(line.startswith(("server/a.cc:", "server/b.cc:", "docs/c.md:1: ")) for line in done.stdout.splitlines()) == most + 1


@pytest.mark.parametrize("path, text", [
    ("server/a.cc", "int behind = 1;\nauto a = \"// behind\";\nauto b = R\"(// behind)\";\n"),
    ("server/a.cc", "// Reads `behind` and \"behind\".\n"),
    ("server/a.cc", "// A file that a daemon left behind.\n"),
    ("server/a.cc", "int kMostly = 1;\n"),
    ("clients/a.py", "behind = \"# behind\"\n"),
    ("clients/_proto/a.py", "# behind\n"),
    ("docs/a.md", "```sh\necho behind\n```\n"),
])  # fmt: skip
def test_allows(tmp_path, path, text):
    plant(tmp_path, {"README.md": "Kiln.\n", path: text})
    done = check(tmp_path)
    assert done.returncode == 0, done.stdout
