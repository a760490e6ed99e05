"""`kiln trace` of a live kilnd that works meanwhile."""

import json
import subprocess
import tempfile

import pytest

import chrome_trace
from eventually import GIVE_UP_SECONDS
from kilnd_process import NO_PROBES, Kilnd, build_folder

KILN = build_folder() / "clients/cli/kiln"
WORK = build_folder() / "tests/clients/cpp/client_live_test"


def work(daemon) -> None:
    subprocess.run([WORK, "--gtest_filter=*SumOfSquares"], env=daemon.environment(), check=True, capture_output=True,
                   timeout=GIVE_UP_SECONDS)


def trace_while_working(daemon, *arguments: str) -> subprocess.CompletedProcess:
    """Works until the trace ends, so that some of the work is within it."""
    # Files, because a pipe that is not read meanwhile would hold the tracer up.
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        tracer = subprocess.Popen([KILN, "trace", "--seconds", "2", *arguments], env=daemon.environment(), stdout=out, stderr=err)
        while tracer.poll() is None:
            work(daemon)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(tracer.args, tracer.returncode, out.read(), err.read())


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace of a daemon of its own, which has not compiled the programs before."""
    file = tmp_path_factory.mktemp("trace") / "t.json"
    with Kilnd(threads=2, config=NO_PROBES) as daemon:
        done = trace_while_working(daemon, "-o", str(file))
    assert done.returncode == 0, done.stderr
    assert f"spans to {file}" in done.stdout and done.stderr == ""
    return chrome_trace.read(file.read_text())


def of(trace, category: str) -> list[chrome_trace.Slice]:
    found = [piece for piece in trace.slices if piece.category == category]
    assert found, f"no slice of {category}"
    return found


def test_has_slices_of_each_kind_on_its_thread(trace):
    assert trace.other["dropped"] == 0 and trace.gaps == []
    mine = [run for run in of(trace, "run") if run.name == "sum_of_squares"]
    assert mine and {(run.process, run.thread) for run in mine} == {("cpu:0", "runs")}
    for run in mine:
        assert run.depth == 0 and run.arguments["user"] and run.arguments["program"]
        assert run.arguments["operation"].startswith(run.arguments["session"] + "/")
    operations = [piece for piece in of(trace, "operation") if piece.name == "run"]
    assert {piece.process for piece in operations} >= {f"session {run.arguments['session']} of {run.arguments['user']}"
                                                       for run in mine}
    assert all(piece.thread.startswith("queue: ") and piece.process == "cpu:0" for piece in of(trace, "wait"))
    assert {piece.name for piece in of(trace, "call")} >= {"SessionService/OpenSession"}
    assert all(piece.thread.startswith("copies") and piece.arguments["bytes"] > 0 for piece in of(trace, "copy"))


def test_kernels_are_within_their_runs_and_passes_within_compilations(trace):
    assert all(piece.depth == 1 and piece.thread == "runs" for piece in of(trace, "command"))
    assert all(piece.depth == 0 for piece in of(trace, "compile"))
    assert all(piece.depth >= 1 and piece.process == "compiler" for piece in of(trace, "pass"))


def test_a_run_is_within_its_operation(trace):
    operations = {(piece.process, piece.arguments["operation"]): piece for piece in of(trace, "operation")}
    compared = 0
    for run in of(trace, "run"):
        operation = operations.get((f"session {run.arguments.get('session')} of {run.arguments.get('user')}",
                                    run.arguments.get("operation")))
        if operation is None:
            continue  # it began before the trace, or the daemon ran it
        assert operation.start <= run.start and run.end <= operation.end
        compared += 1
    assert compared > 0


def test_counts_what_is_open(trace):
    assert {name for process, name in trace.counters if process.startswith("session ")} == {"operations in flight"}
    assert any(name.startswith("waiting: ") for process, name in trace.counters if process == "cpu:0")
    for values in trace.counters.values():
        assert max(count for _, count in values) > 0 and values[-1][1] == 0


def test_writes_to_stdout(kilnd):
    done = trace_while_working(kilnd, "-o", "-")
    assert done.returncode == 0, done.stderr
    assert of(chrome_trace.read(done.stdout), "run")


def test_json_has_the_daemons_answers(kilnd):
    done = trace_while_working(kilnd, "--json")
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[0]["began"]
    assert any(span["kind"] == "RUN" for answer in answers for span in answer["spans"])


@pytest.mark.parametrize("arguments, message", [
    (["--seconds", "0"], "--seconds takes a time above 0, at most 3600"),
    (["--seconds", "nan"], "--seconds takes a time above 0, at most 3600"),
    (["--seconds=4000"], "--seconds takes a time above 0, at most 3600"),
    (["--seconds"], "--seconds takes a time above 0, at most 3600"),
    (["-o"], "-o takes a file"),
    (["now"], "unexpected: now"),
])
def test_says_how_to_call_it(kilnd, arguments, message):
    done = subprocess.run([KILN, "trace", *arguments], env=kilnd.environment(), capture_output=True, text=True,
                          timeout=GIVE_UP_SECONDS)
    assert done.returncode == 2 and message in done.stderr


def test_the_reader_refuses_what_is_not_nested():
    def text(*events: str) -> str:
        names = ['{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"p"}}',
                 '{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"t"}}']
        return '{"displayTimeUnit":"ms","otherData":{},"traceEvents":[' + ",".join([*names, *events]) + "]}"

    def event(start: str, duration: str) -> str:
        return f'{{"ph":"X","cat":"c","name":"n","ts":{start},"dur":{duration},"pid":1,"tid":1,"args":{{}}}}'

    nested = chrome_trace.read(text(event("0.000", "9.000"), event("0.000", "5.000"), event("5.000", "4.000")))
    assert [piece.depth for piece in nested.slices] == [0, 1, 1]
    for wrong in ([event("0.000", "9.000"), event("5.000", "4.001")], [event("5.000", "1.000"), event("0.000", "1.000")],
                  [event("-1.000", "1.000")], [event("0.0", "1.000")]):
        with pytest.raises(AssertionError):
            chrome_trace.read(text(*wrong))
