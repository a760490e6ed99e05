"""A laptop with only the Python client, an address, a token and a CA file trains on a server.

Both are network namespaces connected by a virtual cable, so neither reaches the other's loopback.
"""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from eventually import eventually
from kilnd_process import build_folder

BOX, LAPTOP = "10.205.0.1", "10.205.0.2"
PROGRAM = """
import kiln
import numpy as np
from kiln import nn

points = np.random.default_rng(0).uniform(-1, 1, (4096, 2)).astype(np.float32)
inside = (points[:, 0] ** 2 + points[:, 1] ** 2 < 0.5).astype(np.int64)
kiln.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = kiln.optim.Adam(model.parameters(), lr=0.02)

@kiln.jit
def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

for _ in range(300):
    loss = step(kiln.tensor(points), kiln.tensor(inside))
print(kiln.default_connection().target, loss.item())
"""


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@pytest.fixture
def machines():
    """Returns command prefixes that run a command on the server, and on the laptop."""
    box, laptop = (f"kiln-{name}-{os.getpid()}" for name in ("box", "laptop"))
    with contextlib.ExitStack() as cleanup:
        for name in (box, laptop):
            try:
                ip("netns", "add", name)
            except (OSError, subprocess.CalledProcessError) as error:
                pytest.skip(f"this system makes no network namespaces: {getattr(error, 'stderr', error)}")
            cleanup.callback(ip, "netns", "delete", name)
        ip("-n", box, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", laptop)
        for name, address in ((box, BOX), (laptop, LAPTOP)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield ["ip", "netns", "exec", box], ["ip", "netns", "exec", laptop]


@contextlib.contextmanager
def kilnd(command, folder, *flags):
    """Returns the address of its Unix socket, once it serves."""
    address = f"unix:{folder}/kilnd.sock"
    with open(folder / "log", "ab") as log:
        start = log.tell()
        daemon = subprocess.Popen(
            [*command, str(build_folder() / "server" / "kilnd"), f"--cache_dir={folder}/cache", "--metrics_listen=",
             "--idle_tuning=false", f"--state_dir={folder}/state", f"--listen={','.join([address, *flags[:1]])}",
             *flags[1:]],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        def serves():
            return b"event=serving" in (folder / "log").read_bytes()[start:]

        assert eventually(lambda: serves() or daemon.poll() is not None)
        assert serves(), (folder / "log").read_text(errors="replace")
        yield address
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()


def test_a_second_machine_trains(machines, tmp_path):
    box, laptop = machines
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=box", "-addext", f"subjectAltName=IP:{BOX}", "-out", tmp_path / "box.pem",
         "-keyout", tmp_path / "box.key"], check=True, capture_output=True)
    with kilnd(box, tmp_path) as address:  # to listen beyond loopback it needs a user first
        added = subprocess.run([str(build_folder() / "clients/cli/kiln"), "user", "add", "ann", "--address", address],
                               check=True, capture_output=True, text=True)
    home = tmp_path / "laptop"
    (home / ".config/kiln").mkdir(parents=True)
    (home / ".config/kiln/config.toml").write_text(
        f'address = "{BOX}:7433"\ntoken = "{added.stdout.strip()}"\nca = "{tmp_path}/box.pem"\n')

    def train(**variables):
        return subprocess.run(
            [*laptop, sys.executable, "-I", "-c", PROGRAM], cwd=home, timeout=300, capture_output=True, text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(home), **variables})

    with kilnd(box, tmp_path, f"{BOX}:7433", f"--tls_certificate={tmp_path}/box.pem",
               f"--tls_key={tmp_path}/box.key"):
        trained = train()
        assert trained.returncode == 0, trained.stderr
        target, loss = trained.stdout.split()
        assert target == f"{BOX}:7433"
        assert float(loss) < 0.1
        refused = train(KILN_TOKEN="kiln_0_0")
        assert refused.returncode != 0
        assert "unknown, wrong, expired or revoked" in refused.stderr
