"""Packs the built programs as a container image, and trains with the daemon in it, as a container engine would run it."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from eventually import GIVE_UP_SECONDS, eventually  # noqa: E402
from kilnd_process import build_folder  # noqa: E402

USER = 10001


def pack(folder: pathlib.Path, umask: int) -> dict:
    """Packs the image; returns the descriptor of its manifest."""
    done = subprocess.run([HERE / "pack", build_folder(), folder], env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
                          capture_output=True, text=True, umask=umask, cwd=folder.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    (manifest,) = json.loads((folder / "index.json").read_text())["manifests"]
    return manifest


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    """The folder of the image, and the descriptor of its manifest."""
    folder = tmp_path_factory.mktemp("image") / "layout"
    return folder, pack(folder, umask=0o022)


def blob(folder: pathlib.Path, descriptor: dict) -> bytes:
    """A blob whose size and digest are those of its descriptor."""
    content = (folder / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
    assert len(content) == descriptor["size"] and f"sha256:{hashlib.sha256(content).hexdigest()}" == descriptor["digest"]
    return content


@pytest.fixture(scope="module")
def config(layout):
    """The configuration of the image."""
    folder, manifest = layout
    return json.loads(blob(folder, json.loads(blob(folder, manifest))["config"]))


@pytest.fixture(scope="module")
def unpacked(layout, config, tmp_path_factory):
    """A folder with the image's files, with their owners if the test runs as root."""
    folder, manifest = layout
    (layer,) = json.loads(blob(folder, manifest))["layers"]
    blob(folder, layer)
    root = tmp_path_factory.mktemp("root")
    file = folder / "blobs" / layer["digest"].replace(":", "/")
    subprocess.run(["tar", "-xzpf", file, "--numeric-owner", "-C", root], check=True)
    root.chmod(0o755)
    return root


def test_two_builds_have_the_same_digest(layout, tmp_path):
    assert pack(tmp_path / "again", umask=0o077)["digest"] == layout[1]["digest"]


def test_the_configuration_says_how_it_runs(config):
    run = config["config"]
    assert run["User"] == f"{USER}:{USER}" and run["StopSignal"] == "SIGTERM"
    assert run["Entrypoint"] == ["/usr/bin/kilnd", "--config=/etc/kiln/kilnd.toml"]
    version = subprocess.run([build_folder() / "server/kilnd", "--version"], capture_output=True, text=True).stdout.split()[1]
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in run["Labels"].items()}
    assert labels["version"] == version and labels["licenses"] == "Apache-2.0"
    assert labels["created"] == config["created"] == "2023-11-14T22:13:20Z"
    assert re.fullmatch("[0-9a-f]{40}", labels["revision"])


def test_the_layer_has_no_other_program_and_nothing_of_this_machine(layout, config):
    folder, manifest = layout
    (layer,) = json.loads(blob(folder, manifest))["layers"]
    with tarfile.open(folder / "blobs" / layer["digest"].replace(":", "/")) as archive:
        entries = archive.getmembers()
    names = [entry.name for entry in entries]
    assert names == sorted(names)
    assert {entry.mtime for entry in entries} == {1700000000} and {entry.uname + entry.gname for entry in entries} == {""}
    assert {entry.name for entry in entries if entry.isfile() and entry.mode & 0o111} == {
        "usr/bin/kiln", "usr/bin/kilnd", "usr/lib64/ld-linux-x86-64.so.2"}
    assert not [entry.name for entry in entries if entry.mode & 0o6000]
    assert "usr/share/kiln/settings/processors.settings" in names
    assert {entry.name for entry in entries if entry.uid != 0} == {"run/kiln", "var/cache/kiln", "var/lib/kiln"}
    assert sum(entry.size for entry in entries) <= 110_000_000


# Trains for a while, waits for a line, and trains on with the same values.
TRAINING = """
import numpy as np
import kiln
from kiln import nn, optim

model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = optim.Adam(model.parameters(), lr=0.01)

@kiln.jit
def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

points = np.random.default_rng(0).normal(size=(256, 2)).astype(np.float32)
x, y = kiln.tensor(points), kiln.tensor((points[:, 0] * points[:, 1] > 0).astype(np.int64))
first = float(step(x, y))
for _ in range(100):
    middle = float(step(x, y))
print(first, middle, flush=True)
input()
print(float(step(x, y)), flush=True)
for _ in range(200):
    last = float(step(x, y))
print(last, flush=True)
"""


def inside(root: pathlib.Path, data: pathlib.Path, *command: str) -> list:
    """The command that runs one in the image."""
    return ["/usr/bin/unshare", "--mount", "--pid", "--fork", HERE / "inside", root, data, *command]


def environment(config: dict) -> dict[str, str]:
    """The image's environment, and tables that validate themselves, as in all tests."""
    return {"KILN_VALIDATE": "1", **dict(line.split("=", 1) for line in config["config"]["Env"])}


class Container:
    """The daemon of the image, as the first process of its namespace."""

    def __init__(self, root: pathlib.Path, data: pathlib.Path, config: dict):
        self.root, self.environment = root, environment(config)
        self.log = data / "log"
        self.began = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                inside(root, data, *config["config"]["Entrypoint"], "--cpu_threads=2"), env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        assert eventually(lambda: "event=serving" in self.written() or self.process.poll() is not None)
        assert self.process.poll() is None, self.written()

    def written(self) -> str:
        return self.log.read_bytes()[self.began:].decode()

    def pid(self) -> int:
        """The daemon's process id outside."""
        (child,) = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(child)

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """Starts a program beside the daemon, in its namespaces."""
        enter = ["/usr/bin/nsenter", f"--target={self.pid()}", "--mount", "--pid"]
        as_user = ["/usr/sbin/chroot", f"--userspec={USER}:{USER}", f"--groups={USER}", self.root]
        return subprocess.Popen([*enter, *as_user, *command], env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *command: str) -> str:
        """Runs a program as `start` does; returns what it prints."""
        with self.start(*command) as program:
            printed = program.communicate()[0]
        assert program.returncode == 0, printed
        return printed

    def terminate(self) -> int:
        os.kill(self.pid(), signal.SIGTERM)
        return self.process.wait(timeout=GIVE_UP_SECONDS)


@contextlib.contextmanager
def container(root: pathlib.Path, data: pathlib.Path, config: dict) -> Iterator[Container]:
    running = Container(root, data, config)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.terminate()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run what is in an image without a container engine")
def test_a_session_survives_a_new_container(unpacked, config, tmp_path):
    # As Kubernetes mounts volumes: root's, and writable for a group.
    for name in ("run", "cache", "state"):
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, 0, USER)
        (tmp_path / name).chmod(0o2770)
    address = f"unix:{tmp_path}/run/kiln/kilnd.sock"
    client = None
    try:
        with container(unpacked, tmp_path, config) as daemon:
            # Once the daemon serves: a client does not wait for one to be started.
            client = subprocess.Popen([sys.executable, "-c", TRAINING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env={**os.environ, "KILN_ADDRESS": address})
            status = pathlib.Path(f"/proc/{daemon.pid()}/status").read_text()
            assert re.search(rf"^Uid:\t{USER}\t{USER}\t{USER}\t{USER}$", status, re.M)
            assert re.search(r"^CapEff:\t0+$", status, re.M) and re.search(r"^NSpid:\t\d+\t1$", status, re.M)
            first, middle = map(float, client.stdout.readline().split())
            assert daemon.terminate() == 0, daemon.written()
        assert list((tmp_path / "state/kiln/sessions").iterdir())
        client.stdin.write("\n")
        client.stdin.flush()
        with container(unpacked, tmp_path, config) as daemon:
            after, last = float(client.stdout.readline()), float(client.stdout.readline())
            assert "cpu:0" in daemon.run(*config["config"]["Healthcheck"]["Test"][1:])
            assert client.wait(timeout=GIVE_UP_SECONDS) == 0
            # The daemon is the first process of the namespace: what is left there ends with it, `kiln` perhaps before its exit.
            daemon.start("/usr/bin/kiln", "drain").wait(timeout=GIVE_UP_SECONDS)
            assert daemon.process.wait(timeout=GIVE_UP_SECONDS) == 0, daemon.written()
        assert first > middle > last and after < (first + middle) / 2, (first, middle, after, last)
        # Kernels were compiled, which takes worker processes, and are in the mounted folder.
        assert list((tmp_path / "cache/kiln").iterdir())
    finally:
        if client:
            client.kill()
            client.wait()
