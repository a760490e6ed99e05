"""kiln.connect(start=True) and `python -m kiln serve`."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from eventually import eventually
from kilnd_process import program

PROGRAM = "import kiln; kiln.connect(start=True); print((kiln.arange(3) + 1).tolist())"


@pytest.fixture
def environment(tmp_path):
    """An account without a daemon, with a kilnd that listens on the account's socket alone."""
    daemon = tmp_path / "bin" / "kilnd"
    daemon.parent.mkdir()
    runtime = tmp_path / "r"
    (runtime / "kiln").mkdir(parents=True, mode=0o700)
    daemon.write_text(f'#!/bin/sh\nexec "{program("server/kilnd")}" --listen="unix:{runtime}/kiln/kilnd.sock" '
                      '--metrics_listen=none --devices=cpu --idle_tuning=false "$@"\n')
    daemon.chmod(0o755)
    without = {name: value for name, value in os.environ.items()
               if not name.startswith(("KILN_ADDRESS", "KILND", "XDG_"))}
    return {**without, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(runtime), "KILND": str(daemon)}


def python(environment, *arguments):
    """Runs Python and returns the finished process."""
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


@pytest.fixture
def started(environment):
    """The process id of a daemon that connect(start=True) started. Ends it."""
    first = python(environment, "-c", PROGRAM)
    assert first.stdout == "[1, 2, 3]\n", first.stderr
    told = re.fullmatch(r"kiln: started kilnd as process (\d+); its log is (\S+)\n", first.stderr)
    assert told, first.stderr
    assert pathlib.Path(told[2]) == pathlib.Path(environment["HOME"], ".local/state/kiln/kilnd.log")
    assert "event=" in pathlib.Path(told[2]).read_text()
    yield int(told[1])
    os.kill(int(told[1]), signal.SIGTERM)
    eventually(lambda: not is_running(int(told[1])))


def is_running(process: int) -> bool:
    try:
        status = pathlib.Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_a_daemon_is_started_once_and_outlives_the_process(environment, started):
    assert is_running(started)
    second = python(environment, "-c", PROGRAM)
    assert (second.stdout, second.stderr) == ("[1, 2, 3]\n", "")


def test_processes_that_start_at_the_same_time_share_one_daemon(environment):
    all_four = [subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    answers = [process.communicate() for process in all_four]
    processes = [int(pid) for _, said in answers for pid in re.findall(r"process (\d+)", said)]
    try:
        assert [out for out, _ in answers] == ["[1, 2, 3]\n"] * 4, answers
        assert len(processes) == 1
    finally:
        for process in processes:
            os.kill(process, signal.SIGTERM)
    eventually(lambda: not any(is_running(process) for process in processes))


def test_a_daemon_that_is_expected_elsewhere_is_not_replaced(environment):
    environment["KILN_ADDRESS"] = f"unix:{environment['HOME']}/none.sock"
    failed = python(environment, "-c", PROGRAM)
    assert "No daemon was started, because one is expected at unix:" in failed.stderr
    assert not pathlib.Path(environment["HOME"], ".local").exists()


def test_without_a_program_the_error_says_how_to_get_one(environment):
    del environment["KILND"]
    environment["PATH"] = environment["HOME"]
    failed = python(environment, "-c", PROGRAM)
    assert "NotFound: kilnd is not installed" in failed.stderr
    assert 'pip install "kiln-client[daemon]"' in failed.stderr


def test_a_daemon_that_cannot_start_is_an_error_with_its_last_words(environment):
    environment["KILND"] = f"{environment['HOME']}/missing"
    assert "kilnd cannot be started: [Errno 2]" in python(environment, "-c", PROGRAM).stderr
    broken = pathlib.Path(environment["HOME"], "broken")
    broken.write_text("#!/bin/sh\necho the disk is full\nexit 3\n")
    broken.chmod(0o755)
    environment["KILND"] = str(broken)
    failed = python(environment, "-c", PROGRAM)
    assert "kilnd ended at its start, with status 3. Its log, " in failed.stderr
    assert "ends with: the disk is full" in failed.stderr


def test_serve_becomes_the_daemon(environment):
    served = python(environment, "-m", "kiln", "serve", "--version")
    assert served.returncode == 0 and re.match(r"kilnd \d+\.\d+\.\d+", served.stdout), served
    environment["KILND"] = f"{environment['HOME']}/missing"
    failed = python(environment, "-m", "kiln", "serve")
    assert failed.returncode == 1 and "missing cannot be started: No such file or directory" in failed.stderr, failed


def test_other_commands_show_the_usage(environment):
    assert python(environment, "-m", "kiln", "version").stdout.startswith("kiln 0.")
    assert python(environment, "-m", "kiln", "--help").stdout.startswith("usage: python -m kiln COMMAND")
    unknown = python(environment, "-m", "kiln", "sreve")
    assert unknown.returncode == 2 and unknown.stderr.startswith("usage: "), unknown
