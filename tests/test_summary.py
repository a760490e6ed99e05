"""Checks that the last line of tests/run counts correctly."""

import pathlib
import subprocess
import sys

SUMMARY = pathlib.Path(__file__).with_name("summary.py")

CTEST = """<testsuite tests="4" failures="1">
  <testcase name="good" status="run"/>
  <testcase name="bad" time="1200.03" status="fail"><failure message=""/>
    <system-out>first line
WARNING: a race
</system-out></testcase>
  <testcase name="not_built" status="notrun"><skipped message="Unable to find executable"/></testcase>
  <testcase name="left_out" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
</testsuite>"""
PYTEST = """<testsuites><testsuite tests="3">
  <testcase classname="a" name="good"/>
  <testcase classname="a" name="broken"><error message="fixture">conftest.py:3: no kilnd</error></testcase>
  <testcase classname="a" name="skipped"><skipped message="no network"/></testcase>
</testsuite></testsuites>"""


def summarize(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, SUMMARY, *arguments], capture_output=True, text=True)


def test_counts_over_all_files(tmp_path):
    (tmp_path / "release.xml").write_text(CTEST)
    (tmp_path / "clients.xml").write_text(PYTEST)
    done = summarize(tmp_path / "release.xml", tmp_path / "clients.xml")
    assert done.stdout.splitlines()[-1] == "2 passed, 3 failed"
    assert done.returncode == 1
    assert "no network" in done.stdout and "not_built" in done.stdout


def test_a_failure_shows_the_last_it_printed(tmp_path):
    (tmp_path / "release.xml").write_text(CTEST)
    (tmp_path / "clients.xml").write_text(PYTEST)
    lines = summarize(tmp_path / "release.xml", tmp_path / "clients.xml").stdout.splitlines()
    at = lines.index("  FAILED   release:  bad after 1200 s")
    assert lines[at + 1 : at + 3] == ["    first line", "    WARNING: a race"]
    assert "    conftest.py:3: no kilnd" in lines


def test_a_report_of_a_sanitizer_is_shown_from_its_head(tmp_path):
    report = ["WARNING: ThreadSanitizer: data race", *(f"  #{frame} f()" for frame in range(30)), "SUMMARY: in f()"]
    printed = "\n".join(["[ RUN ] a test"] * 9 + report)
    (tmp_path / "tsan.xml").write_text(
        f'<testsuite><testcase name="bad"><failure/><system-out>{printed}</system-out></testcase></testsuite>'
    )
    lines = summarize(tmp_path / "tsan.xml").stdout.splitlines()
    assert lines[1 : 1 + len(report)] == [f"    {line}" for line in report]


def test_an_assertion_that_failed_early_is_shown_before_the_end(tmp_path):
    assertion = ["a_test.cc:7: Failure", "Expected: (sent) &gt; (1), actual: 1 vs 1"]
    printed = "\n".join(["[ RUN ] A.a", *assertion, *(f"later {line}" for line in range(60)), "1 FAILED TEST"])
    (tmp_path / "tsan.xml").write_text(
        f'<testsuite><testcase name="bad"><failure/><system-out>{printed}</system-out></testcase></testsuite>'
    )
    lines = summarize(tmp_path / "tsan.xml").stdout.splitlines()
    assert lines[1:3] == ["    a_test.cc:7: Failure", "    Expected: (sent) > (1), actual: 1 vs 1"]
    assert lines[-2] == "    1 FAILED TEST"


def test_all_well(tmp_path):
    (tmp_path / "good.xml").write_text('<testsuite><testcase name="good" status="run"/></testsuite>')
    done = summarize(tmp_path / "good.xml")
    assert (done.returncode, done.stdout) == (0, "1 passed, 0 failed\n")


def test_broken_builds_and_empty_runs_fail(tmp_path):
    (tmp_path / "good.xml").write_text('<testsuite><testcase name="good" status="run"/></testsuite>')
    assert summarize("--also-failed", "2", tmp_path / "good.xml").stdout.endswith("1 passed, 2 failed\n")
    assert summarize().returncode == 1
