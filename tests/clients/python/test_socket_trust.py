"""Sockets that another account may have put where a client looks for its daemon's socket."""

import contextlib
import os
import socket
import warnings

import pytest

import kiln
from kiln._session.socket_trust import why_distrusted

ME, SERVICE, STRANGER = 4001, 4002, 4003

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to other accounts")


@pytest.fixture
def place(tmp_path):
    """Makes folders, links and files (path, owner, mode or target) in the test's folder."""
    # pytest's folders belong to this account; those above /tmp's belong to root.
    def make(*entries):
        for path, owner, what in entries:
            at = tmp_path / path
            if isinstance(what, str):
                at.symlink_to(tmp_path / what)
            elif what is None:
                at.touch()
            else:
                at.mkdir()
                at.chmod(what)
            os.chown(at, owner, owner, follow_symlinks=False)
        return str(tmp_path / entries[-1][0])
    return make


@pytest.mark.parametrize("entries", [
    [("kiln", ME, 0o700), ("kiln/s", ME, None)],
    [("kiln", SERVICE, 0o755), ("kiln/s", SERVICE, None)],  # root gave the service its folder
    [("tmp", 0, 0o1777), ("tmp/kiln", ME, 0o700), ("tmp/kiln/s", ME, None)],
    [("tmp", 0, 0o1777), ("tmp/kiln", 0, 0o755), ("tmp/kiln/s", SERVICE, None)],
    [("kiln", ME, 0o700), ("kiln/s", ME, None), ("tmp", 0, 0o1777), ("tmp/link", ME, "kiln/s")],
    [("kiln", ME, 0o700), ("nothing", ME, "kiln/nothing")],
])
def test_trusted(place, entries):
    assert why_distrusted(place(*entries), ME) is None


@pytest.mark.parametrize("entries, why", [
    ([("tmp", 0, 0o1777), ("tmp/kiln", STRANGER, 0o700), ("tmp/kiln/s", STRANGER, None)],
     f"tmp/kiln belongs to the account with the number {STRANGER}"),
    # The stranger cannot make the socket look like this account's own either.
    ([("tmp", 0, 0o1777), ("tmp/kiln", STRANGER, 0o777), ("tmp/kiln/s", ME, None)], f"number {STRANGER}"),
    ([("kiln", ME, 0o777), ("kiln/s", ME, None)], "other accounts can replace files in"),
    ([("kiln", ME, 0o770), ("kiln/s", ME, None)], "other accounts can replace files in"),
    ([("kiln", 0, 0o1777), ("kiln/s", STRANGER, None)], "other accounts can replace files in"),
    # Whenever the daemon stops, its socket is gone.
    ([("kiln", 0, 0o1777), ("kiln/s", ME, None)], "other accounts can replace files in"),
    ([("tmp", 0, 0o1777), ("link", 0, "tmp/not_there")], "tmp/not_there, which does not exist"),
    # A link whose target the stranger can change after it was checked.
    ([("kiln", ME, 0o700), ("kiln/s", ME, None), ("tmp", 0, 0o1777), ("tmp/link", STRANGER, "kiln/s")],
     f"tmp/link belongs to the account with the number {STRANGER}"),
    ([("tmp", 0, 0o1777), ("tmp/kiln", STRANGER, 0o700), ("tmp/kiln/s", STRANGER, None), ("kiln", ME, 0o700),
      ("kiln/link", ME, "tmp/kiln/s")], f"tmp/kiln belongs to the account with the number {STRANGER}"),
])
def test_not_trusted(place, entries, why):
    assert why in why_distrusted(place(*entries), ME)


def test_a_token_is_not_sent_to_another_accounts_socket(place, tmp_path):
    folder = place(("tmp", 0, 0o1777), ("tmp/kiln", STRANGER, 0o755))
    with socket.socket(socket.AF_UNIX) as trap:
        trap.bind(f"{folder}/kilnd.sock")
        trap.listen()
        trap.setblocking(False)
        with pytest.raises(kiln.PermissionDenied, match="may be another account's socket") as caught:
            kiln.connect(f"unix:{folder}/kilnd.sock", token="kiln_secret")
        assert caught.value.reason == "UNTRUSTED_SOCKET"
        with pytest.raises(BlockingIOError):
            trap.accept()


def test_a_socket_that_the_client_finds_by_itself_must_be_trusted(place, monkeypatch):
    folder = place(("tmp", 0, 0o1777), ("tmp/kiln", STRANGER, 0o755))
    with socket.socket(socket.AF_UNIX) as trap:
        trap.bind(f"{folder}/kilnd.sock")
        trap.listen()
        monkeypatch.delenv("KILN_ADDRESS", raising=False)
        monkeypatch.setenv("XDG_CONFIG_HOME", folder)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(os.path.dirname(folder)))
        trap.setblocking(False)
        # Succeeds only if a daemon listens at the port that is tried next.
        with contextlib.suppress(kiln.KilnError), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            kiln.connect().close()
        with pytest.raises(kiln.KilnError, match=r"no socket of a kilnd was found, .* KILN_ADDRESS=127\.0\.0\.1:7433"
                           r".*may be another account's socket"):
            kiln.connect(token="kiln_secret")
        with pytest.raises(BlockingIOError):
            trap.accept()


def test_a_skipped_socket_is_named(place, monkeypatch, kilnd):
    folder = place(("tmp", 0, 0o1777), ("tmp/kiln", STRANGER, 0o755))
    monkeypatch.delenv("KILN_ADDRESS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", folder)
    monkeypatch.setattr("kiln._session.connection.candidates", lambda *_: [f"unix:{folder}/kilnd.sock", kilnd.address])
    with socket.socket(socket.AF_UNIX) as trap:
        trap.bind(f"{folder}/kilnd.sock")
        trap.listen()
        with pytest.warns(RuntimeWarning, match=f"{folder}/kilnd.sock may be another account's socket"):
            kiln.connect().close()
