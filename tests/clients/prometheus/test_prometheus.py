"""/metrics as Prometheus sees it."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

from eventually import GIVE_UP_SECONDS
from kilnd_process import NO_PROBES, ROOT, Kilnd, build_folder
from prometheus_process import prometheus, scrape_configuration

WORK = build_folder() / "tests/clients/cpp/client_live_test"
KILN = build_folder() / "clients/cli/kiln"
MIXED_LOAD = pathlib.Path(__file__).with_name("mixed_load.py")


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
    assert 0 < value(metrics, "kiln_kernel_device_seconds_total") < time.monotonic() - busy.started


def test_labels_are_bounded(busy):
    names = {name for labels in re.findall(r"{([^}]*)}", busy.metrics()) for name in re.findall(r"(\w+)=", labels)}
    assert not names & {"session", "session_id", "digest", "handle"}, names


def test_deployed_configuration_is_valid():
    done = subprocess.run(["promtool", "check", "config", ROOT / "deploy/prometheus/prometheus.yml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_scrapes_the_kernel_histogram(busy, tmp_path):
    with prometheus(scrape_configuration(busy.metrics_port, tmp_path), tmp_path) as ask:
        buckets = ask("kiln_kernel_duration_seconds_bucket")
        assert {"le", "instance"} <= buckets[0]["metric"].keys()
        quantile = ask("histogram_quantile(0.5, sum by (le) (kiln_kernel_duration_seconds_bucket)) > 0")
        assert float(quantile[0]["value"][1]) > 0


# By user, as mixed_load.py takes them: programs that are sampled twice and often, short and long, on one and two devices.
LOADS = {"ann": ["2:256", "150:32", "20:128:2"], "bob": ["400:16"], "carl": ["70:192:2", "3:64"]}


def as_password(configuration: pathlib.Path, token: str) -> pathlib.Path:
    """The configuration with the token that its comment speaks of."""
    secret = configuration.parent / "token"
    secret.write_text(token)
    text = configuration.read_text().replace("# basic_auth:", "basic_auth:").replace("#   username:", "  username:")
    configuration.write_text(re.sub(r"#   password_file: .*", f"  password_file: {secret}", text))
    return configuration


def test_kernels_take_the_time_that_programs_take(tmp_path):
    def add_user(*arguments: str) -> str:
        return subprocess.run([KILN, "user", "add", *arguments, "--address", daemon.address], check=True, capture_output=True,
                              text=True).stdout.strip()

    with Kilnd(threads=2, flags=["--cpu_devices=2"], config=NO_PROBES) as daemon:
        reader = add_user("prometheus", "--role=viewer")
        clients = [subprocess.Popen([sys.executable, MIXED_LOAD, daemon.tcp_address, add_user(user), *loads],
                                    env=dict(os.environ, PYTHONPATH=str(ROOT / "clients/python")))
                   for user, loads in LOADS.items()]
        assert [client.wait(timeout=GIVE_UP_SECONDS) for client in clients] == [0] * len(clients)
        configuration = as_password(scrape_configuration(daemon.metrics_port, tmp_path), reader)
        with prometheus(configuration, tmp_path) as ask:
            for labels in "", "user", "device", "user, device, program":
                kernels, programs = (f"sum by ({labels}) ({name})" for name in
                                     ("kiln_kernel_device_seconds_total", "kiln_program_duration_seconds_sum"))
                for sample in ask(f"{kernels} / {programs}"):
                    assert 0.9 < float(sample["value"][1]) < 1.1, (labels, sample)
            # The time that fair shares are based on is counted elsewhere.
            users = ask("sum by (user) (kiln_kernel_device_seconds_total) / sum by (user) (kiln_user_device_seconds_total)")
            assert {sample["metric"]["user"] for sample in users} >= LOADS.keys()
            for sample in users:
                assert 0.9 < float(sample["value"][1]) < 1.1, sample
            # Kernels of every user on every device where the user ran, though few of the runs were timed.
            def where(expression: str) -> set:
                series = [sample["metric"] for sample in ask(f"sum by (user, device) ({expression}) > 0")]
                return {(labels["user"], labels["device"]) for labels in series}

            ran = where("kiln_program_duration_seconds_sum")
            assert ran >= {(user, device) for user in ("ann", "carl") for device in ("cpu:0", "cpu:1")}
            assert where('kiln_kernel_device_seconds_total{kernel!="outside_kernels"}') == ran

        programs = json.loads(subprocess.run([KILN, "programs", "--json", "--address", daemon.address], check=True,
                                             capture_output=True, text=True).stdout)["programs"]
        assert [["cpu:0", "cpu:1"]] * 2 == [program["devices"] for program in programs if len(program["devices"]) > 1]
