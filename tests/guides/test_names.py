"""The flags, keys and metrics that guides name are those of the references."""

import re

import pytest

from blocks import PAGES, ROOT

CONFIGURATION = (ROOT / "docs/configuration.md").read_text()
COMMANDS = (ROOT / "docs/commands.md").read_text()
METRICS = (ROOT / "server/metrics/README.md").read_text()


def keys() -> "set[str]":
    """Returns the keys of the configuration: `section.key`."""
    found = set()
    for section in re.split(r"^## ", CONFIGURATION, flags=re.MULTILINE)[1:]:
        name = re.match(r"\[(\w+)\]", section)
        found |= {f"{name[1]}.{key}" for key in re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) if name}
    return found


def flags() -> "set[str]":
    """Returns the flags of kilnd, whose switches have a negative form, too, and those of kiln."""
    found = re.findall(r"^\|[^|]*\| `--(\w+)` \| (\w+)", CONFIGURATION, re.MULTILINE)
    kilnds = {name for name, _ in found} | {f"no{name}" for name, kind in found if kind == "switch"}
    return kilnds | set(re.findall(r"--(\w+)", COMMANDS))


def metrics() -> "set[str]":
    """Returns the names of metrics. A histogram has buckets, a sum and a count."""
    names = set(re.findall(r"`(kiln_\w+)`", METRICS))
    return names | {name + suffix for name in names for suffix in ("_bucket", "_sum", "_count")}


def spans(page: str) -> str:
    """Returns a page's code outside of blocks, one span a line."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", (ROOT / page).read_text(), flags=re.DOTALL)
    return "\n".join(re.findall(r"`([^`]+)`", text))


def unknown(text: str) -> "list[str]":
    """Returns the names in spans that no reference has."""
    sections = {key.split(".")[0] for key in keys()}
    wrong = [key for key in re.findall(r"^(\w+\.\w+)(?: =.*)?$", text, re.MULTILINE)
             if key.split(".")[0] in sections and key not in keys()]
    wrong += [f"--{flag}" for flag in re.findall(r"--(\w+_\w+)", text) if flag not in flags()]
    return wrong + [metric for metric in re.findall(r"kiln_[a-z_]+[a-z]", text) if metric not in metrics()]


def test_references_are_read():
    assert "fairness.slice_ms" in keys() and "noprograms_shared" in flags() and "kiln_queue_wait_seconds_bucket" in metrics()


@pytest.mark.parametrize("page", PAGES)
def test_names_in_a_page_are_in_the_references(page):
    assert unknown(spans(page)) == []


def test_a_wrong_name_is_found():
    text = "fairness.slices\nfairness.slice_ms\n--slices_ms=1\n--slice_ms\nrate(kiln_errors[5m])\nkiln_errors_total\ntrain.py"
    assert unknown(text) == ["fairness.slices", "--slices_ms", "kiln_errors"]
