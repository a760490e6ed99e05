"""Describes the machine, and samples its GPU's clocks during a run."""

import contextlib
import os
import platform
import shutil
import statistics
import subprocess
import sys
import threading

ONCE = ("name", "driver_version", "memory.total", "power.limit", "clocks.max.sm", "clocks.max.mem", "compute_cap",
        "pcie.link.gen.max")
OFTEN = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")


def query(fields: tuple[str, ...]) -> dict[str, str]:
    """Returns nvidia-smi's values for the first GPU; {} if there is none."""
    if shutil.which("nvidia-smi") is None:
        return {}
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader", "--id=0"],
                              capture_output=True, text=True, timeout=20)
        values = done.stdout.strip().split(", ")
        if done.returncode == 0 and len(values) == len(fields):
            return dict(zip(fields, values))
    return {}


def describe(torch_python: str) -> dict[str, str]:
    """Describes the machine for the head of the table."""
    found = {"GPU": "nvidia-smi finds none", **query(ONCE)}
    found["CPU cores, system"] = f"{os.cpu_count()}, {platform.platform()}"
    found["C library"] = " ".join(platform.libc_ver())
    found["Python"] = sys.version.split()[0]
    code = "import torch; print(torch.__version__, '| CUDA', torch.version.cuda, '| available:', torch.cuda.is_available())"
    try:
        done = subprocess.run([torch_python, "-c", code], capture_output=True, text=True, timeout=120)
        found["PyTorch"] = done.stdout.strip() or "none"
    except (OSError, subprocess.SubprocessError):
        found["PyTorch"] = "none"
    return found


class Clocks:
    """Samples the GPU's clocks every second while a `with` block runs; `text` is their medians."""

    def __init__(self) -> None:
        self._samples: list[dict[str, str]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.text = ""

    def _sample(self) -> None:
        while not self._over.wait(1.0):
            if sample := query(OFTEN):
                self._samples.append(sample)

    def __enter__(self) -> "Clocks":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        self._thread.join(timeout=30)
        medians = []
        for field in OFTEN:
            numbers = [float(sample[field].split()[0]) for sample in self._samples if sample[field][:1].isdigit()]
            if numbers:
                medians.append(f"{field} {statistics.median(numbers):.0f}")
        self.text = ", ".join(medians)
