"""The progress of an example's training: a bar, and a curve in the terminal and as PNG."""

import sys
import time
from typing import List, Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"


class Progress:
    """A bar on standard error; in a log, a line now and then."""

    def __init__(self, total: int, label: str) -> None:
        self._total = total
        self._label = label
        self._start = time.monotonic()
        self._last = 0.0
        self._live = sys.stderr.isatty()

    def update(self, done: int, text: str) -> None:
        """Shows that `done` of the steps are done."""
        now = time.monotonic()
        if done < self._total and now - self._last < (0.1 if self._live else 5.0):
            return
        self._last = now
        width = 28
        filled = width * done // self._total
        bar = "█" * filled + "·" * (width - filled)
        line = f"{self._label} {bar} {done}/{self._total}  {text}  {now - self._start:.1f} s"
        ending = "\n" if done == self._total or not self._live else ""
        print(("\r\x1b[K" if self._live else "") + line, end=ending, file=sys.stderr, flush=True)


def curve(values: Sequence[float], width: int = 60) -> str:
    """A line of blocks: the values' means over equal parts, from low to high."""
    if not values:
        return ""
    parts: List[float] = []
    count = min(width, len(values))
    for i in range(count):
        part = values[i * len(values) // count : (i + 1) * len(values) // count]
        parts.append(sum(part) / len(part))
    low, high = min(parts), max(parts)
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[round((part - low) * scale)] for part in parts)


def save_curve(values: Sequence[float], path: str, title: str) -> bool:
    """Draws the values as PNG; False where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    axes.plot(range(1, len(values) + 1), values, linewidth=1.2)
    axes.set(xlabel="step", ylabel="loss", title=title)
    axes.set_yscale("log")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True
