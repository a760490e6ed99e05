"""Prints the names of the tests that a build folder's CMakeLists.txt files under given source folders define.

usage: tests_in.py BUILD FOLDER...
"""

import json
import os
import subprocess
import sys


def tests_in(build: str, folders: list[str]) -> list[str]:
    listing = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True
    ).stdout
    described = json.loads(listing)
    graph = described["backtraceGraph"]
    source = os.getcwd()
    names = []
    for test in described["tests"]:
        files = set()
        node = test.get("backtrace")
        while node is not None:
            files.add(os.path.relpath(graph["files"][graph["nodes"][node]["file"]], source))
            node = graph["nodes"][node].get("parent")
        # Tests that are programs have the program's name; scripts need no sanitizer.
        is_script = any(p["name"] == "LABELS" and "script" in p["value"] for p in test.get("properties", []))
        if any(f.startswith(folder + "/") for f in files for folder in folders) and not is_script:
            names.append(test["name"])
    return sorted(set(names))


if __name__ == "__main__":
    print("\n".join(tests_in(sys.argv[1], sys.argv[2:])))
