"""Finds the reasons of errors (google.rpc.ErrorInfo) in the daemon's sources.

A reason is a literal of capital letters, so each such literal is one, unless it is in OTHERS. docs/guides/troubleshooting.md has
them all.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The folders whose errors clients see.
FOLDERS = ("server", "compiler/autodiff", "compiler/graph", "compiler/shard", "compiler/variables")
# Literals that are no reasons.
OTHERS = {
    "DENY": "HTTP",
    "HEAD": "HTTP",
    "HOME": "environment",
    "CUDA_CACHE_PATH": "environment",
    "NOTIFY_SOCKET": "environment",
    "WATCHDOG_PID": "environment",
    "WATCHDOG_USEC": "environment",
    "XDG_CACHE_HOME": "environment",
    "XDG_RUNTIME_DIR": "environment",
    "XDG_STATE_HOME": "environment",
    "LD_LIBRARY_PATH": "environment",
    "SHA256": "OpenSSL's name",
    "SIGINT": "a signal",
    "SIGTERM": "a signal",
}


def literals() -> dict[str, str]:
    """Returns each literal of at least four capital letters, and a place where it is."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.[ch]*")):
            if file.suffix not in (".cc", ".h") or file.name.endswith("_test.cc") or "testing" in file.parts:
                continue
            text = re.sub(r"//[^\n]*", "", file.read_text())
            for literal in re.findall(r'"([A-Z][A-Z0-9_]{3,})"', text):
                found.setdefault(literal, str(file.relative_to(ROOT)))
    return found


def reasons() -> set[str]:
    """Returns the reasons."""
    return set(literals()) - set(OTHERS)


def described(page: str) -> dict[str, tuple[str, str]]:
    """Returns the reasons in the tables of a page, with the cell of the cause and that of the remedy."""
    rows = re.findall(r"^\| ((?:`[A-Z0-9_]+`(?:, )?)+) \| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    return {reason: (cause.strip(), remedy.strip()) for names, cause, remedy in rows for reason in re.findall(r"`([A-Z0-9_]+)`", names)}
