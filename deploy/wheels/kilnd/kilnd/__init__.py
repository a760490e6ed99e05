"""The programs `kilnd`, the device daemon, and `kiln`, its command line client."""

import os
import pathlib
import sys
from typing import NoReturn

from kilnd.version import __version__ as __version__


def path(program: str) -> str:
    """Returns the path of `program`, "kilnd" or "kiln"."""
    return str(pathlib.Path(__file__).parent / "bin" / program)


def run_daemon() -> NoReturn:
    """Becomes the daemon, with the arguments of this process."""
    os.execv(path("kilnd"), ["kilnd", *sys.argv[1:]])


def run_command() -> NoReturn:
    """Becomes the command line client, with the arguments of this process."""
    os.execv(path("kiln"), ["kiln", *sys.argv[1:]])
