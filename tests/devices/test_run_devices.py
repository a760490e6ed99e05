"""The command for machines with a GPU: how it interprets outputs, and that it works on the stand-in for CUDA."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from kilnd_process import build_folder  # noqa: E402
from parts import Command, Output, Part, compared, failed, json_lines, training_in_cpp  # noqa: E402
from parts import tests as gtest_part  # noqa: E402
from plan import DRIVERS, all_parts  # noqa: E402
from table import Result, summary  # noqa: E402

STAND_IN = build_folder() / "tests/stand_ins/cuda"


def output(status: int | None, text: str) -> Output:
    """Returns the output of a command."""
    return Output(status, text, json_lines(text))


def test_suites_that_passed_nothing_did_not_pass():
    part = gtest_part("conformance", "tests/conformance/conformance_test", [], 1)
    passed = "[       OK ] All/OrderTest.One/cuda (3 ms)\n[  SKIPPED ] All/OrderTest.Two/cuda (0 ms)\n"
    assert [(r.verdict, r.note) for r in part.results([output(0, passed)])] == [("ok", "1 passed, 0 failed, 1 skipped")]
    assert part.results([output(0, "[  SKIPPED ] All/OrderTest.Two/cuda (0 ms)\n")])[0].verdict == "skipped"
    wrong = part.results([output(1, passed + "[  FAILED  ] All/OrderTest.Three/cuda, where GetParam() = cuda (2 ms)\n")])[0]
    assert wrong.verdict == "failed" and "All/OrderTest.Three/cuda" in wrong.note
    assert part.results([output(None, passed)])[0].verdict == "late"
    assert part.results([output(77, "no device")])[0].verdict == "skipped"


def test_ratios_are_held_against_what_is_wanted():
    results = compared("matmul", {"a": "a", "b": "b", "c": "c"}, "cuBLAS", "TFLOP/s", lambda name, seconds: 1 / seconds, 0.5, True)
    mine = '{"name": "a", "seconds": 1}\n{"name": "b", "seconds": 4}\n{"name": "c", "error": "wrong"}\n'
    other = '{"name": "a", "seconds": 1}\n{"name": "b", "seconds": 1}\n{"name": "c", "seconds": 1}\n'
    rows = results([output(0, mine), output(0, other)])
    assert [(row.verdict, row.ratio) for row in rows] == [("ok", 1.0), ("below", 0.25), ("failed", None)]
    assert rows[2].note == "wrong"
    alone = results([output(0, mine), output(1, "PyTorch finds no CUDA here")])[0]
    assert alone.verdict == "measured" and "PyTorch finds no CUDA here" in alone.note


def test_limits_leave_time_for_all_parts():
    for driver in DRIVERS:
        assert sum(command.seconds for part in all_parts(driver, False) for command in part.commands) < 25 * 60


def test_a_part_that_hangs_is_a_row(tmp_path):
    loader = importlib.machinery.SourceFileLoader("run_devices", str(HERE / "run"))
    run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_devices", loader))
    loader.exec_module(run)
    slow = Part("slow", [Command(["tail", "-f", "/dev/null"], 1)], lambda outputs: [failed("slow", "tail", outputs[0])])
    (row,) = run.run_part("cpu", slow, sys.executable, tmp_path, time.monotonic() + 100)
    assert row.verdict == "late"


def test_it_runs_on_the_stand_in(tmp_path):
    if not (STAND_IN / "libcuda.so.1").exists():
        pytest.skip("the stand-in for CUDA is not built: kiln_cuda_stand_in")
    # The loader finds this one first, even if ROCm is installed.
    (tmp_path / "libhsa-runtime64.so.1").write_text("no library")
    command = [sys.executable, str(HERE / "run"), "--quick", "--patience", "10", "--devices", "cuda,hsa", "--only", "embedding"]
    done = subprocess.run([*command, "--out", str(tmp_path)], env=dict(os.environ, LD_LIBRARY_PATH=f"{STAND_IN}:{tmp_path}"),
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {(row["device"], row["part"]): row for row in json.loads((tmp_path / "results.json").read_text())["results"]}
    assert set(rows) == {("cuda", "devices"), ("cuda", "embedding"), ("hsa", "devices")}
    assert rows["cuda", "embedding"]["verdict"] in ("measured", "ok", "below") and rows["cuda", "embedding"]["value"] > 0
    # Missing devices are named with the reason, and do not count as passed.
    assert rows["hsa", "devices"]["verdict"] == "skipped" and "libhsa-runtime64" in rows["hsa", "devices"]["note"]
    assert done.stdout.splitlines()[-1] == "2 passed, 0 failed, 1 skipped"
    assert "| cuda | embedding | embedding |" in (tmp_path / "report.md").read_text()


def test_what_was_skipped_has_not_passed():
    rows = [Result("a", "a", verdict) for verdict in ("ok", "measured", "below", "failed", "late", "skipped")]
    assert summary(rows) == "3 passed, 2 failed, 1 skipped"
    assert summary(rows[:1]) == "1 passed, 0 failed"


def test_an_example_that_learns_too_little_failed():
    part = training_in_cpp(0.97, [], 1)
    said = "epoch 1: loss 1.0, test accuracy 0.9\nepoch 2: loss 0.5, test accuracy {}\n"
    assert [part.results([output(0, said.format(accuracy))])[0].verdict for accuracy in ("0.98", "0.96")] == ["ok", "failed"]
    assert part.results([output(1, said.format("0.98"))])[0].verdict == "failed"


def test_a_machine_without_packages_is_told_what_to_install(tmp_path):
    python = tmp_path / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(python)], check=True)
    command = [str(python / "bin/python"), str(HERE / "run"), "--quick", "--patience", "10", "--devices", "cpu", "--only", "digits"]
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "results.json").read_text())["results"]
    assert [(row["part"], row["verdict"]) for row in rows] == [("devices", "ok"), ("digits", "skipped")]
    assert "-m pip install numpy grpcio" in rows[1]["note"]
