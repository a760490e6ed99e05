"""The parts of a run for each kind of device."""

import shutil
from typing import Optional

from cases import matmuls, streams
from parts import Part, benchmarks, compared, random_graphs, replay, sides, tests, training, training_in_cpp

DRIVERS = ("cpu", "cuda", "hsa", "level_zero", "opencl")
# The drivers of the conformance suite (tests/conformance/drivers.cc) that are real devices.
CONFORMANCE = {"cpu": "*/null:*/cpu_*", "opencl": "*/opencl:*/opencl_finished"}
ON_PROCESSORS = ("cpu", "opencl")  # an OpenCL device is often a processor, or a small GPU


def suites(driver: str, size: str) -> list[Part]:
    """Returns the parts that need only the machine's C library and the device."""
    quick = size == "quick"
    slow = driver in ON_PROCESSORS
    numerics = [f"--device={driver}"]
    if driver != "cpu":  # the other tests are of the compiler
        numerics.append("--gtest_filter=*OpTest*:*OpGradientTest*:Primitives/*:All/DTypeTest*:ScatterTest*")
    # OpenCL's compilers take a second for a kernel.
    shards, graphs = (200, 3) if quick else {"cpu": (1, 150), "opencl": (40, 30)}.get(driver, (1, 500))
    return [
        tests("conformance", "tests/conformance/conformance_test",
              [f"--gtest_filter={CONFORMANCE.get(driver, f'*/{driver}')}"], 90),
        tests("numerics", "tests/numerics/numerics_compiled_test", numerics, 400 if slow else 150, shards=shards),
        random_graphs(driver, graphs, 180 if slow else 120),
        training_in_cpp(0 if quick else 0.97, ["--epochs", "1"] if quick else [], 120 if slow else 45),
    ]


def measured(driver: str, size: str) -> list[Part]:
    """Returns kernels and training steps through the Python client; on CUDA compared with PyTorch."""
    torch = driver == "cuda"
    moved = {case.name: case.moved_bytes for case in streams(size)}

    def milliseconds(name: str, seconds: float) -> float:
        return seconds * 1e3

    parts = [
        Part("matmul", sides("matmul", 75, size, torch), compared(
            "matmul", {case.name: case.name for case in matmuls(size)}, "cuBLAS", "TFLOP/s",
            lambda name, seconds: 2e-12 * int(name.split()[1]) ** 3 / seconds, 0.5, True)),
        Part("stream", sides("stream", 60, size, torch), compared(
            "stream", {name: "stream" for name in moved}, "copy", "GB/s",
            lambda name, seconds: moved[name] / seconds * 1e-9, 0.8, True)),
        Part("embedding", sides("embedding", 40, size, torch), compared(
            "embedding", {"embedding": "embedding"}, "PyTorch", "ms", milliseconds, 2.0, False)),
        replay(driver, size, torch),
        Part("resnet50", sides("resnet50", 100, size, torch), compared(
            "step", {"resnet50": "resnet50"}, "PyTorch", "ms", milliseconds, None, False)),
        Part("gpt2", sides("gpt2", 80, size, torch), compared(
            "step", {"gpt2": "gpt2"}, "PyTorch", "ms", milliseconds, None, False)),
    ]
    # Processors multiply and copy in `benchmarks`; an OpenCL that takes a second for a kernel does not reach a network's step.
    left_out = {"cpu": ("matmul", "stream", "replay"), "opencl": ("resnet50", "gpt2")}.get(driver, ())
    return [part for part in parts if part.name not in left_out]


def sanitizers() -> list[Part]:
    """Returns NVIDIA's sanitizers, applied to the conformance suite, if they are installed."""
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    return [tests(f"sanitizer, {tool}", "tests/conformance/conformance_test", ["--gtest_filter=*/cuda"], 50,
                  (sanitizer, "--tool", tool, "--error-exitcode", "9"))
            for tool in ("memcheck", "racecheck", "synccheck") if sanitizer]


def all_parts(driver: str, quick: bool, mnist: Optional[str] = None) -> list[Part]:
    """Returns all parts, the most important first. Their limits add up to less than 25 minutes."""
    size = "quick" if quick else "processor" if driver in ON_PROCESSORS else "gpu"
    flag = ["--quick"] if quick else []
    parts = [*suites(driver, size), training("digits", 0.97 if not quick else 0, flag, 120 if driver in ON_PROCESSORS else 60)]
    if driver not in ON_PROCESSORS or mnist:
        parts.append(training("mnist", 0.98 if not quick else 0, [*flag, *(["--data", mnist] if mnist else [])], 75))
    if driver == "cpu":
        parts.append(benchmarks(size))
    parts += measured(driver, size)
    return parts + sanitizers() if driver == "cuda" else parts
