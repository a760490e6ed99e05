"""Prints docs/commands.md: the help of `kiln` and of each of its commands.

usage: python deploy/site/commands.py KILN > docs/commands.md
"""

import re
import subprocess
import sys


def output(*command: str) -> str:
    """Returns the output of a command."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def page(kiln: str) -> str:
    """Returns the page for the program `kiln`."""
    help_of_all = output(kiln, "--help")
    text = ("# Commands\n\n`kiln` shows and controls a daemon. This page has the help of each command, as `kiln COMMAND --help` prints it; "
            "`deploy/site/commands.py` makes it. The flags of `kilnd` are in [Configuration](configuration.md).\n\n"
            f"```text\n{help_of_all}```\n")
    for name in re.findall(r"^  ([a-z]+) .*  ", help_of_all, re.MULTILINE):
        text += f"\n## kiln {name}\n\n```text\n{output(kiln, name, '--help')}```\n"
    return text


if __name__ == "__main__":
    print(page(sys.argv[1]), end="")
