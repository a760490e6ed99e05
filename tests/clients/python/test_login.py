"""Credentials: how the client identifies itself, and to which daemons."""

import os
import subprocess
import sys

import kiln
import numpy as np
import pytest
from kiln._session import connection as _connection
from kiln._session.login import Login, find
from certificates import certificate, expired
from eventually import GIVE_UP_SECONDS
from kilnd_process import Kilnd, build_folder


def test_a_user_trains_over_tls_with_a_token(tmp_path):
    chain, key = certificate(tmp_path)
    program = "import kiln; print((kiln.ones(3) + 1).tolist(), kiln.default_connection().target)"
    with Kilnd(flags=[f"--tls_certificate={chain}", f"--tls_key={key}"]) as daemon:
        command = [str(build_folder() / "clients" / "cli" / "kiln"), "user", "add", "ann", "--address", daemon.address]
        token = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

        # With only the file, as on a laptop.
        home = tmp_path / "home"
        (home / ".config" / "kiln").mkdir(parents=True)
        (home / ".config" / "kiln" / "config.toml").write_text(
            f'address = "{daemon.tcp_address}"\ntoken = "{token}"\nca = "{chain}"\n')
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("KILN_", "XDG_"))}
        environment["HOME"] = str(home)
        answer = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
        assert answer.stdout == f"[2.0, 2.0, 2.0] {daemon.tcp_address}\n", answer.stderr

        try:
            with kiln.connect(daemon.tcp_address, token=token, ca=str(chain)) as connection:
                many = np.ones(2_000_000, np.float32)  # uploads and downloads carry the token, too
                assert (kiln.tensor(many) + 1).numpy().sum() == 4_000_000
                assert connection.programs()
            with pytest.raises(kiln.KilnError, match="KILN_TOKEN"):
                kiln.connect(daemon.tcp_address, ca=str(chain))
            with pytest.raises(kiln.KilnError, match="unknown, wrong, expired or revoked"):
                kiln.connect(daemon.tcp_address, token=token[:-1] + "x", ca=str(chain))
        finally:
            _connection._default = None


def test_mistakes_with_tls_are_told_apart(tmp_path):
    chain, key = certificate(tmp_path)
    other, other_key = certificate(tmp_path, "other")
    late, late_key = expired(tmp_path)

    def says(address, wanted, **login):
        with pytest.raises(kiln.Unavailable) as caught:
            kiln.connect(address, **{name: str(path) for name, path in login.items()})
        assert wanted in str(caught.value) and address in str(caught.value)
        assert "Start one" not in str(caught.value)

    with Kilnd(flags=[f"--tls_certificate={chain}", f"--tls_key={key}", f"--tls_client_ca={chain}"]) as daemon:
        says(daemon.tcp_address, f"not signed by an authority in {other}", ca=other)
        says(daemon.tcp_address, "the list of this machine", ca="system")
        says(f"localhost:{daemon.port}", "for other names than localhost", ca=chain)
        says(daemon.tcp_address, "of a client without TLS at once")
        says(daemon.tcp_address, "--tls_client_ca", ca=chain, certificate=other, key=other_key)
        says(daemon.address, "does not use TLS", ca=chain)
        # The command line reports it in one line.
        command = [build_folder() / "clients" / "cli" / "kiln", "devices", "--address", daemon.tcp_address]
        for more, wanted in (["--ca", other], "not signed by the authority"), ([], "closed the "
                                                                                   "connection at "
                                                                                   "once"):
            told = subprocess.run([*command, *more], capture_output=True, text=True, timeout=GIVE_UP_SECONDS).stderr
            assert told.startswith(f"kiln devices: {daemon.tcp_address} ") and wanted in told
            assert told.count("\n") == 1, told
    with Kilnd(flags=[f"--tls_certificate={late}", f"--tls_key={late_key}"]) as daemon:
        says(daemon.tcp_address, "has expired", ca=late)
    with pytest.raises(kiln.Unavailable, match="Start one"):
        kiln.connect(str(tmp_path / "none.sock"), ca=str(chain))
    with pytest.raises(kiln.InvalidArgument, match=f"{key} has no certificate"):
        kiln.connect("127.0.0.1:1", ca=str(key))


def write(folder, text):
    (folder / "kiln").mkdir(exist_ok=True)
    (folder / "kiln" / "config.toml").write_text(text)
    return {"XDG_CONFIG_HOME": str(folder)}


def test_arguments_then_environment_then_file(tmp_path):
    environment = write(tmp_path, "# mine\naddress = \"box:1\"\ntoken='t3' # secret\n\n  ca = \"/ca.pem\"\n")
    assert find(Login(), environment) == Login("box:1", "t3", "/ca.pem")
    assert find(Login(), dict(environment, KILN_TOKEN="t2")).token == "t2"
    assert find(Login(token="t1"), dict(environment, KILN_TOKEN="t2")).token == "t1"
    assert find(Login(), {}) == Login()


def test_the_files_token_goes_to_its_address_alone(tmp_path):
    environment = write(tmp_path, 'address = "box:1"\ntoken = "t"\nca = "system"\n')
    assert find(Login(address="other:1"), environment).token == ""
    assert find(Login(), dict(environment, KILN_ADDRESS="127.0.0.1:5")).ca == ""
    assert find(Login(address="box:1"), environment).token == "t"
    assert find(Login(address="BOX:1"), environment).token == "t"
    environment = write(tmp_path, 'token = "t"')
    assert find(Login(address="unix:/x"), environment).token == "t"


def test_an_address_of_another_spelling_is_the_same(tmp_path):
    environment = write(tmp_path, 'address = "localhost"\ntoken = "t"\n')
    for address in ("localhost", "localhost:7433", "127.0.0.1", "127.0.0.1:7433", "dns:localhost:7433"):
        assert find(Login(address=address), environment).token == "t", address
    for address in ("localhost:7434", "box", "/localhost:7433"):
        assert find(Login(address=address), environment).token == "", address
    environment = write(tmp_path, 'address = "unix:/run/k.sock"\ntoken = "t"\n')
    assert find(Login(address="/run/k.sock"), environment).token == "t"


def test_who_has_a_token_for_another_address_is_told(tmp_path, monkeypatch):
    chain, key = certificate(tmp_path)
    for name, value in write(tmp_path, f'address = "box"\ntoken = "t"\nca = "{chain}"\n').items():
        monkeypatch.setenv(name, value)
    with Kilnd(flags=[f"--tls_certificate={chain}", f"--tls_key={key}"]) as daemon:
        told = f'The "token" and "ca" in .*config.toml are for box, not for {daemon.tcp_address}'
        with pytest.raises(kiln.Unauthenticated, match=told):
            kiln.connect(daemon.tcp_address, ca=str(chain))
        with pytest.raises(kiln.Unavailable, match=told):
            kiln.connect(daemon.tcp_address)
    with pytest.raises(kiln.InvalidArgument, match=r"only over TLS.* are for box, not for "
                                                    "192\.0\.2\.1:1"):
        kiln.connect("192.0.2.1:1", token="t")


def test_a_token_is_not_sent_unencrypted_over_a_network():
    with pytest.raises(kiln.KilnError, match="only over TLS"):
        kiln.connect("192.0.2.1:7433", token="t")


def test_a_path_of_the_file_may_begin_at_the_home_folder(tmp_path):
    environment = write(tmp_path, "address = '~/k.sock'\nca = '~/box.pem'\ncertificate = '/~/c'\nkey = '~/k'\n"
                                  "token = '~/t'\n")
    assert find(Login(), dict(environment, HOME="/home/ann")) == Login(
        "/home/ann/k.sock", "~/t", "/home/ann/box.pem", "/~/c", "/home/ann/k")


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    path = tmp_path / "kiln" / "config.toml"
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert find(Login(), environment) == Login()
    path.mkdir(parents=True)
    with pytest.raises(kiln.InvalidArgument, match=f"cannot read {path}: Is a directory.*XDG_CONFIG_HOME"):
        find(Login(), environment)
    path.rmdir()
    path.symlink_to(path)  # a loop that no account can read, not even root
    with pytest.raises(kiln.InvalidArgument, match=f"cannot read {path}: Too many levels"):
        find(Login(), environment)


def test_a_file_that_is_not_utf8_is_named(tmp_path):
    environment = write(tmp_path, "")
    path = tmp_path / "kiln" / "config.toml"
    path.write_bytes(b"# mine\ntoken = \"\xfc\"\n")
    with pytest.raises(kiln.InvalidArgument, match=f"{path}:2: this is not UTF-8"):
        find(Login(), environment)


def test_a_file_that_has_no_end_or_too_much_is_refused(tmp_path):
    environment = write(tmp_path, "#" * 65536)
    assert find(Login(), environment) == Login()
    write(tmp_path, "#" * 65537)
    path = tmp_path / "kiln" / "config.toml"
    with pytest.raises(kiln.InvalidArgument, match=f"cannot read {path}: It is larger than 64 KiB"):
        find(Login(), environment)
    path.unlink()
    path.symlink_to("/dev/null")
    with pytest.raises(kiln.InvalidArgument, match=f"cannot read {path}: Not a regular file"):
        find(Login(), environment)


@pytest.mark.parametrize("text", ["token", "\ntoken = x", 'token = "x', 'token = "x" y', 'tokken = "x"',
                                  'token = "a b"', 'key = "/k"'])
def test_mistakes_are_named(tmp_path, text):
    with pytest.raises(kiln.KilnError):
        find(Login(), write(tmp_path, text))
