"""Checks whether another account may have made a Unix socket."""

import contextlib
import os
import stat
from typing import Optional

from kiln._basics.errors import PermissionDenied

UNTRUSTED_SOCKET = "UNTRUSTED_SOCKET"  # the reason in an error
_ROOT = 0
_LINKS_MAX = 40


def require_trusted(target: str, uid: int) -> None:
    """Raises PermissionDenied if another account may have made the socket of a gRPC target.

    A token sent to such a socket would go to that account. Other targets are trusted.
    """
    if not target.startswith("unix:"):
        return
    path = "/" + target[len("unix:"):].lstrip("/") if target.startswith(
        "unix:/") else os.path.abspath(target[len("unix:"):])
    why = why_distrusted(path, uid)
    if why is not None:
        raise PermissionDenied(
            f"{path} may be another account's socket: {why}. Let kilnd listen in a folder that "
            "only its account or root can write to, such as $XDG_RUNTIME_DIR/kiln or "
            "/run/kiln, and name it in KILN_ADDRESS", UNTRUSTED_SOCKET)


def why_distrusted(path: str, uid: int) -> Optional[str]:
    """Returns why an untrusted account can replace `path`; None if none can.

    This account and root are trusted. Everything in a folder that only trusted accounts can write
    to is trusted, and so are the owners: for example /run/kiln, which root gave to the account of a
    service. In a folder that others can write to, an entry must belong to a trusted account, and
    the folder must be sticky, as /tmp is, or the others could rename the entry. The socket itself
    must not be in such a folder: whenever the daemon stops, others can make one of that name.
    """
    trusted = {_ROOT, uid}
    folder, names, links = "/", [name for name in path.split("/") if name], 0
    while names:
        place = os.path.join(folder, names.pop(0))
        here: Optional[os.stat_result] = None
        try:
            above = os.stat(folder)
            with contextlib.suppress(FileNotFoundError):
                here = os.lstat(place)
        except OSError as error:
            return f"{place} cannot be examined: {error.strerror}"
        is_open = above.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if here is None:
            # Connecting fails until someone makes the file; a client tries again and again.
            return f"other accounts can create {place}, which does not exist" if is_open else None
        if is_open:
            if not above.st_mode & stat.S_ISVTX or not (names or stat.S_ISLNK(here.st_mode)):
                mode = f"{above.st_mode & 0o7777:o}"
                return f"other accounts can replace files in {folder} (mode {mode})"
            if here.st_uid not in trusted:
                return f"{place} belongs to the account with the number {here.st_uid}"
        trusted.add(here.st_uid)
        if not stat.S_ISLNK(here.st_mode):
            folder = place
            continue
        links += 1
        if links > _LINKS_MAX:
            return None  # the kernel does not follow so many either
        target = os.readlink(place)
        if target.startswith("/"):
            folder = "/"
        names = [name for name in target.split("/") if name] + names
    return None
