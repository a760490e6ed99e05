"""Starts Debian's Prometheus for a test, with deploy/prometheus/prometheus.yml."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator

from eventually import GIVE_UP_SECONDS, eventually
from kilnd_process import ROOT

LISTENS = re.compile(r'"Listening on" address=127\.0\.0\.1:(\d+)\n')


def query(port: int, expression: str) -> list:
    url = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(expression)}"
    with urllib.request.urlopen(url, timeout=GIVE_UP_SECONDS) as answer:
        return json.load(answer)["data"]["result"]


def wait_for(port: int, expression: str, process: subprocess.Popen, accept: Callable[[list], bool]) -> list:
    """Asks Prometheus until the answer is accepted."""
    result = []

    def answers() -> bool:
        with contextlib.suppress(OSError):
            result[:] = query(port, expression)
        return accept(result) or process.poll() is not None

    assert eventually(answers) and accept(result), f"Prometheus has no {expression}: {result}"
    return result


def scrape_configuration(metrics_port: int, folder: pathlib.Path) -> pathlib.Path:
    """deploy/prometheus/prometheus.yml, for this daemon and with little patience."""
    text = (ROOT / "deploy/prometheus/prometheus.yml").read_text()
    text = text.replace("127.0.0.1:7434", f"127.0.0.1:{metrics_port}").replace("scrape_interval: 15s", "scrape_interval: 1s")
    assert str(metrics_port) in text and "scrape_interval: 1s" in text
    file = folder / "prometheus.yml"
    file.write_text(text)
    return file


@contextlib.contextmanager
def prometheus(configuration: pathlib.Path, folder: pathlib.Path) -> Iterator[Callable]:
    """Debian's Prometheus, once it has scraped the daemon. The `with` block gets a function that asks it until there is an
    answer, or one that its second argument accepts."""
    assert shutil.which("prometheus"), "deploy/dependencies --test installs prometheus"
    log = folder / "prometheus.log"
    process = subprocess.Popen(
        ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={folder}/data",
         "--web.listen-address=127.0.0.1:0"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(log, "wb"))
    try:
        assert eventually(lambda: LISTENS.search(log.read_text())), log.read_text()
        port = int(LISTENS.search(log.read_text())[1])
        assert wait_for(port, 'up{job="kiln"} == 1', process, bool)
        yield lambda expression, accept=bool: wait_for(port, expression, process, accept)
    finally:
        process.terminate()
        process.wait(timeout=GIVE_UP_SECONDS)
