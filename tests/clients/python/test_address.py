"""The addresses where the client looks for a daemon."""

import pytest

import kiln
from kiln._session.address import candidates, check, is_local, normalize


def test_an_explicit_address_is_the_only_one():
    assert candidates("box:9000", {"KILN_ADDRESS": "other:1"}, 7) == ["box:9000"]
    assert candidates(None, {"KILN_ADDRESS": "other:1"}, 7) == ["other:1"]


def test_without_one_the_local_sockets_come_before_the_loopback_port():
    environment = {"XDG_RUNTIME_DIR": "/run/user/7"}
    sockets = ["/run/user/7/kiln/kilnd.sock", "/tmp/kiln-7/kilnd.sock", "/run/kiln/kilnd.sock"]
    assert candidates(None, environment, 7, lambda path: False) == ["127.0.0.1:7433"]
    assert candidates(None, environment, 7, lambda path: True) == [
        *(f"unix:{path}" for path in sockets), "127.0.0.1:7433"]
    for path in sockets:
        assert candidates(None, environment, 7, path.__eq__) == [f"unix:{path}", "127.0.0.1:7433"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("box", "box:7433"), ("box:1", "box:1"), ("/run/kilnd.sock", "unix:/run/kilnd.sock"),
        ("unix:/a", "unix:/a"), ("[::1]", "[::1]:7433"), ("[::1]:2", "[::1]:2"),
    ],
)  # fmt: skip
def test_addresses_become_grpc_targets(given, wanted):
    assert normalize(given) == wanted


def test_mistakes_are_named():
    for good in ("box", "box:1", "box:65535", "[::1]", "[::1]:2", "dns:box:3", "dns:box", "unix:/a:b", "unix:///a",
                 "/a://b", "dns:///box:7433", "./a"):
        check(good)
    for bad in ("localhost:99999", "box:65536", "box:0", "box:", "box:http", "box:-1", "box:+1", "[::1]:70000",
                "dns:box:99999", "dns:///box:0"):
        with pytest.raises(kiln.InvalidArgument) as caught:
            check(bad)
        assert f"the port of the address {bad} is not a number from 1 to 65535" in str(caught.value)
    with pytest.raises(kiln.InvalidArgument, match=r"host:port or unix:/path, without http://"):
        kiln.connect("http://localhost:17433")


def test_local_targets_are_known():
    # This spelling marks a tunnel that leads to another machine.
    assert not is_local("dns:localhost:7433")
    assert is_local("unix:/a") and is_local("127.0.0.1:7433") and not is_local("box:7433")


def test_when_nothing_answers_the_error_says_what_to_do(tmp_path):
    with pytest.raises(kiln.Unavailable) as caught:
        kiln.connect(str(tmp_path / "none.sock"))
    assert "kilnd" in str(caught.value) and "KILN_ADDRESS" in str(caught.value)
    assert "none.sock" in str(caught.value)
