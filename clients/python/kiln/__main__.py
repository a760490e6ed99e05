"""`python -m kiln serve` runs the daemon of this machine."""

import os
import sys
from typing import Sequence

from kiln._basics.errors import KilnError
from kiln._basics.version import __version__
from kiln._session.own_daemon import find_program

_USAGE = """usage: python -m kiln COMMAND

  serve [FLAG...]   runs kilnd, the device daemon, with its flags; serve --help lists them
  version           prints the version of this client
"""


def main(arguments: Sequence[str]) -> int:
    """Runs a command and returns the exit status. `serve` does not return."""
    if arguments[:1] == ["serve"]:
        try:
            program = find_program(os.environ)
        except KilnError as error:
            print(f"kiln: {error}", file=sys.stderr)
            return 1
        try:
            os.execv(program, ["kilnd", *arguments[1:]])
        except OSError as error:
            print(f"kiln: {program} cannot be started: {error.strerror}", file=sys.stderr)
            return 1
    if list(arguments) == ["version"]:
        print(f"kiln {__version__}")
        return 0
    if arguments and arguments[0] in ("-h", "--help", "help"):
        print(_USAGE, end="")
        return 0
    print(_USAGE, end="", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
