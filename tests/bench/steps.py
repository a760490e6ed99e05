"""The convnet training step: time beside PyTorch's, compile times, number of kernels."""

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator

from kilnd_process import ROOT, Kilnd, build_folder
from report import Row

BENCH = ROOT / "tests/bench"


class Stepper:
    """A process that does training steps on request."""

    def __init__(self, command: list[str], environment: dict):
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def steps(self, count: int) -> list[float]:
        """The seconds that each of `count` steps took."""
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{' '.join(self.process.args)} ended with status {self.process.wait()}")
        return json.loads(answer)

    def __enter__(self) -> "Stepper":
        return self

    def __exit__(self, *_) -> None:
        self.process.stdin.close()
        self.process.wait()


def kiln_stepper(daemon: Kilnd) -> Stepper:
    """Kiln's client, in the environment of deploy/python_environment."""
    python = ROOT / "build/venv/bin/python"
    if not python.exists():
        raise RuntimeError("there is no Python environment with the client: run deploy/python_environment")
    return Stepper([str(python), str(BENCH / "kiln_step.py")], daemon.environment())


def step_program(daemon: Kilnd) -> dict:
    """What the daemon says of the program with the most kernels: the training step."""
    answer = subprocess.run([str(build_folder() / "clients/cli/kiln"), "programs", "--json"], env=daemon.environment(),
                            capture_output=True, text=True, check=True)
    return max(json.loads(answer.stdout)["programs"], key=lambda program: program["kernels"])


def torch_stepper(threads: int) -> Stepper:
    """PyTorch under Debian's Python."""
    return Stepper(["/usr/bin/python3", str(BENCH / "torch_step.py"), str(threads)], dict(os.environ))


def step_times(daemon: Kilnd, rounds: int, steps: int) -> Row:
    """Kiln and PyTorch in turn. PyTorch runs with one thread and with all: its best counts."""
    threads = min(2, len(os.sched_getaffinity(0)))
    with kiln_stepper(daemon) as ours, torch_stepper(1) as one, torch_stepper(threads) as several:
        sides = (ours, one, several)
        times = [[], [], []]
        for side in sides:
            side.steps(3)
        for _ in range(rounds):
            for side, seconds in zip(sides, times):
                seconds += side.steps(steps)
    kiln, *torch = (statistics.median(seconds) * 1e3 for seconds in times)
    return Row("convnet step, batch 128, Adam", kiln, "ms", "PyTorch eager", min(torch))


def convnet_rows(quick: bool) -> Iterator[Row]:
    """One daemon for the cold compile and the step's time, a second one on its cache for the warm compile."""
    rounds, steps = (1, 2) if quick else (7, 8)
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as folder:
        with Kilnd(folder) as daemon:
            yield step_times(daemon, rounds, steps)
            cold = step_program(daemon)
        yield Row("convnet step, kernels", cold["kernels"], "kernels")
        yield Row("convnet step, cold compile", cold["compile_seconds"], "s")
        with Kilnd(folder) as daemon, kiln_stepper(daemon) as ours:
            ours.steps(3)
            yield Row("convnet step, warm compile after a restart", step_program(daemon)["compile_seconds"], "s")
