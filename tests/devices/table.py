"""The table of results: a row for each figure and each suite of tests, as Markdown and as JSON."""

import json
import pathlib
from dataclasses import asdict, dataclass
from typing import Optional


@dataclass
class Result:
    """One row. `ratio` is compared with `wanted`; `verdict` is ok, below, failed, late, skipped or measured."""

    part: str
    name: str
    verdict: str
    value: Optional[float] = None
    unit: str = ""
    peer: str = ""
    peer_value: Optional[float] = None
    ratio: Optional[float] = None
    wanted: str = ""
    note: str = ""
    clocks: str = ""
    device: str = ""  # "cuda"


def number(value: Optional[float]) -> str:
    """Formats a number with four digits."""
    return "" if value is None else f"{value:.4g}"


def cell(text: str) -> str:
    """Returns the text in a form that fits in a cell."""
    return " ".join(str(text).replace("|", "/").split())[:300]


HEADER = ("device", "part", "what", "verdict", "value", "unit", "beside", "its value", "ratio", "wanted", "note", "clocks")


def line(result: Result) -> str:
    """Returns one row of Markdown."""
    cells = (result.device, result.part, result.name, result.verdict, number(result.value), result.unit, result.peer,
             number(result.peer_value), number(result.ratio), result.wanted, result.note, result.clocks)
    return "| " + " | ".join(map(cell, cells)) + " |"


def count(results: list[Result]) -> tuple[int, int, int]:
    """Counts passed, failed and skipped results. A measured figure passes, even below the wanted one."""
    failed = sum(result.verdict in ("failed", "late") for result in results)
    skipped = sum(result.verdict == "skipped" for result in results)
    return len(results) - failed - skipped, failed, skipped


def summary(results: list[Result]) -> str:
    """Returns the counts as one line."""
    passed, failed, skipped = count(results)
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def write(folder: pathlib.Path, machine: dict[str, str], results: list[Result]) -> None:
    """Writes report.md and results.json; called after every part, so that they exist however the run ends."""
    below = [f"{result.device} {result.name}" for result in results if result.verdict == "below"]
    text = ["# Kiln on this machine", "", *(f"- {name}: {value}" for name, value in machine.items()), "", summary(results), "",
            *([f"Slower than wanted: {', '.join(below)}", ""] if below else []),
            "| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER), *map(line, results), ""]
    (folder / "report.md").write_text("\n".join(text))
    (folder / "results.json").write_text(json.dumps({"machine": machine, "results": list(map(asdict, results))}, indent=1))
