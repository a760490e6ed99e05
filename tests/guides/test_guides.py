"""Runs the code of README.md and of the guides as it is written there."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from blocks import PAGES, ROOT, blocks_of, not_run
from eventually import GIVE_UP_SECONDS
from kilnd_process import Kilnd, free_port, program

HERE = pathlib.Path(__file__).resolve().parent
# Pages whose blocks start the daemon.
OWN_DAEMON = ("docs/guides/operating.md", "docs/guides/sharing-a-box.md")
# The daemon of such a page. Without --listen it has only its socket, since other daemons may have the default ports.
KILND = """#!/bin/sh
case "$*" in *--listen*) ;; *) set -- --listen="unix:$XDG_RUNTIME_DIR/kiln/kilnd.sock" "$@" ;; esac
exec {program} --metrics_listen=none --devices=cpu "$@"
"""


@pytest.fixture(scope="module")
def four():
    """A daemon with four devices."""
    with Kilnd(threads=4, flags=["--cpu_devices=4"]) as daemon:
        yield daemon


@pytest.fixture
def folder():
    """A folder with the programs in `bin`. Its path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="guide-") as name:
        programs = pathlib.Path(name, "bin")
        programs.mkdir()
        (programs / "kilnd").write_text(KILND.format(program=program("server/kilnd")))
        (programs / "kilnd").chmod(0o755)
        (programs / "kiln").symlink_to(program("clients/cli/kiln"))
        (programs / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (programs / "python").chmod(0o755)
        pathlib.Path(name, "run").mkdir(mode=0o700)
        yield pathlib.Path(name)


def environment(folder: pathlib.Path, page: str, daemon: Kilnd) -> "dict[str, str]":
    """Returns the environment of a page's blocks: a user with nothing but the programs and, mostly, a daemon."""
    variables = {"HOME": str(folder), "XDG_RUNTIME_DIR": f"{folder}/run", "PATH": f"{folder}/bin:/usr/bin:/bin", "TERM": "dumb",
                 "KILN_PROGRESS": "off", "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent), str(ROOT / "clients/python")])}
    return variables if page in OWN_DAEMON else {**variables, "KILN_ADDRESS": daemon.address}


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, four, folder):
    shutil.copytree(ROOT / "clients/python/examples", folder / "examples")
    done = subprocess.run([sys.executable, HERE / "run_page.py", page, folder, str(free_port()), str(four.metrics_port)], cwd=folder,
                          env=environment(folder, page, four), capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_each_block_is_of_a_kind_that_is_known(page):
    text = (ROOT / page).read_text()
    blocks = blocks_of(text)
    assert [f"{page}:{block.line}: {mistake}" for block in blocks if (mistake := block.mistake())] == []
    shown = sum(line.strip().startswith("```") for line in text.splitlines())
    hidden = text.count("<!-- run\n")
    assert len(blocks) == shown // 2 + hidden, "a block is not found"


def test_blocks_that_do_not_run_are_listed():
    assert not_run() == (HERE / "not_run.txt").read_text().splitlines()


WRONG = {
    "an error": ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
    "another output": ("```pycon\n>>> 1 + 1\n3\n```\n", "the output is not what is shown"),
    "a command that fails": ("```sh\nfalse\ntrue\n```\n", ":2: the status is 1"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_block_that_fails_is_found(kind, four, folder):
    text, message = WRONG[kind]
    (folder / "page.md").write_text(text)
    done = subprocess.run([sys.executable, HERE / "run_page.py", str(folder / "page.md"), folder, "1", "2"],
                          env=environment(folder, "page.md", four), capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert done.returncode != 0
    assert message in done.stdout + done.stderr


MISTAKES = {
    "a language that cannot run": "```cpp\nint i;\n```\n",
    "a comment that is not known": "<!-- skip -->\n```sh\nls\n```\n",
    "no reason": "<!-- not run: -->\n```sh\nls\n```\n",
    "output with a comment": "<!-- file a -->\n```\na\n```\n",
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_block_of_another_kind_is_found(kind):
    (block,) = blocks_of(MISTAKES[kind])
    assert block.mistake() is not None
