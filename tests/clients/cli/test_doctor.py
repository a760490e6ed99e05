"""`kiln doctor` names the cause of planted problems."""

import contextlib
import os
import pathlib
import socket
import ssl
import subprocess
import threading

import pytest

from certificates import certificate, expired
from kilnd_process import Kilnd, build_folder, free_port

KILN = build_folder() / "clients/cli/kiln"


class Machine:
    """An account with its own folders, and the sentences of its doctor."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run")}

    def doctor(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([KILN, "doctor", *map(str, arguments)], env=self.environment, capture_output=True, text=True)

    def finds(self, verdict: str, subject: str, text: str, *arguments: object) -> None:
        """Checks that the doctor finds this, and that its status tells whether that is a failure."""
        told = self.doctor(*arguments)
        lines = [line.split(maxsplit=1) for line in told.stdout.splitlines()[1:]]
        assert [line for first, line in lines if first == verdict and line.startswith(subject) and text in line], told
        assert told.returncode == (1 if any(first == "FAIL" for first, _ in lines) else 0), told
        assert told.stderr == "", told

    def write_config(self, text: str) -> None:
        path = self.folder / ".config/kiln/config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture(scope="module")
def daemon():
    with Kilnd() as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A daemon with TLS and a user: its certificate and the user's token."""
    folder = tmp_path_factory.mktemp("shared")
    chain, key = certificate(folder)
    with Kilnd(flags=[f"--tls_certificate={chain}", f"--tls_key={key}"]) as running:
        added = subprocess.run([KILN, "user", "add", "ann", "--role", "admin", "--address", running.address],
                               check=True, capture_output=True, text=True)
        yield running, chain, added.stdout.strip()


def test_a_healthy_daemon_has_no_failure(machine, daemon):
    machine.finds("ok", "cpu:0", "healthy", "--address", daemon.address)
    machine.finds("ok", "address", "from --address", "--address", daemon.address)
    machine.finds("ok", "round trip", "(median of 20)", "--address", daemon.address)
    machine.finds("ok", "version", "kilnd 0.", "--address", daemon.address)
    machine.finds("ok", "encryption", "none", "--address", daemon.address)
    machine.environment["KILN_ADDRESS"] = daemon.address
    machine.finds("ok", "address", "from $KILN_ADDRESS")
    assert machine.doctor().returncode == 0


def test_no_daemon(machine):
    machine.finds("FAIL", "answer", "no kilnd answers at 127.0.0.1:", "--address", f"127.0.0.1:{free_port()}")


def test_the_socket_of_a_killed_daemon(machine):
    dead = machine.folder / "dead.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(dead))
    machine.finds("FAIL", "answer", "no kilnd answers at unix:", "--address", dead)


def test_a_malformed_address(machine):
    machine.finds("FAIL", "login", "the port of the address box:99999 is not a number", "--address", "box:99999")
    machine.finds("FAIL", "login", "is a URL; use host:port", "--address", "http://box:7433")


def test_a_malformed_configuration(machine):
    machine.write_config("address = box\n")
    machine.finds("FAIL", "login", "config.toml")


def test_a_socket_that_others_can_replace(machine):
    (machine.folder / "open").mkdir()
    (machine.folder / "open").chmod(0o777)
    machine.finds("FAIL", "login", "may be another account's socket", "--address", machine.folder / "open/kilnd.sock", "--token", "t")


def test_a_token_without_tls(machine):
    machine.finds("FAIL", "login", "only over TLS", "--address", "box.example:7433", "--token", "kiln_x")


def test_no_token(machine, shared):
    running, chain, _ = shared
    machine.finds("FAIL", "login", "KILN_TOKEN", "--address", running.tcp_address, "--ca", chain)


def test_a_revoked_token(machine, shared):
    running, chain, token = shared
    machine.finds("FAIL", "login", "unknown, wrong, expired or revoked", "--address", running.tcp_address, "--ca", chain,
                  "--token", token[:-1] + ("a" if token[-1] != "a" else "b"))


def test_a_token_for_another_daemon_in_the_file(machine, shared):
    running, chain, token = shared
    machine.write_config(f'address = "other:1"\ntoken = "{token}"\n')
    machine.finds("FAIL", "login", "are for other:1, not for", "--address", running.tcp_address, "--ca", chain)


def test_a_good_login_over_tls(machine, shared):
    running, chain, token = shared
    machine.write_config(f'address = "{running.tcp_address}"\nca = "{chain}"\ntoken = "{token}"\n')
    machine.finds("ok", "encryption", "TLS; the certificate is valid until")
    machine.finds("ok", "address", "from ~/.config/kiln/config.toml")


def test_tls_without_an_authority(machine, shared):
    machine.finds("FAIL", "answer", "closed the connection at once", "--address", shared[0].tcp_address)


def test_another_authority(machine, shared):
    other, _ = certificate(machine.folder, "other")
    machine.finds("FAIL", "answer", "not signed by the authority", "--address", shared[0].tcp_address, "--ca", other)


def test_a_certificate_for_another_name(machine, shared):
    running, chain, _ = shared
    machine.finds("FAIL", "answer", "has a certificate for other names", "--address", f"localhost:{running.port}", "--ca", chain)


def test_certificates_that_expire(machine):
    late, late_key = expired(machine.folder)
    with Kilnd(flags=[f"--tls_certificate={late}", f"--tls_key={late_key}"]) as running:
        machine.finds("FAIL", "certificate", f"that of {running.tcp_address} expired on ", "--address", running.tcp_address, "--ca", late)
    soon, soon_key = certificate(machine.folder, "soon", days=2)
    with Kilnd(flags=[f"--tls_certificate={soon}", f"--tls_key={soon_key}"]) as running:
        added = subprocess.run([KILN, "user", "add", "ann", "--role", "admin", "--address", running.address],
                               check=True, capture_output=True, text=True)
        machine.finds("warn", "encryption", "the certificate expires on", "--address", running.tcp_address, "--ca", soon,
                      "--token", added.stdout.strip())


def test_a_server_that_stops_during_the_handshake_ends_the_examination(machine):
    """The doctor looks at a refused certificate by itself, and must not wait forever for a server that then says nothing."""
    chain, key = certificate(machine.folder, "other")
    trusted, _ = certificate(machine.folder, "trusted")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    context.set_alpn_protocols(["h2"])
    silent: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                first, _ = server.accept()
                with contextlib.suppress(OSError), context.wrap_socket(first, server_side=True):
                    pass
                while True:
                    silent.append(server.accept()[0])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        machine.finds("FAIL", "answer", "", "--address", f"127.0.0.1:{server.getsockname()[1]}", "--ca", trusted)
        server.shutdown(socket.SHUT_RDWR)
    thread.join()
    for connection in silent:
        connection.close()


def test_a_token_file_that_others_can_read(machine, daemon):
    machine.write_config('token = "kiln_x"\n')
    (machine.folder / ".config/kiln/config.toml").chmod(0o644)
    machine.finds("warn", "token", "lets others read it; run chmod 600", "--address", daemon.address)


def test_another_accounts_socket_is_skipped(machine):
    """As the Python client does, and says so."""
    folder = machine.folder / "run/kiln"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with socket.socket(socket.AF_UNIX) as trap:
        trap.bind(str(folder / "kilnd.sock"))
        trap.listen()
        trap.setblocking(False)
        machine.finds("warn", "socket", "was skipped, because it may be another account's socket")
        done = subprocess.run([KILN, "devices"], env=machine.environment, capture_output=True, text=True)
        assert f"{folder}/kilnd.sock was skipped" in done.stderr
        # The probe whether a process listens there sends nothing.
        with contextlib.suppress(BlockingIOError):
            while True:
                connection, _ = trap.accept()
                assert connection.recv(1) == b""
                connection.close()


def test_a_drained_device(machine):
    with Kilnd() as running:
        subprocess.run([KILN, "drain", "cpu:0", "--address", running.address], check=True, capture_output=True)
        machine.finds("warn", "cpu:0", "`kiln drain --undo cpu:0` puts it back", "--address", running.address)


def test_a_daemon_that_hangs(machine):
    with Kilnd() as running, running.standing_still():
        machine.finds("FAIL", "answer", "accepts connections", "--address", running.tcp_address)


def test_an_absent_driver_is_explained(machine):
    with Kilnd(devices=None) as running:
        machine.finds("ok", "driver cuda", "not used: ", "--address", running.address)
