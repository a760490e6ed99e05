"""`kiln` against a live kilnd that has done some work."""

import contextlib
import html.parser
import json
import os
import pty
import subprocess
import sys

import pytest

from eventually import GIVE_UP_SECONDS
from kilnd_process import NO_PROBES, Kilnd, build_folder

KILN = build_folder() / "clients/cli/kiln"
# Has a tensor until its input ends.
HOLDER = """
import sys, kiln
ones = kiln.ones(1000).realize()
kiln.default_connection().synchronize()
print(kiln.default_connection().name, flush=True)
sys.stdin.read()
"""
WORK = build_folder() / "tests/clients/cpp/client_live_test"


@pytest.fixture(scope="module")
def busy(kilnd):
    """The daemon, with a program called sum_of_squares."""
    subprocess.run([WORK, "--gtest_filter=*SumOfSquares"], env=kilnd.environment(), check=True, capture_output=True, timeout=GIVE_UP_SECONDS)
    return kilnd


def kiln(daemon, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([KILN, *arguments], env=daemon.environment(), capture_output=True, text=True, timeout=GIVE_UP_SECONDS)


def output(daemon, *arguments: str) -> str:
    done = kiln(daemon, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_devices(busy):
    assert "cpu:0" in output(busy, "devices")
    devices = json.loads(output(busy, "devices", "--json"))["devices"]
    assert devices[0]["health"] == "HEALTHY"
    assert devices[0]["memory_total_bytes"] > 0


def test_sessions(busy):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], env=busy.environment(), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        name = holder.stdout.readline().strip()
        sessions = {s["name"]: s for s in json.loads(output(busy, "sessions", "--json"))["sessions"]}
    finally:
        holder.communicate()
    assert sessions[name]["client"]["description"].endswith(" -c")
    assert sessions[name]["buffers"] == 1 and sessions[name]["memory_bytes"] >= 4000


def test_programs(busy):
    programs = json.loads(output(busy, "programs", "--json"))["programs"]
    mine = [p for p in programs if p["name"] == "sum_of_squares"]
    assert mine and mine[0]["kernels"] >= 1 and mine[0]["runs"] >= 1
    assert mine[0]["digest"][:12] in output(busy, "programs")


def test_kernels(busy):
    kernels = json.loads(output(busy, "kernels", "sum_of_squares", "--json"))["kernels"]
    assert kernels and all(k["name"] and k["digest"] for k in kernels)
    assert kernels[0]["name"] in output(busy, "kernels", "sum_of_squares")


def test_explain_goes_down_to_assembly(busy):
    explained = json.loads(output(busy, "explain", "sum_of_squares", "--json"))
    for part in ("graph", "partition", "queue"):
        assert explained[part], part
    for kernel in explained["kernels"]:
        for part in ("ir", "schedule", "source", "assembly"):
            assert kernel[part], part
    text = output(busy, "explain", "sum_of_squares")
    assert "== time per kernel" in text and explained["kernels"][0]["source"].strip() in text


def test_explain_on_a_terminal_is_shown_by_a_pager(busy, tmp_path):
    shown = tmp_path / "shown"

    def on_terminal(pager: str) -> str:
        """Returns what the terminal shows."""
        controller, terminal = pty.openpty()
        process = subprocess.Popen([KILN, "explain", "sum_of_squares", "--summary"], stdin=terminal, stdout=terminal, stderr=terminal,
                                   env=dict(busy.environment(), PAGER=pager))
        os.close(terminal)
        text = b""
        # Reading fails once the last process has closed the terminal.
        with contextlib.suppress(OSError):
            while part := os.read(controller, 4096):
                text += part
        os.close(controller)
        assert process.wait(timeout=GIVE_UP_SECONDS) == 0
        return text.decode()

    assert on_terminal(f"cat > {shown}") == ""
    assert "== time per kernel" in shown.read_text()
    for pager in ("cat", "", "no_such_pager 2>/dev/null"):
        assert "== time per kernel" in on_terminal(pager)


def test_explain_as_a_page(busy, tmp_path):
    page = tmp_path / "page.html"
    assert output(busy, "explain", "sum_of_squares", "--html", str(page)) == f"wrote {page}\n"
    parts: list[str] = []

    class Page(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            assert tag not in ("script", "img", "link", "iframe", "object"), tag
            for name, value in attributes:
                assert not name.startswith("on") and name != "src", (tag, name)
                assert name != "href" or value.startswith("#kernel"), value

        def handle_data(self, data):
            parts.append(data)

    Page(convert_charrefs=True).feed(page.read_text())
    explained = json.loads(output(busy, "explain", "sum_of_squares", "--json"))
    assert explained["kernels"][0]["source"].strip() in "".join(parts)


def test_explain_of_nothing(busy):
    done = kiln(busy, "explain", "no_such_program")
    assert done.returncode == 1
    # It names the first of those that the tests before this one have left there.
    assert "there is no program no_such_program; the daemon has " in done.stderr


def test_cache():
    with Kilnd(threads=2, config=NO_PROBES) as kilnd:
        subprocess.run([WORK, "--gtest_filter=*SumOfSquares"], env=kilnd.environment(), check=True, capture_output=True, timeout=GIVE_UP_SECONDS)
        cache = json.loads(output(kilnd, "cache", "--json"))
        assert cache["kernels"] >= 1 and cache["bytes"] > 0 and cache["misses"] >= 1
        assert os.path.exists(cache["path"])
        assert output(kilnd, "cache", "clear").startswith(f"deleted {cache['kernels']} kernels")
        assert json.loads(output(kilnd, "cache", "--json"))["kernels"] == 0


def test_address_by_option(busy):
    done = subprocess.run([KILN, "devices", "--address", busy.tcp_address], env={}, capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0 and "cpu:0" in done.stdout, done.stderr
