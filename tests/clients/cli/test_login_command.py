"""`kiln login` keeps a login that the daemon accepts, and all clients use it."""

import os
import pathlib
import stat
import subprocess
import sys

import pytest

from certificates import certificate
from eventually import GIVE_UP_SECONDS
from kilnd_process import ROOT, Kilnd, build_folder

KILN = build_folder() / "clients/cli/kiln"
CPP_CLIENT = build_folder() / "tests/clients/cpp/client_live_test"


class Account:
    """A home folder, and commands that run there."""

    def __init__(self, home: pathlib.Path):
        self.home = home
        self.file = home / ".config/kiln/config.toml"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run")}

    def run(self, *command: object, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run([*map(str, command)], env=self.environment, input=stdin, capture_output=True, text=True,
                              timeout=GIVE_UP_SECONDS)

    def output(self, *command: object, stdin: str = "") -> str:
        done = self.run(*command, stdin=stdin)
        assert done.returncode == 0, done
        return done.stdout


@pytest.fixture
def account(tmp_path):
    return Account(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A daemon with TLS and a user: its certificate and the user's token."""
    chain, key = certificate(tmp_path_factory.mktemp("shared"))
    with Kilnd(flags=[f"--tls_certificate={chain}", f"--tls_key={key}"]) as running:
        added = subprocess.run([KILN, "user", "add", "ann", "--role", "admin", "--address", running.address],
                               check=True, capture_output=True, text=True)
        yield running, chain, added.stdout.strip()


def test_a_login_is_kept_and_used_by_all_clients(account, shared):
    running, chain, token = shared
    said = account.output(KILN, "login", running.tcp_address, "--ca", chain, stdin=token + "\n")
    assert f"at {running.tcp_address} accepts the token; the login is in {account.file}" in said
    assert token not in said
    assert stat.S_IMODE(account.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(account.file.parent.stat().st_mode) == 0o700
    assert "cpu:0" in account.output(KILN, "devices")
    program = "import kiln; print(float((kiln.ones(3) * 2).sum().numpy()))"
    account.environment["PYTHONPATH"] = str(ROOT / "clients/python")
    assert account.output(sys.executable, "-c", program) == "6.0\n"
    assert "PASSED" in account.output(CPP_CLIENT, "--gtest_filter=*SumOfSquares")


def test_a_refused_login_is_not_kept(account, shared):
    running, chain, token = shared
    account.output(KILN, "login", running.tcp_address, "--ca", chain, "--token", token)
    before = account.file.read_text()
    wrong = token[:-1] + ("a" if token[-1] != "a" else "b")
    refused = account.run(KILN, "login", running.tcp_address, "--ca", chain, "--token", wrong)
    assert refused.returncode == 1 and "Nothing was stored" in refused.stderr
    assert account.file.read_text() == before
    away = account.run(KILN, "login", "127.0.0.1:1", "--token", token)
    assert away.returncode == 1 and "Nothing was stored" in away.stderr
    assert account.file.read_text() == before


def test_a_login_does_not_take_values_from_elsewhere(account, shared):
    running, chain, token = shared
    account.environment["KILN_TOKEN"] = token
    refused = account.run(KILN, "login", running.tcp_address, "--ca", chain, stdin="\n")
    assert refused.returncode == 1 and not account.file.exists()
    done = account.run(KILN, "login", running.tcp_address, "--ca", chain, stdin=token)
    assert done.returncode == 0 and "$KILN_TOKEN is set, and clients use it instead" in done.stderr


def test_arguments_then_environment_then_file(account, shared, tmp_path):
    running, chain, token = shared
    account.output(KILN, "login", running.tcp_address, "--ca", chain, "--token", token)
    assert running.tcp_address in account.output(KILN, "version")
    with Kilnd() as other:
        account.environment["KILN_ADDRESS"] = other.address
        assert other.address in account.output(KILN, "version")
        assert running.address in account.output(KILN, "version", "--address", running.address)


def test_logout_removes_the_secret_and_keeps_the_address(account, shared):
    running, chain, token = shared
    assert account.output(KILN, "logout") == "there was no login\n"
    account.output(KILN, "login", running.tcp_address, "--ca", chain, "--token", token)
    assert "removed the login" in account.output(KILN, "logout")
    text = account.file.read_text()
    assert token not in text and running.tcp_address in text
    assert stat.S_IMODE(account.file.stat().st_mode) == 0o600
    assert account.run(KILN, "devices").returncode == 1


def test_usage(account):
    assert account.run(KILN, "login", "a:1", "b:2").returncode == 2
    assert account.run(KILN, "login", "http://a:1").returncode == 2
    assert account.run(KILN, "logout", "now").returncode == 2
