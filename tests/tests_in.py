"""Prints the names of the test programs that a build folder's CMakeLists.txt files under given source folders define.

usage: tests_in.py BUILD FOLDER...

A test's program has the test's name (kiln_test sees to it); tests that are scripts or call a tool are left out, since they
need no sanitizer.
"""

import json
import os
import subprocess
import sys


def output_of(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tests_in(build: str, folders: list[str]) -> list[str]:
    """The names, sorted."""
    described = json.loads(output_of("ctest", "--test-dir", build, "--show-only=json-v1"))
    targets = {line.split(":")[0] for line in output_of("ninja", "-C", build, "-t", "targets", "all").splitlines()}
    graph = described["backtraceGraph"]
    names = set()
    for test in described["tests"]:
        node = test.get("backtrace")
        while node is not None:
            file = os.path.relpath(graph["files"][graph["nodes"][node]["file"]])
            if test["name"] in targets and any(file.startswith(folder + "/") for folder in folders):
                names.add(test["name"])
            node = graph["nodes"][node].get("parent")
    return sorted(names)


if __name__ == "__main__":
    print("\n".join(tests_in(sys.argv[1], sys.argv[2:])))
