"""/metrics as Prometheus sees it."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from eventually import GIVE_UP_SECONDS, eventually
from kilnd_process import ROOT, build_folder

LISTENS = re.compile(r'"Listening on" address=127\.0\.0\.1:(\d+)\n')
WORK = build_folder() / "tests/clients/cpp/client_live_test"


@pytest.fixture(scope="module")
def busy(kilnd):
    """The daemon after enough runs for sampled kernel times to have come."""
    subprocess.run([WORK, "--gtest_filter=*Update*", "--gtest_repeat=40"], env=kilnd.environment(), check=True,
                   capture_output=True, timeout=GIVE_UP_SECONDS)
    return kilnd


def value(metrics: str, name: str) -> float:
    """The sum of a metric's samples over all labels."""
    samples = re.findall(rf"^{name}(?:{{[^}}]*}})? ([0-9.e+-]+)$", metrics, re.MULTILINE)
    assert samples, f"there is no metric {name}"
    return sum(map(float, samples))


def test_promtool_is_content(busy):
    done = subprocess.run(["promtool", "check", "metrics"], input=busy.metrics(), capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout + done.stderr == "", done.stdout + done.stderr


def test_what_was_done_is_counted(busy):
    metrics = busy.metrics()
    assert value(metrics, "kiln_replays_total") >= 200
    assert value(metrics, "kiln_compiles_total") >= 1
    assert value(metrics, "kiln_kernel_duration_seconds_count") >= 1
    assert value(metrics, "kiln_program_duration_seconds_count") >= 1
    # In seconds: one device's kernels take turns, since the daemon was started.
    assert 0 < value(metrics, "kiln_kernel_duration_seconds_sum") < time.monotonic() - busy.started


def test_labels_are_bounded(busy):
    names = {name for labels in re.findall(r"{([^}]*)}", busy.metrics()) for name in re.findall(r"(\w+)=", labels)}
    assert not names & {"session", "session_id", "digest", "handle"}, names


def query(port: int, expression: str) -> list:
    url = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(expression)}"
    with urllib.request.urlopen(url, timeout=GIVE_UP_SECONDS) as answer:
        return json.load(answer)["data"]["result"]


def wait_for(port: int, expression: str, process: subprocess.Popen) -> list:
    """Asks Prometheus until it has an answer."""
    result = []

    def answers() -> bool:
        with contextlib.suppress(OSError):
            result[:] = query(port, expression)
        return bool(result) or process.poll() is not None

    assert eventually(answers) and result, f"Prometheus has no {expression}"
    return result


def scrape_configuration(metrics_port: int, folder: pathlib.Path) -> pathlib.Path:
    """deploy/prometheus/prometheus.yml, for this daemon and with little patience."""
    text = (ROOT / "deploy/prometheus/prometheus.yml").read_text()
    text = text.replace("127.0.0.1:7434", f"127.0.0.1:{metrics_port}").replace("scrape_interval: 15s", "scrape_interval: 1s")
    assert str(metrics_port) in text and "scrape_interval: 1s" in text
    file = folder / "prometheus.yml"
    file.write_text(text)
    return file


def test_deployed_configuration_is_valid():
    done = subprocess.run(["promtool", "check", "config", ROOT / "deploy/prometheus/prometheus.yml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_scrapes_the_kernel_histogram(busy, tmp_path):
    assert shutil.which("prometheus"), "deploy/dependencies --test installs prometheus"
    log = tmp_path / "prometheus.log"
    process = subprocess.Popen(
        ["prometheus", f"--config.file={scrape_configuration(busy.metrics_port, tmp_path)}",
         f"--storage.tsdb.path={tmp_path}/data", "--web.listen-address=127.0.0.1:0"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(log, "wb"))
    try:
        assert eventually(lambda: LISTENS.search(log.read_text())), log.read_text()
        port = int(LISTENS.search(log.read_text())[1])
        assert wait_for(port, 'up{job="kiln"} == 1', process)
        buckets = wait_for(port, "kiln_kernel_duration_seconds_bucket", process)
        assert {"le", "instance"} <= buckets[0]["metric"].keys()
        quantile = wait_for(port, "histogram_quantile(0.5, sum by (le) (kiln_kernel_duration_seconds_bucket)) > 0", process)
        assert float(quantile[0]["value"][1]) > 0
    finally:
        process.terminate()
        process.wait(timeout=GIVE_UP_SECONDS)
