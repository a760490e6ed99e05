"""`kiln tune` against a kilnd that searches in processes of its own."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from eventually import GIVE_UP_SECONDS, eventually
from kilnd_process import NO_PROBES, Kilnd, build_folder

KILN = build_folder() / "clients/cli/kiln"
# Two kernels, of which the sum has a gradient.
CLIENT = """
import kiln, numpy as np
@kiln.jit
def network(x, w):
    y = x @ w
    return kiln.softmax(y, -1), (y * y).sum()
x = kiln.Tensor(np.arange(48, dtype=np.float32).reshape(6, 8) / 48)
w = kiln.Tensor(np.ones((8, 32), np.float32) / 8)
for _ in range(3):
    rows, total = network(x, w)
    print(float(rows.numpy().sum()), float(total.numpy()))
"""
RESULTS = [6.0, 32 * sum((8 * i + 3.5) ** 2 for i in range(6)) / 48**2]
STATES_OF_A_SEARCH = {"FASTER", "KEPT"}


@pytest.fixture
def daemon():
    with Kilnd(threads=1, config=NO_PROBES) as running:
        yield running


def run_client(daemon: Kilnd) -> list[float]:
    done = subprocess.run([sys.executable, "-c", CLIENT], env=daemon.environment(), capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def kiln(daemon: Kilnd, *arguments: str) -> str:
    done = subprocess.run([KILN, *arguments], env=daemon.environment(), capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tune(daemon: Kilnd, *arguments: str) -> dict[str, dict]:
    """Tunes the network with enough time for each kernel; returns the last progress of each kernel."""
    lines = kiln(daemon, "tune", "network", "--width", "1", "--json", *arguments).splitlines()
    return {progress["kernel"]: progress for progress in map(json.loads, lines) if not progress.get("site")}


def explained(daemon: Kilnd) -> dict[str, dict]:
    """Returns the network's kernels by name."""
    return {kernel["name"]: kernel for kernel in json.loads(kiln(daemon, "explain", "network", "--json"))["kernels"]}


def exported(daemon: Kilnd) -> str:
    path = daemon.folder / "settings.txt"
    kiln(daemon, "tune", "export", str(path))
    return path.read_text()


def trial_processes(daemon: Kilnd) -> list[int]:
    """Returns the daemon's child processes that run candidates."""
    children = pathlib.Path(f"/proc/{daemon.process.pid}/task").glob("*/children")
    found = []
    for child in (int(pid) for path in children for pid in path.read_text().split()):
        if b"--trials" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
            found.append(child)
    return found


def test_a_program_is_tuned(daemon):
    assert run_client(daemon) == pytest.approx(RESULTS)
    found = tune(daemon, "--seconds", "600")
    assert {progress["state"] for progress in found.values()} <= STATES_OF_A_SEARCH
    assert sum(progress["share"] for progress in found.values()) == pytest.approx(1)
    assert exported(daemon).count("kernel") >= len(found)
    assert not trial_processes(daemon)
    # The next definition has the settings that were found, and the same results.
    assert run_client(daemon) == pytest.approx(RESULTS)
    after = explained(daemon)
    assert set(found) == set(after)
    for name, progress in found.items():
        assert bool(after[name]["setting"]) == (progress["state"] == "FASTER")
        assert not after[name]["setting_refusal"]
    again = tune(daemon)
    assert {progress["state"] for progress in again.values()} == {"SEARCHED"}


def test_a_killed_daemon_keeps_what_was_found():
    with Kilnd(threads=1, config=NO_PROBES) as daemon:
        run_client(daemon)
        tuning = subprocess.Popen([KILN, "tune", "network", "--seconds", "3600", "--json"], env=daemon.environment(),
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        eventually(lambda: "event=kernel_tuned" in daemon.log.read_text())
        daemon.stop(signal.SIGKILL)
        tuning.communicate(timeout=GIVE_UP_SECONDS)
        assert tuning.returncode != 0
        daemon.start()
        run_client(daemon)
        assert "SEARCHED" in {progress["state"] for progress in tune(daemon, "--seconds", "600").values()}


def test_a_tuning_ends_with_its_client_and_with_the_daemon(daemon):
    run_client(daemon)
    tuning = subprocess.Popen([KILN, "tune", "network", "--seconds", "3600", "--width", "64"], env=daemon.environment(),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eventually(lambda: trial_processes(daemon))
    tuning.kill()
    tuning.wait()
    eventually(lambda: "event=tune_ended" in daemon.log.read_text())
    eventually(lambda: not trial_processes(daemon))
    subprocess.Popen([KILN, "tune", "network", "--seconds", "3600", "--width", "64", "--force"], env=daemon.environment(),
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eventually(lambda: trial_processes(daemon))
    assert daemon.stop(signal.SIGTERM) == 0


def test_a_tuning_is_listed_and_stopped(daemon):
    run_client(daemon)
    tuning = subprocess.Popen([KILN, "tune", "network", "--seconds", "3600", "--width", "64"], env=daemon.environment(),
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def listed() -> list[dict]:
        return json.loads(kiln(daemon, "tune", "list", "--json")).get("tunings", [])

    eventually(listed)
    (found,) = listed()
    assert found["name"] == "network"
    assert found["devices"] == ["cpu:0"]
    assert str(found["id"]) in kiln(daemon, "tune", "list")
    assert "stopped the search" in kiln(daemon, "tune", "stop", str(found["id"]))
    _, error = tuning.communicate(timeout=GIVE_UP_SECONDS)
    assert tuning.returncode == 1
    assert "has stopped the tuning" in error
    assert not listed()
    assert not trial_processes(daemon)


def test_an_interrupted_tuning_leaves_whole_rows(daemon, tmp_path):
    run_client(daemon)
    rows = tmp_path / "rows"

    def interrupted() -> bool:
        """Interrupts a tuning; returns False if it had ended before."""
        with rows.open("w") as out:
            command = [KILN, "tune", "network", "--seconds", "3600", "--width", "64", "--force", "--kernels_only"]
            tuning = subprocess.Popen(command, env=daemon.environment(), stdout=out, stderr=subprocess.PIPE, text=True)
            eventually(lambda: trial_processes(daemon) or tuning.poll() is not None)
            tuning.send_signal(signal.SIGINT)
            _, error = tuning.communicate(timeout=GIVE_UP_SECONDS)
        if tuning.returncode == 0:
            return False
        assert tuning.returncode == 130
        assert "interrupted; what was found until then is stored" in error
        return True

    assert any(interrupted() for _ in range(20))
    text = rows.read_text()
    assert text.endswith("\n") or not text
    assert all(re.search(r"faster|interrupted in round|RATIO", line) for line in text.splitlines()), text


def test_settings_move_through_pipes(daemon):
    run_client(daemon)
    tune(daemon, "--seconds", "600")
    text = kiln(daemon, "tune", "export", "-")
    assert text.startswith("kiln settings 1\n")
    done = subprocess.run([KILN, "tune", "import", "-"], env=daemon.environment(), input=text, capture_output=True, text=True,
                          timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("added 0 settings")


def test_a_daemon_tunes_while_users_do_nothing():
    config = NO_PROBES + "[tuner]\nquiet_seconds = 1\nwidth = 1\n"
    with Kilnd(threads=1, config=config, idle_tuning=True) as daemon:
        assert run_client(daemon) == pytest.approx(RESULTS)
        kernels = explained(daemon)
        eventually(lambda: exported(daemon).count("\nkernel ") >= len(kernels))
        # The next definition has what was found, and the same results.
        assert run_client(daemon) == pytest.approx(RESULTS)
        assert "origin=idle" in daemon.log.read_text()
        assert daemon.stop(signal.SIGTERM) == 0


def test_a_candidate_that_hangs_keeps_nobody_waiting(daemon):
    run_client(daemon)
    tuning = subprocess.Popen([KILN, "tune", "network", "--seconds", "3600", "--width", "64"], env=daemon.environment(),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(3):
        eventually(lambda: trial_processes(daemon))
        for child in trial_processes(daemon):
            with contextlib.suppress(ProcessLookupError):  # it was replaced since
                os.kill(child, signal.SIGSTOP)
        assert run_client(daemon) == pytest.approx(RESULTS)
    # Its client's end ends it, whatever it does.
    eventually(lambda: trial_processes(daemon))
    for child in trial_processes(daemon):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGSTOP)
    tuning.kill()
    tuning.wait()
    eventually(lambda: "event=tune_ended" in daemon.log.read_text())
    eventually(lambda: not trial_processes(daemon))
