"""Prints the tests that a build folder's CMakeLists.txt files under given source folders define, each with its program.

usage: tests_in.py BUILD FOLDER...

Prints one line a test: its name and the name of the program that it runs. Omits tests that are scripts or call a tool (label
`script`), since they need no sanitizer, and those labelled `not_with_S` if the folder is built with the sanitizer S.
"""

import json
import os
import re
import subprocess
import sys


def output_of(*command: str) -> str:
    """Returns the output of a command."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def labels_of(test: dict) -> list[str]:
    """Returns a test's labels, from ctest's description."""
    return [label for entry in test["properties"] if entry["name"] == "LABELS" for label in entry["value"]]


def sanitizers_of(build: str) -> list[str]:
    """Returns the sanitizers with which a build folder's programs are built."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
        found = re.search(r"^KILN_SANITIZER:\w+=(.*)$", cache.read(), re.MULTILINE)
    return found[1].split(",") if found else []


def tests_in(build: str, folders: list[str]) -> list[tuple[str, str]]:
    """Returns the sorted names of tests and of their programs."""
    described = json.loads(output_of("ctest", "--test-dir", build, "--show-only=json-v1"))
    targets = {line.split(":")[0] for line in output_of("ninja", "-C", build, "-t", "targets", "all").splitlines()}
    graph = described["backtraceGraph"]
    left_out = {"script", *(f"not_with_{sanitizer}" for sanitizer in sanitizers_of(build))}
    found = set()
    for test in described["tests"]:
        program = re.sub(r"_\d+_of_\d+$", "", test["name"])  # as kiln_test names them; ctest knows no command before the build
        if program not in targets or not left_out.isdisjoint(labels_of(test)):
            continue
        node = test.get("backtrace")
        while node is not None:
            file = os.path.relpath(graph["files"][graph["nodes"][node]["file"]])
            if any(file.startswith(folder + "/") for folder in folders):
                found.add((test["name"], program))
            node = graph["nodes"][node].get("parent")
    return sorted(found)


if __name__ == "__main__":
    for name, program in tests_in(sys.argv[1], sys.argv[2:]):
        print(name, program)
