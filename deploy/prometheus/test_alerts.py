"""The alerts fire when they should, and use metrics that the daemon has."""

import pathlib
import re
import subprocess

import pytest
import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RULES = yaml.safe_load((HERE / "alerts.yml").read_text())["groups"]
ALERTS = {rule["alert"]: rule for group in RULES for rule in group["rules"]}
CASES = yaml.safe_load((HERE / "alerts_test.yml").read_text())


def promtool(*arguments, folder=HERE) -> str:
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def documented_metrics() -> set[str]:
    """The names in the table of server/metrics/README.md."""
    names: set[str] = set()
    for row in re.findall(r"^\| (`kiln_[^|]*)\|", (ROOT / "server/metrics/README.md").read_text(), re.M):
        found = re.findall(r"`(\w+|…\w+)`", row)
        # `a_hits_total`, `…_misses_total` share their beginning.
        names |= {re.sub(r"_hits_total$", "", found[0]) + name[1:] if name.startswith("…") else name for name in found}
    return names


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


def test_the_daemon_has_the_metrics():
    metrics = documented_metrics()
    assert {"kiln_kernel_cache_misses_total", "kiln_device_memory_limit_bytes"} <= metrics
    for name, alert in ALERTS.items():
        used = {re.sub("_(bucket|sum|count)$", "", metric) for metric in re.findall(r"\bkiln_\w+", alert["expr"])}
        assert used <= metrics and (used or "up{" in alert["expr"]), name


def test_the_document_says_what_to_do():
    assert set(re.findall(r"^\| `(\w+)`", (HERE / "README.md").read_text(), re.M)) == ALERTS.keys()
