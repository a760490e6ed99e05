"""Repeats work until its time can be measured, and prints results: one JSON object per line."""

import json
import time
import traceback
from collections.abc import Callable


def seconds_of(start: Callable[[], object], wait: Callable[[], object], quick: bool) -> float:
    """Returns the seconds of one `start` with many in flight: the best of three rounds, each of half a second."""
    for _ in range(1 if quick else 3):  # compiles, and raises the clocks
        start()
    wait()

    def round_of(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            start()
        wait()
        return (time.perf_counter() - begin) / count

    once = round_of(1)
    if quick:
        return once
    count = max(3, min(2000, int(0.5 / max(once, 1e-6))))
    return min(round_of(count) for _ in range(3))


def report(name: str, measure: Callable[[], dict]) -> None:
    """Prints the result of `measure` for the case, or its error: other cases may work."""
    try:
        found = measure()
    except Exception as error:  # noqa: BLE001
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {error}"[:500]}
    print(json.dumps({"name": name, **found}), flush=True)
