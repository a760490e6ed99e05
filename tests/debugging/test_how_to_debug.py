"""Follows every row of the table "How to debug" in CONTRIBUTING.md as it is written there."""

import json
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from eventually import GIVE_UP_SECONDS, eventually
from kilnd_process import NO_PROBES, ROOT, Kilnd, build_folder, opencl_is_installed

KILN = build_folder() / "clients" / "cli" / "kiln"
IRTOOL = build_folder() / "compiler" / "irtool"
BENCH_BEAM = build_folder() / "tests" / "bench" / "bench_beam"

# A small program: a contraction, rows that merge, and two results.
CLIENT = """
import kiln, numpy as np
@kiln.jit
def layer(x, w):
    y = x @ w
    return kiln.softmax(y, -1), (y * y).sum()
x = kiln.Tensor(np.arange(48, dtype=np.float32).reshape(6, 8) / 48)
w = kiln.Tensor(np.ones((8, 32), np.float32) / 8)
for _ in range(2):
    rows, total = layer(x, w)
    print(float(rows.numpy().sum()), float(total.numpy()))
"""
RESULTS = [6.0, 32 * sum((8 * i + 3.5) ** 2 for i in range(6)) / 48**2]

ANSWERED: dict[str, Callable[[], None]] = {}


def answers(question: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Marks the test of the row with this question."""

    def mark(test: Callable[[], None]) -> Callable[[], None]:
        ANSWERED[question] = test
        return test

    return mark


def rows() -> dict[str, str]:
    """Returns the table: answers by question."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## How to debug")[1].split("\n## ")[0]
    cells = [line.strip("|").split(" | ", 1) for line in section.splitlines() if line.startswith("| ") and "---" not in line]
    return {question.strip(): answer.strip() for question, answer in cells[1:]}


def run_client(daemon: Kilnd) -> list[float]:
    """Returns the results of the program's second run."""
    done = subprocess.run([sys.executable, "-c", CLIENT], env=daemon.environment(), capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def output(*command: object, daemon: Kilnd | None = None, stdin: str | None = None) -> str:
    done = subprocess.run([str(word) for word in command], env=daemon.environment() if daemon else None, input=stdin,
                          capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def explain(daemon: Kilnd) -> dict:
    return json.loads(output(KILN, "explain", "layer", "--json", daemon=daemon))


def value_of(metric: str, text: str) -> float:
    return sum(float(line.split()[-1]) for line in text.splitlines() if re.match(rf"{metric}[ {{]", line))


@answers("what became of my program?")
def test_explain():
    with Kilnd(threads=2) as daemon:
        assert run_client(daemon) == pytest.approx(RESULTS)
        text = output(KILN, "explain", "layer", daemon=daemon)
    parts = ["== time per kernel", "== passes", "== graph", "== fused kernels", "== queue", ": loops", ": schedule", ": source",
             ": assembly"]
    at = [text.find(part) for part in parts]
    assert -1 not in at and at == sorted(at), dict(zip(parts, at))


@answers("what does a pass do to a graph?")
def test_one_pass():
    with Kilnd(threads=2, flags=["--dump_passes=normalize,cluster,lower"]) as daemon:
        run_client(daemon)
        passes = {report["pass"]: report for report in explain(daemon)["passes"]}
        text = output(KILN, "explain", "layer", "--passes", daemon=daemon)
        graph = explain(daemon)["graph"]
    assert [name for name, report in passes.items() if report["text"]] == ["normalize", "cluster", "lower"]
    assert "== after cluster\ncluster 0" in text and "== graph" not in text
    # irtool reads the graph, and gets the same results.
    assert "output" in output(IRTOOL, "--pass", "simplify", stdin=graph)
    assert output(IRTOOL, "--to", "normalize", stdin=graph) == passes["normalize"]["text"]
    assert output(IRTOOL, "--to", "cluster", stdin=graph) == passes["cluster"]["text"]
    assert output(IRTOOL, stdin=graph).startswith("# ")
    listed = [line.split()[0] for line in output(IRTOOL, "--list").splitlines()]
    assert listed == list(passes), "irtool and the daemon have one list"


@answers("which schedules could this kernel have?")
def test_space_of_a_kernel(tmp_path):
    with Kilnd(threads=2) as daemon:
        run_client(daemon)
        loops = next(kernel["ir"] for kernel in explain(daemon)["kernels"] if kernel["schedule"])
    (tmp_path / "kernel.txt").write_text(loops)
    device = "vector_bytes=32 vector_registers=16 compute_units=8"
    space, setting = output(IRTOOL, "--space", device, tmp_path / "kernel.txt").split("\n\n")
    assert "stage 0 form:" in space and "stage 0 lanes:" in space
    (tmp_path / "setting.txt").write_text(setting)
    schedule = output(IRTOOL, "--space", device, "--setting", tmp_path / "setting.txt", tmp_path / "kernel.txt")
    assert "vector" in schedule
    (tmp_path / "setting.txt").write_text(setting.replace("lanes=8", "lanes=4"))
    assert output(IRTOOL, "--space", device, "--setting", tmp_path / "setting.txt", tmp_path / "kernel.txt") != schedule


@answers("is there a faster schedule for this kernel?")
def test_search_for_a_faster_schedule(tmp_path):
    kernel = ROOT / "compiler" / "testdata" / "matmul.txt"
    found, table = output(BENCH_BEAM, "--seconds", "1", "--path", kernel).split("\n\n")
    assert re.match(r"kernel +heuristic us .*\nmatmul.txt ", table)
    path, setting = found.split("# matmul.txt: ")
    # The rates of the device come first. A kernel at its roofline needs no further round.
    assert re.search(r"^# .* GB/s", path, re.M) and "\nround 0: the heuristic's: " in path and "\nended: " in path
    # irtool writes the setting's schedule.
    device = setting.split('"')[1]
    (tmp_path / "setting.txt").write_text(setting.split("\n", 1)[1])
    assert "bind " in output(IRTOOL, "--space", device, "--setting", tmp_path / "setting.txt", kernel)


@answers("which other kernels could this graph have?")
def test_other_kernels_of_a_graph(tmp_path):
    graph = ROOT / "compiler" / "testdata" / "residual.txt"
    site, *_ = output(IRTOOL, "--sites", graph).splitlines()
    assert site.startswith("split %")
    (tmp_path / "choices.txt").write_text(f"choices 1\n{' '.join(site.split()[:2])}\n")
    chosen = output(IRTOOL, "--choices", tmp_path / "choices.txt", "--to", "partition", graph)
    assert chosen != output(IRTOOL, "--to", "partition", graph)


@answers("is it this pass?")
def test_without_a_pass():
    listed = output(IRTOOL, "--list").splitlines()
    optional = [line.split()[0] for line in listed if "(optional)" in line]
    assert {"simplify", "normalize", "merge_rows", "fuse_horizontally", "split_epilogues"} <= set(optional)
    with Kilnd(threads=2, flags=[f"--disable_passes={','.join(optional)}"]) as daemon:
        assert run_client(daemon) == pytest.approx(RESULTS)
        passes = explain(daemon)["passes"]
        assert "simplify  off" in re.sub(" +", "  ", output(KILN, "explain", "layer", "--passes", daemon=daemon))
    assert [report["pass"] for report in passes if report["disabled"]] == optional


def test_passes_by_configuration():
    with Kilnd(threads=2, config='[compiler]\ndisable_passes = ["merge_rows"]\ndump_passes = ["lower"]\n') as daemon:
        assert run_client(daemon) == pytest.approx(RESULTS)
        passes = explain(daemon)["passes"]
    assert [report["pass"] for report in passes if report["disabled"]] == ["merge_rows"]
    assert [report["pass"] for report in passes if report["text"]] == ["lower"]


@pytest.mark.parametrize("flag, why", [
    ("--disable_passes=emit", r'cannot switch off the pass \\"emit\\"'),
    ("--disable_passes=frobnicate", r'unknown pass \\"frobnicate\\"; the passes are differentiate'),
    ("--dump_passes=frobnicate", r'unknown pass \\"frobnicate\\"'),
])
def test_refused_passes(flag, why):
    with pytest.raises(RuntimeError, match=why):
        Kilnd(flags=[flag])


@answers("is it the schedule?")
def test_without_schedules():
    with Kilnd(threads=2) as daemon:
        run_client(daemon)
        assert value_of("kiln_refused_schedules_total", daemon.metrics()) == 0
        assert any(kernel["schedule"] for kernel in explain(daemon)["kernels"])
        daemon.stop()
        # The other daemon's kernels are not taken from the cache.
        with Kilnd(str(daemon.folder), threads=2, flags=["--disable_passes=schedule"]) as plain:
            assert run_client(plain) == pytest.approx(RESULTS)
            kernels = explain(plain)["kernels"]
    assert not any(kernel["schedule"] for kernel in kernels)
    assert not any(kernel["from_cache"] for kernel in kernels)


@answers("is it the device?")
def test_null_device():
    with Kilnd(devices="null") as daemon:
        assert "null:0" in output(KILN, "devices", daemon=daemon)
        assert "cpu:0" not in output(KILN, "devices", daemon=daemon)
        assert run_client(daemon) == [0, 0], "nothing is computed, so all reads as zeros"
        explained = explain(daemon)
    assert int(explained["program"]["runs"]) == 2
    assert all(kernel["source"] and not kernel["assembly"] for kernel in explained["kernels"])


@pytest.mark.parametrize("devices, names", [
    ("null:1", ["null:1"]),
    ("null,cpu", ["cpu:0", "null:0"]),
])
def test_names_of_devices(devices, names):
    with Kilnd(devices=devices) as daemon:
        found = json.loads(output(KILN, "devices", "--json", daemon=daemon))["devices"]
    assert [device["name"] for device in found] == names


def test_opencl_devices_are_there_if_named():
    if not opencl_is_installed():
        with pytest.raises(RuntimeError, match="opencl: "):  # the message names whatever is missing
            Kilnd(devices="opencl,cpu")
        pytest.skip("no OpenCL here; pocl-opencl-icd makes the processor a device")
    with Kilnd(devices="opencl,cpu") as daemon:
        found = json.loads(output(KILN, "devices", "--json", daemon=daemon))["devices"]
    assert [device["name"] for device in found][:2] == ["cpu:0", "opencl:0"]


@pytest.mark.parametrize("devices, why", [
    ("cpu,gpu", "no device was found named gpu"),
    ("cpu:1", "no device was found named cpu:1; cpu:0 was not requested"),
    ("null:64", r'unknown device \\"null:64\\"; use null, or null:0 to null:63'),
    ("cpu,null:-1", r'unknown device \\"null:-1\\"'),
    ("null:two", r'unknown device \\"null:two\\"'),
    ("nullify", r'unknown device \\"nullify\\"'),
])
def test_devices_that_there_are_not(devices, why):
    with pytest.raises(RuntimeError, match=why):
        Kilnd(devices=devices)


@answers("is it this vector width?")
def test_vector_width():
    with Kilnd(threads=2, flags=["--cpu_features=sse4.2"]) as daemon:
        assert "sse4.2" in output(KILN, "devices", daemon=daemon)
        assert run_client(daemon) == pytest.approx(RESULTS)
        assert not any("ymm" in kernel["assembly"] for kernel in explain(daemon)["kernels"])


@answers("which kernel is slow?")
def test_slow_kernel():
    with Kilnd(threads=2) as daemon:
        run_client(daemon)
        names = [kernel["name"] for kernel in json.loads(output(KILN, "kernels", "layer", "--json", daemon=daemon))["kernels"]]
        assert names
        for name in names:  # results may arrive before the times of the kernels that computed them
            counted = rf'kiln_kernel_device_seconds_total{{.*kernel="{re.escape(name)}"'
            assert eventually(lambda: re.search(counted, daemon.metrics()) is not None), name  # noqa: B023


@answers("whose program takes a device's time?")
def test_whose_program():
    with Kilnd(threads=2, config=NO_PROBES) as daemon:
        run_client(daemon)

        def programs() -> list[tuple[str, str]]:
            return re.findall(r'kiln_program_duration_seconds_sum{device="cpu:0",user="(.+)",program="(\w+)"}', daemon.metrics())

        assert eventually(lambda: len(programs()) > 0)
        [(user, digest)] = programs()
        assert user in output(KILN, "top", "--json", daemon=daemon)
        assert json.loads(output(KILN, "explain", digest, "--json", daemon=daemon))["program"]["name"] == "layer"


@answers("what happens when, and what waits for what?")
def test_trace(tmp_path):
    with Kilnd(threads=2) as daemon:
        tracer = subprocess.Popen([KILN, "trace", "--seconds", "2", "-o", tmp_path / "trace.json"], env=daemon.environment())
        while tracer.poll() is None:
            run_client(daemon)
    assert tracer.returncode == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"operation", "wait", "run"} <= {event.get("cat") for event in events}


@answers("where does the time of a compile go?")
def test_times_of_passes():
    with Kilnd(threads=2) as daemon:
        run_client(daemon)
        explained = explain(daemon)
        text = output(KILN, "explain", "layer", "--passes", daemon=daemon)
    seconds = {report["pass"]: report["seconds"] for report in explained["passes"]}
    assert 0 < seconds["emit"] < explained["program"]["compile_seconds"]
    assert list(seconds) == re.findall(r"^(\w+) +\S+ \w+$", text.split("== passes\n")[1], re.MULTILINE)
    done = subprocess.run([IRTOOL, "--times"], input=explained["graph"], capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert re.search(r"^normalize +[\d.]+ s$", done.stderr, re.MULTILINE)


@answers("why does a first call take so long?")
def test_account_of_the_first_call():
    with Kilnd(threads=2) as daemon:
        run_client(daemon)
        explained = explain(daemon)
        text = output(KILN, "explain", "layer", "--passes", daemon=daemon)
        log = daemon.log.read_text()
    seconds = {part["name"]: part["seconds"] for part in explained["first_call"]}
    assert list(seconds)[0] == "decode" and list(seconds)[-1] == "answer"
    assert {"build_graph", "simplify", "emit.compile", "load", "allocate", "run"} <= set(seconds)
    assert sum(seconds.values()) >= explained["program"]["compile_seconds"] > 0
    for name in seconds:
        assert re.search(rf"^{name} +\S+ \S+ +\d+$", text.split("== first call")[1], re.MULTILINE), name
    (line,) = re.findall(r"event=first_call .*name=layer .*", log)
    told = {name: float(value) for name, value in re.findall(r"([\w.]+)=([\d.e-]+)(?= |$)", line)}
    assert sum(told[name] for name in seconds) == pytest.approx(told["seconds"], rel=1e-3)


@answers("is a table wrong?")
def test_tables_validate_themselves(monkeypatch):
    for value in ("0", "1"):
        monkeypatch.setenv("KILN_VALIDATE", value)
        with Kilnd(threads=2) as daemon:
            assert run_client(daemon) == pytest.approx(RESULTS)
            assert daemon.stop() == 0
            log = daemon.log.read_text()
        assert ("event=validates_tables" in log) == (value == "1")
        assert "invariant violated" not in log


@answers("what does the daemon think?")
def test_debug_log():
    with Kilnd(threads=2, flags=["--log_level=debug"]) as daemon:
        run_client(daemon)
        output(KILN, "sessions", daemon=daemon)
        digest = explain(daemon)["program"]["digest"][:12]
        daemon.stop()
        log = daemon.log.read_text()
    events = [dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', line)) for line in log.splitlines()]

    def first(event: str, **fields: str) -> dict:
        found = [e for e in events if e["event"] == event and all(e.get(k) == v for k, v in fields.items())]
        assert found, f"no {event} with {fields} in\n{log}"
        return found[0]

    opened = first("session_opened")
    session = opened["session"]
    first("stream_attached", session=session)
    assert first("program_defined", name="layer")["session"] == session
    first("compile_started", program=digest)
    first("pass_ran", program=digest, off="no", **{"pass": "merge_rows"})
    kernel = first("kernel_compiled", program=digest)
    assert first("program_compiled", program=digest)["user"] == opened["user"]
    run = first("run_started", program=digest)
    assert run["run"].startswith(session + "/")
    story = ["run_queued", "run_chosen", "run_started", "run_ended"]
    lines = [events.index(first(event, run=run["run"])) for event in story]
    assert lines == sorted(lines), "a run is queued, chosen, started and ended"
    assert first("run_chosen", run=run["run"])["ticket"] == run["ticket"]
    assert first("run_ended", run=run["run"])["status"] == "OK"
    first("kernel_timed", run=run["run"], program=digest, kernel=kernel["kernel"])
    first("session_closed", session=session)


def test_every_row_has_a_test():
    assert list(rows()) == list(ANSWERED), "the rows of the table and the tests here, in one order"


def test_what_the_answers_name_exists():
    """The flags, metrics and commands in the table exist."""
    text = " ".join(rows().values())
    usage = subprocess.run([build_folder() / "server" / "kilnd", "--help"], capture_output=True, text=True, timeout=GIVE_UP_SECONDS).stdout
    assert usage.startswith("usage: kilnd "), usage
    for flag in re.findall(r"kilnd --(\w+)", text):
        assert f"--{flag} " in usage, flag
    commands = output(KILN, "--help")
    for command in re.findall(r"`kiln (\w+)", text):
        assert re.search(rf"^  {command} ", commands, re.MULTILINE), command
    irtool = (ROOT / "compiler" / "irtool.cc").read_text()
    for flag in re.findall(r"irtool (--\w+)", text):
        assert f'"{flag}"' in irtool, flag
