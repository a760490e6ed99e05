"""Kinds of parts of a run: the commands, their time limits, and the meaning of their output."""

import json
import os
import pathlib
import re
import sys
from collections.abc import Callable
from typing import NamedTuple, Optional

from table import Result

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "bench"))

from report import Row, asked, holds  # noqa: E402

SKIPPED = 77  # the exit status of test programs that have nothing to test on


class Output(NamedTuple):
    """The results of a command."""

    status: Optional[int]  # None: it was stopped because it took too long
    text: str
    lines: list[dict]  # parsed JSON objects

    def why(self) -> str:
        """Returns the last line, for lack of a better reason."""
        said = [line for line in self.text.splitlines() if line.strip()]
        return said[-1] if said else f"status {self.status}"


class Command(NamedTuple):
    """A command. `torch`: uses PyTorch's Python. `daemon`: is a client of a daemon. `client`: is a Python client, which needs
    packages that not every machine has."""

    arguments: list[str]
    seconds: int
    torch: bool = False
    daemon: bool = False
    client: bool = False
    environment: tuple[tuple[str, str], ...] = ()


class Part(NamedTuple):
    """Commands one after the other, and the rows made of their outputs."""

    name: str
    commands: list[Command]
    results: Callable[[list[Output]], list[Result]]


def failed(part: str, name: str, output: Output) -> Result:
    """Returns a row with the reason why there is no figure."""
    verdict = "late" if output.status is None else "skipped" if output.status == SKIPPED else "failed"
    return Result(part, name, verdict, note=("its time was over; it said last: " if verdict == "late" else "") + output.why())


def tests(name: str, program: str, arguments: list[str], seconds: int, before: tuple[str, ...] = (), shards: int = 1) -> Part:
    """Returns a part for a GoogleTest program, or one of `shards` parts of it. It passes only if it runs some tests."""

    def results(outputs: list[Output]) -> list[Result]:
        text = outputs[0].text
        passed = len(re.findall(r"^\[       OK \]", text, re.M))
        wrong = re.findall(r"^\[  FAILED  \] (\S+).* \(\d+ ms\)", text, re.M)
        skipped = len(re.findall(r"^\[  SKIPPED \] .* \(\d+ ms\)", text, re.M))
        reported = re.search(r"ERROR SUMMARY: (\d+) error", text)
        note = f"{passed} passed, {len(wrong)} failed, {skipped} skipped"
        if reported:
            note += f"; {reported[1]} errors reported"
        if wrong:
            note += ": " + ", ".join(wrong[:5])
        if outputs[0].status != 0 or passed == 0:
            row = failed(name, program.rsplit("/", 1)[-1], outputs[0])
            row.verdict = "skipped" if outputs[0].status == 0 and not wrong else row.verdict
            row.note = f"{note}; {row.note}" if passed or wrong else row.note
            return [row]
        return [Result(name, program.rsplit("/", 1)[-1], "ok", note=note)]

    environment = (("GTEST_TOTAL_SHARDS", str(shards)), ("GTEST_SHARD_INDEX", "0"))
    return Part(name, [Command([*before, program, *arguments], seconds, environment=environment)], results)


def random_graphs(driver: str, count: int, seconds: int) -> Part:
    """Compares random graphs on the device with the interpreter."""

    def results(outputs: list[Output]) -> list[Result]:
        told = re.findall(r"(\d+) graphs, (\d+) different", outputs[0].text)
        if not told:
            return [failed("random graphs", "random_graphs", outputs[0])]
        graphs, different = map(int, told[-1])
        verdict = "failed" if different or outputs[0].status not in (0, None) else "ok" if outputs[0].status == 0 else "late"
        return [Result("random graphs", "random_graphs", verdict, value=graphs, unit="graphs", note=f"{different} different")]

    threads = str(min(8, os.cpu_count() or 1))
    arguments = ["--device", driver, "--graphs", str(count), "--seed", "1", "--threads", threads]
    return Part("random graphs", [Command(["tests/random_graphs/random_graphs", *arguments], seconds)], results)


def training(name: str, wanted: float, arguments: list[str], seconds: int) -> Part:
    """Trains an example."""

    def results(outputs: list[Output]) -> list[Result]:
        if outputs[0].status != 0 or not outputs[0].lines:
            return [failed("training", name, outputs[0])]
        told = outputs[0].lines[-1]
        verdict = "ok" if told["accuracy"] >= wanted else "failed"
        return [Result("training", name, verdict, value=told["accuracy"], unit="test accuracy", wanted=f">= {wanted}",
                       note=told["note"])]

    command = Command([sys.executable, str(HERE / "training.py"), name, *arguments], seconds, daemon=True, client=True)
    return Part(name, [command], results)


def training_in_cpp(wanted: float, arguments: list[str], seconds: int) -> Part:
    """Trains the C++ client's example, which needs only the daemon: it draws its own digits."""

    def results(outputs: list[Output]) -> list[Result]:
        epochs = re.findall(r"^epoch .* test accuracy ([\d.]+)", outputs[0].text, re.M)
        if outputs[0].status != 0 or not epochs:
            return [failed("training", "digits in C++", outputs[0])]
        accuracy = float(epochs[-1])
        return [Result("training", "digits in C++", "ok" if accuracy >= wanted else "failed", value=accuracy,
                       unit="test accuracy", wanted=f">= {wanted}", note=f"{len(epochs)} epochs")]

    return Part("digits in C++", [Command(["clients/cpp/examples/train_digits", *arguments], seconds, daemon=True)], results)


def benchmarks(size: str) -> Part:
    """Returns the benchmarks of tests/bench that need no Python packages: processor kernels, round trips, the compiler."""

    def results(outputs: list[Output]) -> list[Result]:
        rows = []
        for what, output in zip(seconds, outputs):
            for row in (Row(**told) for told in output.lines):
                verdict = {True: "ok", False: "below", None: "measured"}[None if size == "quick" else holds(row)]
                rows.append(Result("benchmarks", row.name, verdict, row.value, row.unit, row.peer, row.peer_value or None,
                                   row.ratio, asked(row)))
            if output.status != 0 or not output.lines:
                rows.append(failed("benchmarks", what, output))
        return rows

    seconds = {"matmul": 160, "stream": 50, "replay": 30, "remote": 80, "compile": 40}
    command = [sys.executable, str(HERE.parent / "bench/run"), "--no-build", "--json", "-",
               *(["--quick"] if size == "quick" else []), "--only"]
    return Part("benchmarks", [Command([*command, what], limit) for what, limit in seconds.items()], results)


def sides(what: str, seconds: int, size: str, beside_torch: bool) -> list[Command]:
    """Returns the commands of Kiln's side, and of PyTorch's."""
    flags = [] if size == "gpu" else [f"--{size}"]
    mine = Command([sys.executable, str(HERE / "kiln_side.py"), what, *flags], seconds, daemon=True, client=True)
    return [mine, Command(["torch", str(HERE / "torch_side.py"), what, *flags], seconds, torch=True)][:1 + beside_torch]


def compared(part: str, names: dict[str, str], peer: str, unit: str, figure: Callable[[str, float], float],
             wanted: Optional[float], larger_is_better: bool) -> Callable[[list[Output]], list[Result]]:
    """Makes rows for the cases `names` (each with the peer's case) from both sides' seconds, or only Kiln's."""

    def results(outputs: list[Output]) -> list[Result]:
        mine = {line["name"]: line for line in outputs[0].lines}
        other = {line["name"]: line for output in outputs[1:] for line in output.lines}
        rows = []
        for name, peer_name in names.items():
            told = mine.get(name, {})
            if "seconds" not in told:
                row = failed(part, name, outputs[0])
                row.note = told.get("error", row.note)
                row.verdict = "failed" if "error" in told else row.verdict
                rows.append(row)
                continue
            row = Result(part, name, "measured", value=figure(name, told["seconds"]), unit=unit)
            row.note = ", ".join(f"{key} {told[key]:.2g}" for key in ("relative_error",) if key in told)
            if len(outputs) == 1:
                rows.append(row)
                continue
            row.peer = peer
            beside = other.get(peer_name, {})
            if "seconds" in beside:
                row.peer_value = figure(name, beside["seconds"])
                row.ratio = row.value / row.peer_value
                if wanted is not None:
                    row.wanted = f"{'>=' if larger_is_better else '<='} {wanted}"
                    row.verdict = "ok" if (row.ratio >= wanted) == larger_is_better else "below"
            else:
                row.note += f" {peer}: {beside.get('error', outputs[1].why())}"
            rows.append(row)
        return rows

    return results


def replay(driver: str, size: str, beside_torch: bool) -> Part:
    """Measures microseconds per kernel, compared with PyTorch's CUDA graph."""

    def results(outputs: list[Output]) -> list[Result]:
        mine, torch = (outputs[:-1], outputs[-1]) if beside_torch else (outputs, None)
        graphs = {line["name"]: line for line in torch.lines} if torch else {}
        rows = []
        for output in mine:
            if output.status != 0 or not output.lines:
                rows.append(failed("replay", "bench_compute replay", output))
            for told in output.lines:
                row = Result("replay", told["name"], "measured", value=told["value"], unit=told["unit"])
                rows.append(row)
                if torch is None:
                    continue
                row.peer = "PyTorch's CUDA graph"
                kernels = int(re.search(r"\d+", told["name"])[0])
                beside = graphs.get(f"replay of {kernels} small kernels, a kernel", {})
                if "seconds" in beside:
                    row.peer_value = beside["seconds"] / kernels * 1e6
                    row.ratio = row.value / row.peer_value
                else:
                    row.note = f"PyTorch: {beside.get('error', torch.why())}"
        return rows

    environment = (("BENCH_QUICK", "1"),) if size == "quick" else ()
    commands = [Command(["tests/bench/bench_compute", "replay", kernels, driver], 30, environment=environment)
                for kernels in ("100", "1000")]
    if beside_torch:
        commands.append(Command(["torch", str(HERE / "torch_side.py"), "replay"], 40, torch=True))
    return Part("replay", commands, results)


def json_lines(text: str) -> list[dict]:
    """Returns the lines that are JSON objects, parsed."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found
