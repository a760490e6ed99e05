"""Runs the blocks of code of a page.

usage: python run_page.py PAGE FOLDER PORT METRICS_PORT

The blocks run in FOLDER. In them, the host `box` is this machine, and PORT and METRICS_PORT replace the default ports.
"""

import doctest
import os
import pathlib
import re
import signal
import subprocess
import sys

from blocks import ROOT, Block, blocks_of
from eventually import eventually

page, folder, port, metrics_port = sys.argv[1:]
names: "dict[str, object]" = {"__name__": "__main__"}
background: "list[subprocess.Popen[bytes]]" = []


def here(text: str) -> str:
    """Returns a block for this machine."""
    text = re.sub(r"\b(?:box|0\.0\.0\.0):7433\b", f"127.0.0.1:{port}", text)
    return text.replace("127.0.0.1:7434", f"127.0.0.1:{metrics_port}")


def run_shell(block: Block) -> None:
    """Runs a block by bash. Variables that it exports are those of later blocks."""
    script = here(block.code)
    if block.note == "background":
        background.append(subprocess.Popen(["bash", "-euo", "pipefail", "-c", script], start_new_session=True))
        return
    # A session of its own: `kill %1` and the like must not reach the tests.
    done = subprocess.run(["bash", "-euom", "pipefail", "-c", f"{script}\nenv -0 >&$kept"], start_new_session=True,
                          pass_fds=(kept.fileno(),), env={**os.environ, "kept": str(kept.fileno())})
    if done.returncode:
        sys.exit(f"{page}:{block.line}: the status is {done.returncode}")
    kept.seek(0)
    variables = dict(entry.split("=", 1) for entry in kept.read().decode().split("\0") if "=" in entry)
    kept.seek(0)
    kept.truncate()
    os.environ.update({name: value for name, value in variables.items() if name not in ("kept", "_", "SHLVL", "PWD", "OLDPWD")})


def run_doctest(block: Block) -> None:
    """Runs a block with prompts, and compares the output with what is shown."""
    test = doctest.DocTestParser().get_doctest(block.code, names, page, page, block.line - 1)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(test, clear_globs=False)
    names.update(test.globs)
    if runner.failures:
        sys.exit(f"{page}:{block.line}: the output is not what is shown")


def run(block: Block) -> None:
    """Runs a block, or writes its file."""
    if block.note.startswith("file "):
        pathlib.Path(block.note.split()[1]).write_text(here(block.code))
    elif block.language == "sh":
        run_shell(block)
    elif block.language == "pycon":
        run_doctest(block)
    else:
        # Errors and warnings have the page's lines.
        exec(compile("\n" * (block.line - 1) + here(block.code), str(ROOT / page), "exec"), names)


os.chdir(folder)
kept = open("exported", "w+b", buffering=0)
try:
    for block in blocks_of((ROOT / page).read_text()):
        if block.why_not_run() is None and block.language not in ("", "text"):
            print(f"{page}:{block.line}", file=sys.stderr)
            run(block)
finally:
    for process in background:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        eventually(lambda process=process: process.poll() is not None)
