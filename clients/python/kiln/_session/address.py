"""Addresses of daemons."""

import os
from typing import Callable, List, Mapping, Optional

from kiln._basics.errors import InvalidArgument

DEFAULT_PORT = 7433
_SYSTEM_SOCKET = "/run/kiln/kilnd.sock"  # of a daemon that the system started


def candidates(address: Optional[str], environment: Mapping[str, str], uid: int,
               exists: Callable[[str], bool] = os.path.exists) -> List[str]:
    """Returns gRPC targets to try, in order.

    An explicit address or $KILN_ADDRESS is the only one; otherwise the local sockets that exist,
    then the loopback port. A path means a Unix socket; a host without a port gets the default port.
    """
    explicit = address or environment.get("KILN_ADDRESS")
    if explicit:
        return [normalize(explicit)]
    folder = environment.get("XDG_RUNTIME_DIR")
    sockets = [f"{folder}/kiln/kilnd.sock"] if folder else []
    sockets += [f"/tmp/kiln-{uid}/kilnd.sock", _SYSTEM_SOCKET]
    found = [f"unix:{path}" for path in sockets if exists(path)]
    return [*found, f"127.0.0.1:{DEFAULT_PORT}"]


def normalize(address: str) -> str:
    """Returns `address` as a gRPC target."""
    if address.startswith(("unix:", "dns:", "ipv4:", "ipv6:")):
        return address
    if "/" in address:
        return f"unix:{os.path.abspath(address)}"
    # An IPv6 address has colons of its own, within brackets.
    host_has_port = ":" in address.rpartition("]")[2]
    return address if host_has_port else f"{address}:{DEFAULT_PORT}"


def check(address: str) -> None:
    """Raises InvalidArgument for a URL such as http://box:7433, and for an invalid port."""
    target = _canonical(address)
    scheme, separator, _ = address.partition("://")
    if separator and "/" not in scheme and normalize(address).startswith("unix:") and (
            scheme != "unix"):
        raise InvalidArgument(
            f"the address {address} is a URL; use host:port or unix:/path, without "
            f"{scheme}://")
    if target.startswith("unix:"):
        return
    port = target.rpartition(":")[2]
    # gRPC would read 99999 as 34463.
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65535):
        raise InvalidArgument(
            f"the port of the address {address} is not a number from 1 to 65535")


def is_same(one: str, other: str) -> bool:
    """Returns whether both are one address. A port may be missing; localhost is 127.0.0.1."""
    return _canonical(one) == _canonical(other)


def _canonical(address: str) -> str:
    target = normalize(address)
    if target.startswith("unix:"):
        return target.replace("unix:///", "unix:/", 1)
    for scheme in ("dns:///", "dns:", "ipv4:"):
        if target.startswith(scheme):
            target = normalize(target[len(scheme):])
    host, _, port = target.lower().rpartition(":")
    return f"{'127.0.0.1' if host == 'localhost' else host}:{port}"


def is_local(target: str) -> bool:
    """Returns whether data sent to `target` stays on this machine."""
    if target.startswith("127."):
        # A host name may begin like a number: 127.0.0.1.example.org.
        return not target.rpartition(":")[0].strip("0123456789.")
    return target.startswith(("unix:", "localhost:", "[::1]"))
