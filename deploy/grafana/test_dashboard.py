"""The dashboard is what its generator writes, and each of its expressions has a value beside a training."""

import itertools
import json
import math
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from eventually import GIVE_UP_SECONDS  # noqa: E402
from kilnd_process import Kilnd  # noqa: E402
from prometheus_process import prometheus, scrape_configuration  # noqa: E402

DASHBOARD = json.loads((HERE / "kiln.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
# As Grafana would replace them, with windows as short as the scrapes' interval here.
CHOSEN = {"$job": "kiln", "$instance": ".*", "$device": ".*", "$__rate_interval": "15s", "$__range": "1h"}


def test_it_is_up_to_date(tmp_path):
    subprocess.run([sys.executable, HERE / "generate", tmp_path / "kiln.json"], check=True)
    assert (tmp_path / "kiln.json").read_text() == (HERE / "kiln.json").read_text(), "run deploy/grafana/generate"


def test_panels_have_their_places():
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"], panel["gridPos"]["w"], panel["gridPos"]["h"])
              for panel in DASHBOARD["panels"]]
    for (x, y, w, h), (x2, y2, w2, h2) in itertools.combinations(places, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y, (x, y, x2, y2)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(places)


def expressions() -> list[str]:
    """Every expression of the dashboard, with its variables replaced."""
    found = [target["expr"] for panel in PANELS for target in panel["targets"]]
    for name, value in CHOSEN.items():
        found = [expression.replace(name, value) for expression in found]
    assert not [expression for expression in found if "$" in expression]
    return found


def label_values() -> list[str]:
    """The expressions from whose series Grafana takes the values of the dashboard's variables."""
    queries = [variable["query"] for variable in DASHBOARD["templating"]["list"] if variable["type"] == "query"]
    series = [text.removeprefix("label_values(").rpartition(",")[0] for text in queries]
    return [text.replace("$job", "kiln").replace("$instance", ".*") for text in series]


def are_finite(samples: list) -> bool:
    """Returns True if there are samples, and all are numbers."""
    values = [float(sample["value"][1]) for sample in samples]
    return bool(values) and all(map(math.isfinite, values))


def test_each_expression_has_a_value_beside_a_training(tmp_path):
    asked = [*expressions(), *label_values()]
    assert len(asked) > 40
    with Kilnd(threads=1) as daemon, prometheus(scrape_configuration(daemon.metrics_port, tmp_path), tmp_path) as ask:
        client = subprocess.Popen([sys.executable, HERE / "training.py"], stdin=subprocess.PIPE, env=daemon.environment())
        try:
            for expression in asked:
                ask(expression, are_finite)
        finally:
            client.stdin.close()
            assert client.wait(timeout=GIVE_UP_SECONDS) == 0
