"""The C++ client against a live kilnd: one test for each case of live_test.cc."""

import subprocess

import pytest

from eventually import GIVE_UP_SECONDS
from kilnd_process import Kilnd, build_folder

PROGRAM = build_folder() / "tests/clients/cpp/client_live_test"


def cases() -> list[str]:
    """The names of the cases, from the program itself."""
    listing = subprocess.run([PROGRAM, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    suite, names = "", []
    for text in listing.splitlines():
        if text.endswith("."):
            suite = text
        elif text.startswith("  "):
            names.append(suite + text.strip())
    return names


def run(case: str, daemon: Kilnd) -> None:
    done = subprocess.run(
        [PROGRAM, f"--gtest_filter={case}"], env=daemon.environment(), capture_output=True, text=True, timeout=GIVE_UP_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 test from 1 test suite ran" in done.stdout


@pytest.mark.parametrize("case", cases())
def test_cpp_client(kilnd, case):
    run(case, kilnd)


def test_programs_run_on_four_devices():
    with Kilnd(threads=4, flags=["--cpu_devices=4"]) as daemon:
        run("LiveTest.ProgramsRunOnMeshes", daemon)
