"""Credentials that identify the caller to the daemon, and the daemon to the client."""

import errno
import os
import stat
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import grpc

from kiln._basics.errors import InvalidArgument
from kiln._session.address import check, is_local, is_same
from kiln._session.socket_trust import require_trusted

_VARIABLES = {
    "address": "KILN_ADDRESS",
    "token": "KILN_TOKEN",
    "ca": "KILN_CA",
    "certificate": "KILN_CERTIFICATE",
    "key": "KILN_KEY",
}

_FILE_BYTES_MAX = 64 << 10
_PEM_BYTES_MAX = 4 << 20  # the authorities of a whole machine have about 200 KiB
# Appended to the reason why the file cannot be read.
_REMEDY = ". Make it readable, or name another folder in $XDG_CONFIG_HOME"


class Login(NamedTuple):
    """An address and credentials; "" means not set. The last three are paths of PEM files."""

    address: str = ""
    token: str = ""
    ca: str = ""  # "system": the authorities that this machine knows
    certificate: str = ""
    key: str = ""
    # A sentence on what the file has for another address; "" if nothing.
    elsewhere: str = ""


def find(given: Login, environment: Mapping[str, str]) -> Login:
    """Takes each value from `given`, else the environment, else ~/.config/kiln/config.toml.

    If the file has an address, its values are used only for that address: a token must not go to
    another daemon.
    """
    said = {name: getattr(given, name) or environment.get(variable, "")
            for name, variable in _VARIABLES.items()}
    path = _path(environment)
    # As in a shell, a leading "~/" is the home folder.
    file = {name: environment["HOME"] + value[1:] if (
                name != "token" and value.startswith("~/") and environment.get("HOME")) else value
            for name, value in _read(path).items()}
    elsewhere = ""
    if not said["address"] or is_same(file.get("address", said["address"]), said["address"]):
        said = {name: value or file.get(name, "") for name, value in said.items()}
    elif len(file) > 1:
        names = " and ".join(f'"{name}"' for name in file if name != "address")
        elsewhere = f"The {names} in {path} are for {file['address']}, not for {said['address']}"
    login = Login(**said, elsewhere=elsewhere)
    if login.address:
        check(login.address)
    if bool(login.certificate) != bool(login.key):
        raise InvalidArgument("set a certificate together with its key")
    if not all("!" <= character <= "~" for character in login.token):
        raise InvalidArgument("the token contains invalid characters; copy it again from `kiln "
                              "user add`")
    return login


def open_channel(target: str, login: Login, options: Sequence[Tuple[str, Any]]) -> Any:
    """Opens a channel to `target`: over TLS if the login has a `ca`; calls carry its token."""
    if login.ca:
        _require_certificate(login.ca)
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(
            _file(login.ca) if login.ca != "system" else None,
            _file(login.key), _file(login.certificate)), options=options)
    elif login.token and not is_local(target):
        raise InvalidArgument(
            "a token is sent to another machine only over TLS: name the authority of the "
            f"certificate of {target} as kiln.connect(ca=...), in KILN_CA or as \"ca\" in "
            "~/.config/kiln/config.toml (\"system\" for the authorities that this machine trusts)"
            + with_elsewhere(login))
    elif login.token and not (login.address or target.startswith("unix:")):
        # Any account can listen there.
        raise InvalidArgument(
            f"no socket of a kilnd was found, and a token is not sent to {target} unless you name "
            f"it: set KILN_ADDRESS={target} if that is your daemon, or name another address")
    else:
        # An address that the client found by itself may be a trap, with or without a token.
        if login.token or not login.address:
            require_trusted(target, os.getuid())
        channel = grpc.insecure_channel(target, options=options)
    return grpc.intercept_channel(channel, _Bearer(login.token)) if login.token else channel


def with_elsewhere(login: Login) -> str:
    """Returns an addition to the message of a failed login or connection."""
    return f". {login.elsewhere}" if login.elsewhere else ""


class _Bearer(
        grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]
        grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
        grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
        grpc.StreamStreamClientInterceptor):  # type: ignore[misc]
    """Adds the token to calls. gRPC's call credentials reject sockets without TLS."""

    def __init__(self, token: str) -> None:
        self._header = ("authorization", f"Bearer {token}")

    def _call(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(_Details(
            details.method, details.timeout, [*(details.metadata or ()), self._header],
            details.credentials, details.wait_for_ready, details.compression), request)

    intercept_unary_unary = intercept_unary_stream = _call
    intercept_stream_unary = intercept_stream_stream = _call


class _Details(NamedTuple):
    method: str
    timeout: Optional[float]
    metadata: Any
    credentials: Any
    wait_for_ready: Any
    compression: Any


def _path(environment: Mapping[str, str]) -> str:
    folder = environment.get("XDG_CONFIG_HOME") or (
        os.path.join(environment["HOME"], ".config") if environment.get("HOME") else "")
    return os.path.join(folder, "kiln", "config.toml") if folder else ""


def _content(path: str, bytes_max: int) -> bytes:
    # Requires a regular file without blocking: a device has no end, and a pipe may have no writer.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
        text = file.read(bytes_max + 1)
    if len(text) > bytes_max:
        raise OSError(errno.EFBIG, f"It is larger than {bytes_max >> 10} KiB")
    return text


def _file(path: str) -> Optional[bytes]:
    if not path:
        return None
    try:
        return _content(path, _PEM_BYTES_MAX)
    except OSError as error:
        raise InvalidArgument(f"cannot read {path}: {error.strerror}") from None


def _require_certificate(path: str) -> None:
    # gRPC would say that no server answers.
    if path != "system" and b"CERTIFICATE-----" not in (_file(path) or b""):
        raise InvalidArgument(
            f"{path} has no certificate in PEM format (-----BEGIN CERTIFICATE-----)")


def _lines(path: str) -> List[str]:
    if not path:
        return []
    try:
        text = _content(path, _FILE_BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InvalidArgument(f"cannot read {path}: {error.strerror}{_REMEDY}") from None
    try:
        return text.decode().splitlines()
    except UnicodeDecodeError as error:
        number = 1 + text.count(b"\n", 0, error.start)
        raise InvalidArgument(f"{path}:{number}: this is not UTF-8{_REMEDY}") from None


def _read(path: str) -> Dict[str, str]:
    # Parses the part of TOML that such a file needs; Python has a parser from 3.11 on.
    values: Dict[str, str] = {}
    for number, line in enumerate(_lines(path), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, _, rest = (part.strip() for part in text.partition("="))
        quote, end = rest[:1], rest.find(rest[:1], 1)
        if name not in _VARIABLES or quote not in ("'", '"') or end < 0 or (
                rest[end + 1:].strip()[:1] not in ("", "#")):
            raise InvalidArgument(
                f"{path}:{number}: expected key = \"value\" with a key of "
                f"{', '.join(_VARIABLES)}")
        values[name] = rest[1:end]
    return values
