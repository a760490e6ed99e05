"""Training steps: time next to PyTorch's, compile times, number of kernels, memory. The gradient of an embedding."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

from kilnd_process import ROOT, Kilnd, build_folder, program
from report import Row
from torch_python import DEBIANS, torch_python

BENCH = ROOT / "tests/bench"
# Allowed difference of losses after the same steps, relative to the larger of 1 and the losses. Rounding differs, and the
# difference grows with each step: in ResNet-50 with a batch of 8, PyTorch's own modes differ by 2% after 3 steps.
LOSSES_DIFFER = 1e-3


class Stepper:
    """A process that does steps on request."""

    def __init__(self, command: list[str], environment: dict):
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.loss = 0.0

    def steps(self, count: int) -> list[float]:
        """Returns the seconds that each of `count` steps took; sets `loss` to the last step's, for a model."""
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{' '.join(self.process.args)} ended with status {self.process.wait()}")
        told = json.loads(answer)
        self.loss = told.get("loss", 0.0)
        return told["seconds"]

    def __enter__(self) -> "Stepper":
        return self

    def __exit__(self, *_) -> None:
        self.process.stdin.close()
        self.process.wait()


def kiln_stepper(daemon: Kilnd, model: str) -> Stepper:
    """Starts Kiln's client, in the environment of deploy/python_environment."""
    python = ROOT / "build/venv/bin/python"
    if not python.exists():
        raise RuntimeError("there is no Python environment with the client: run deploy/python_environment")
    return Stepper([str(python), str(BENCH / "kiln_step.py"), model], daemon.environment())


def step_program(daemon: Kilnd) -> dict:
    """Returns the daemon's description of the program with the most kernels: the training step."""
    answer = subprocess.run([str(build_folder() / "clients/cli/kiln"), "programs", "--json"], env=daemon.environment(),
                            capture_output=True, text=True, check=True)
    return max(json.loads(answer.stdout)["programs"], key=lambda program: program["kernels"])


def torch_stepper(model: str, threads: int, mode: str) -> Stepper:
    """Starts PyTorch in one of its modes (torch_step.py)."""
    return Stepper([torch_python().path, str(BENCH / "torch_step.py"), model, str(threads), mode], dict(os.environ))


def require_equal(name: str, sides: Sequence[Stepper]) -> None:
    """Requires that the loss of the first side, Kiln's, agrees with the others: all began with the same weights and did the
    same number of steps on the same batch. Kiln may be as far from PyTorch's losses as these are from one another."""
    ours, *theirs = (side.loss for side in sides)
    allowed = LOSSES_DIFFER * max(1, ours, *theirs) + max(theirs) - min(theirs)
    if not min(theirs) - allowed <= ours <= max(theirs) + allowed:
        raise RuntimeError(f"{name}: the loss {ours} differs from PyTorch's {', '.join(map(str, theirs))}")


def torch_ways(model: str) -> list[tuple[int, str]]:
    """Returns how PyTorch does a step: (threads, mode). Eager also runs with one thread, since small steps gain from that."""
    threads = min(2, len(os.sched_getaffinity(0)))
    modes = [mode for mode in torch_python().modes if model != "gpt2" or mode != "channels-last"]
    return sorted({(1, "eager"), *((threads, mode) for mode in modes)})


def step_times(daemon: Kilnd, model: str, name: str, rounds: int, steps: int) -> Row:
    """Alternates Kiln and PyTorch's ways; the best of those counts, and all are printed. A way that fails on this machine
    (torch.compile needs a C++ compiler) is left out."""
    ways = torch_ways(model)
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(kiln_stepper(daemon, model))
        ours.steps(3)
        peers = []
        for way in list(ways):
            peer = stack.enter_context(torch_stepper(model, *way))
            try:
                peer.steps(3)
            except RuntimeError as error:
                print(f"  {name}: left out: {error}", file=sys.stderr)
                ways.remove(way)
                continue
            peers.append(peer)
        if not peers:
            raise RuntimeError(f"{name}: PyTorch does not run")
        sides = [ours, *peers]
        times = [[] for _ in sides]
        first = ours.loss
        require_equal(name, sides)
        for _ in range(rounds):
            for side, seconds in zip(sides, times):
                seconds += side.steps(steps)
        require_equal(name, sides)
        if not ours.loss < first:
            raise RuntimeError(f"{name}: the loss did not fall: {first} after 3 steps, {ours.loss} at the end")
    kiln, *torch = (statistics.median(seconds) * 1e3 for seconds in times)
    told = [f"{mode} {milliseconds:.4g} ms ({threads} threads)" for (threads, mode), milliseconds in zip(ways, torch)]
    print(f"  {name}: PyTorch {', '.join(told)}", file=sys.stderr)
    best, (_, mode) = min(zip(torch, ways))
    return Row(name, kiln, "ms", f"PyTorch {torch_python().version} {mode}", best)


def convnet_rows(quick: bool) -> Iterator[Row]:
    """One daemon for the cold compile and the step's time, a second one with its cache for the warm compile."""
    rounds, steps = (1, 2) if quick else (7, 8)
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as folder:
        with Kilnd(folder, devices=None) as daemon:
            yield step_times(daemon, "convnet", "convnet step, batch 128, Adam", rounds, steps)
            cold = step_program(daemon)
        yield Row("convnet step, kernels", cold["kernels"], "kernels")
        yield Row("convnet step, cold compile", cold["compile_seconds"], "s")
        with Kilnd(folder, devices=None) as daemon, kiln_stepper(daemon, "convnet") as ours:
            ours.steps(3)
            yield Row("convnet step, warm compile after a restart", step_program(daemon)["compile_seconds"], "s")


@contextlib.contextmanager
def busy_loops(cores: list[int], bound: bool) -> Iterator[None]:
    """Runs a process with an endless loop for each core: each bound to a core, or wherever the system schedules it."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in cores]
    try:
        for loop, core in zip(loops, cores):
            os.sched_setaffinity(loop.pid, [core] if bound else cores)
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def shared_rows(quick: bool) -> Iterator[Row]:
    """A step on two cores that other processes use, too."""
    rounds, steps = (1, 2) if quick else (7, 6)
    all_cores = os.sched_getaffinity(0)
    cores = sorted(all_cores)[:2]
    os.sched_setaffinity(0, cores)  # for all processes started here
    try:
        with Kilnd(devices=None) as daemon:
            for bound, where in [(False, "free"), (True, "one on each core")]:
                with busy_loops(cores, bound):
                    yield step_times(daemon, "convnet", f"convnet step beside {len(cores)} busy loops, {where}", rounds, steps)
    finally:
        os.sched_setaffinity(0, all_cores)


def peak_gibibytes(daemon: Kilnd) -> float:
    """Returns the peak memory of the daemon's process."""
    with open(f"/proc/{daemon.process.pid}/status") as status:
        kibibytes = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return kibibytes / 2**20


def model_rows(quick: bool) -> Iterator[Row]:
    """Large models: the cold compile of a whole training step, its distinct kernels, its time, its memory."""
    rounds, steps = (1, 1) if quick else (3, 2)
    models = {
        "resnet18": "ResNet-18 step, 32 x 32, batch 64",
        "resnet50": "ResNet-50 step, 224 x 224, batch 8",
        "gpt2": "GPT-2 small step, context 256",
    }
    for model, name in models.items():
        with Kilnd(devices=None) as daemon:
            yield step_times(daemon, model, name, rounds, steps)
            cold = step_program(daemon)
            yield Row(f"{name}, distinct kernels", cold["distinct_kernels"], "kernels")
            yield Row(f"{name}, cold compile", cold["compile_seconds"], "s")
            yield Row(f"{name}, memory", peak_gibibytes(daemon), "GiB")


def first_rows(quick: bool) -> Iterator[Row]:
    """The additional time of a step's first call: without cached kernels, and with those of an earlier daemon."""
    models = {"resnet18": "ResNet-18 step, 32 x 32, batch 64", "gpt2": "GPT-2 small step, context 256"}
    for model, name in models.items():
        with tempfile.TemporaryDirectory(prefix="kiln-bench-") as folder:
            for cache in ("cold", "warm"):
                with Kilnd(folder, devices=None) as daemon, kiln_stepper(daemon, model) as ours:
                    (first,) = ours.steps(1)
                    later = statistics.median(ours.steps(1 if quick else 7))
                    yield Row(f"{name}, first call beyond a later one, {cache} cache", first - later, "s")


def embedding_rows(quick: bool) -> Iterator[Row]:
    """The gradient of a large embedding, next to PyTorch's index_add_ (with its best number of threads) and numpy.add.at."""
    rounds = 1 if quick else 7
    script = str(BENCH / "embedding_step.py")
    threads = str(min(2, len(os.sched_getaffinity(0))))
    with Kilnd(devices=None) as daemon:
        with (Stepper([str(ROOT / "build/venv/bin/python"), script, "kiln"], daemon.environment()) as ours,
              Stepper([torch_python().path, script, "torch", "1"], dict(os.environ)) as one,
              Stepper([torch_python().path, script, "torch", threads], dict(os.environ)) as several,
              Stepper([DEBIANS, script, "numpy"], dict(os.environ)) as numpy):
            sides = (ours, one, several, numpy)
            times = [[], [], [], []]
            for side in sides:
                side.steps(2)
            for _ in range(rounds):
                for side, seconds in zip(sides, times):
                    seconds += side.steps(2)
    kiln, *torch, numpy_time = (statistics.median(seconds) * 1e3 for seconds in times)
    name = "embedding gradient 50257 x 768, 4096 positions"
    yield Row(name, kiln, "ms", "PyTorch index_add_", min(torch))
    yield Row(name, kiln, "ms", "numpy.add.at", numpy_time)


def op_rows(quick: bool) -> Iterator[Row]:
    """Single ops without a daemon, next to PyTorch's, with its best number of threads."""
    rounds = 1 if quick else 7
    names = {"sort": "sort of 2^20 float32", "topk": "topk of 50 of 64 x 50257", "gather": "gather of 8192 rows of 768"}
    threads = min(2, len(os.sched_getaffinity(0)))
    for op, name in names.items():
        with (Stepper([program("tests/bench/bench_compute"), "op", op, str(threads)], dict(os.environ)) as ours,
              Stepper([torch_python().path, str(BENCH / "op_step.py"), op, "1"], dict(os.environ)) as one,
              Stepper([torch_python().path, str(BENCH / "op_step.py"), op, str(threads)], dict(os.environ)) as several):
            sides = (ours, one, several)
            times = [[], [], []]
            for side in sides:
                side.steps(2)
            for _ in range(rounds):
                for side, seconds in zip(sides, times):
                    seconds += side.steps(3)
        kiln, *torch = (statistics.median(seconds) * 1e3 for seconds in times)
        yield Row(name, kiln, "ms", "PyTorch", min(torch))
