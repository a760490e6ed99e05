"""The parts of a run: what each starts, how long it may take, and what its output means."""

import json
import pathlib
import re
import shutil
import sys
from collections.abc import Callable
from typing import NamedTuple, Optional

from cases import matmuls, streams
from table import Result

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77  # what test programs exit with where there is nothing to test on


class Output(NamedTuple):
    """What a command left behind."""

    status: Optional[int]  # none: it was ended because it took too long
    text: str
    lines: list[dict]  # of JSON

    def why(self) -> str:
        """The last words, where there is no better reason."""
        said = [line for line in self.text.splitlines() if line.strip()]
        return said[-1] if said else f"status {self.status}"


class Command(NamedTuple):
    """What is started. `torch`: with PyTorch's Python. `daemon`: it is a client of one."""

    arguments: list[str]
    seconds: int
    torch: bool = False
    daemon: bool = False
    environment: tuple[tuple[str, str], ...] = ()


class Part(NamedTuple):
    """Commands one after the other, and the rows that their outputs make."""

    name: str
    commands: list[Command]
    results: Callable[[list[Output]], list[Result]]


def failed(part: str, name: str, output: Output) -> Result:
    """Why there is no figure."""
    verdict = "late" if output.status is None else "skipped" if output.status == SKIPPED else "failed"
    return Result(part, name, verdict, note=output.why())


def tests(name: str, program: str, arguments: list[str], seconds: int, before: tuple[str, ...] = (), shards: int = 1) -> Part:
    """A GoogleTest program, or one of `shards` parts of it. It must run something to be passed."""

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


def random_graphs(count: int, seconds: int) -> Part:
    """Random graphs on the device, against the interpreter."""

    def results(outputs: list[Output]) -> list[Result]:
        told = re.findall(r"(\d+) graphs, (\d+) different", outputs[0].text)
        if not told:
            return [failed("random graphs", "random_graphs", outputs[0])]
        graphs, different = map(int, told[-1])
        verdict = "failed" if different or outputs[0].status not in (0, None) else "ok" if outputs[0].status == 0 else "late"
        return [Result("random graphs", "random_graphs", verdict, value=graphs, unit="graphs", note=f"{different} different")]

    arguments = ["--device", "cuda", "--graphs", str(count), "--seed", "1", "--threads", "8"]
    return Part("random graphs", [Command(["tests/random_graphs/random_graphs", *arguments], seconds)], results)


def training(name: str, wanted: float, arguments: list[str], seconds: int) -> Part:
    """An example, trained."""

    def results(outputs: list[Output]) -> list[Result]:
        if outputs[0].status != 0 or not outputs[0].lines:
            return [failed("training", name, outputs[0])]
        told = outputs[0].lines[-1]
        verdict = "ok" if told["accuracy"] >= wanted else "below"
        return [Result("training", name, verdict, value=told["accuracy"], unit="test accuracy", wanted=f">= {wanted}",
                       note=told["note"])]

    return Part(name, [Command([sys.executable, str(HERE / "training.py"), name, *arguments], seconds, daemon=True)], results)


def sides(what: str, seconds: int, quick: list[str]) -> list[Command]:
    """Kiln's side and PyTorch's."""
    return [Command([sys.executable, str(HERE / "kiln_side.py"), what, *quick], seconds, daemon=True),
            Command(["torch", str(HERE / "torch_side.py"), what, *quick], seconds, torch=True)]


def compared(part: str, names: dict[str, str], peer: str, unit: str, figure: Callable[[str, float], float],
             wanted: Optional[float], larger_is_better: bool) -> Callable[[list[Output]], list[Result]]:
    """Rows of the cases `names` (each with the peer's case) out of both sides' seconds."""

    def results(outputs: list[Output]) -> list[Result]:
        mine = {line["name"]: line for line in outputs[0].lines}
        other = {line["name"]: line for line in outputs[1].lines}
        rows = []
        for name, peer_name in names.items():
            told = mine.get(name, {})
            if "seconds" not in told:
                row = failed(part, name, outputs[0])
                row.note = told.get("error", row.note)
                row.verdict = "failed" if "error" in told else row.verdict
                rows.append(row)
                continue
            row = Result(part, name, "measured", value=figure(name, told["seconds"]), unit=unit, peer=peer)
            row.note = ", ".join(f"{key} {told[key]:.2g}" for key in ("relative_error",) if key in told)
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


def replay_results(outputs: list[Output]) -> list[Result]:
    """Microseconds a kernel; the last output is PyTorch's."""
    graphs = {line["name"]: line for line in outputs[-1].lines}
    rows = []
    for output in outputs[:-1]:
        if output.status != 0 or not output.lines:
            rows.append(failed("replay", "bench_compute replay", output))
        for told in output.lines:
            row = Result("replay", told["name"], "measured", value=told["value"], unit=told["unit"], peer="PyTorch's CUDA graph")
            kernels = int(re.search(r"\d+", told["name"])[0])
            beside = graphs.get(f"replay of {kernels} small kernels, a kernel", {})
            if "seconds" in beside:
                row.peer_value = beside["seconds"] / kernels * 1e6
                row.ratio = row.value / row.peer_value
            else:
                row.note = f"PyTorch: {beside.get('error', outputs[-1].why())}"
            rows.append(row)
    return rows


def all_parts(quick: bool, mnist: Optional[str]) -> list[Part]:
    """In the order of what matters most. Their limits add up to less than 25 minutes."""
    flag = ["--quick"] if quick else []
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    conformance = "tests/conformance/conformance_test"
    only_cuda = ["--gtest_filter=*/cuda"]
    numerics = ["--device=cuda", "--gtest_filter=*OpTest*:*OpGradientTest*:Primitives/*:All/DTypeTest*:ScatterTest*"]
    parts = [
        tests("conformance", conformance, only_cuda, 90),
        tests("numerics", "tests/numerics/numerics_compiled_test", numerics, 150, shards=50 if quick else 1),
        random_graphs(6 if quick else 500, 120),
        training("digits", 0.97 if not quick else 0, flag, 60),
        training("mnist", 0.98 if not quick else 0, [*flag, *(["--data", mnist] if mnist else [])], 75),
        Part("matmul", sides("matmul", 75, flag), compared(
            "matmul", {case.name: case.name for case in matmuls(quick)}, "cuBLAS", "TFLOP/s",
            lambda name, seconds: 2e-12 * int(name.split()[1]) ** 3 / seconds, 0.5, True)),
        Part("stream", sides("stream", 60, flag), compared(
            "stream", {case.name: "stream" for case in streams(quick)}, "copy", "GB/s",
            lambda name, seconds: {case.name: case for case in [*streams(quick)]}[name].moved_bytes / seconds * 1e-9, 0.8, True)),
        Part("embedding", sides("embedding", 40, flag), compared(
            "embedding", {"embedding": "embedding"}, "PyTorch", "ms", lambda name, seconds: seconds * 1e3, 2.0, False)),
        Part("replay", [Command(["tests/bench/bench_compute", "replay", kernels, "cuda"], 30,
                                environment=(("BENCH_QUICK", "1"),) if quick else ()) for kernels in ("100", "1000")]
             + [Command(["torch", str(HERE / "torch_side.py"), "replay"], 40, torch=True)], replay_results),
        Part("resnet50", sides("resnet50", 100, flag), compared(
            "step", {"resnet50": "resnet50"}, "PyTorch", "ms", lambda name, seconds: seconds * 1e3, None, False)),
        Part("gpt2", sides("gpt2", 80, flag), compared(
            "step", {"gpt2": "gpt2"}, "PyTorch", "ms", lambda name, seconds: seconds * 1e3, None, False)),
    ]
    for tool in ("memcheck", "racecheck", "synccheck") if sanitizer else ():
        parts.append(tests(f"sanitizer, {tool}", conformance, only_cuda, 50, (sanitizer, "--tool", tool, "--error-exitcode", "9")))
    return parts


def json_lines(text: str) -> list[dict]:
    """Of the lines that are JSON objects."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found
