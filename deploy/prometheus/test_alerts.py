"""The alerts fire when they should, and use metrics that the daemon has."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from certificates import certificate  # noqa: E402
from kilnd_process import Kilnd, program  # noqa: E402

RULES = yaml.safe_load((HERE / "alerts.yml").read_text())["groups"]
ALERTS = {rule["alert"]: rule for group in RULES for rule in group["rules"]}
CASES = yaml.safe_load((HERE / "alerts_test.yml").read_text())


def promtool(*arguments, folder=HERE) -> str:
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def metrics_of(rule: dict) -> set[str]:
    """The families that an alert's expression uses."""
    return {re.sub("_(bucket|sum|count)$", "", metric) for metric in re.findall(r"\bkiln_\w+", rule["expr"])}


def test_promtool_accepts_the_rules():
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", "alerts.yml")


def test_each_alert_fires_on_its_cause(tmp_path):
    assert not [name for name, alert in ALERTS.items() if "{{" in alert["annotations"].pop("description")]
    (tmp_path / "alerts.yml").write_text(yaml.safe_dump({"groups": RULES}))
    (tmp_path / "alerts_test.yml").write_text((HERE / "alerts_test.yml").read_text())
    promtool("test", "rules", "alerts_test.yml", folder=tmp_path)


@pytest.mark.parametrize("fires", [True, False])
def test_each_alert_has_a_case(fires):
    cases = [case for test in CASES["tests"] for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if bool(case["exp_alerts"]) == fires} == ALERTS.keys()


def test_the_daemon_has_the_metrics(tmp_path):
    with Kilnd(threads=1) as daemon:
        # The family of errors appears with the first one.
        refused = {"KILN_ADDRESS": daemon.tcp_address, "KILN_TOKEN": "kiln_wrong"}
        failed = subprocess.run([program("clients/cli/kiln"), "devices"], env={**os.environ, **refused}, capture_output=True)
        assert failed.returncode != 0
        families = set(re.findall(r"^# TYPE (\w+) ", daemon.metrics(), re.M))
    chain, key = certificate(tmp_path)
    with Kilnd(threads=1, flags=[f"--tls_certificate={chain}", f"--tls_key={key}", "--metrics_plain_http"]) as daemon:
        families |= set(re.findall(r"^# TYPE (\w+) ", daemon.metrics(), re.M))
    for name, alert in ALERTS.items():
        used = metrics_of(alert)
        assert used <= families and (used or "up{" in alert["expr"]), (name, used - families)


def test_the_document_says_what_to_do():
    assert set(re.findall(r"^\| `(\w+)`", (HERE / "README.md").read_text(), re.M)) == ALERTS.keys()
