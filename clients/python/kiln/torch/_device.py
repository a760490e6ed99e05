"""torch.device: "cpu", or "cuda" for the accelerators of the session's daemon."""

import re
import warnings
import weakref
from typing import Any, Dict, List, Optional, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._session import connection as connections

_TYPES = ("cpu", "cuda", "mps", "xpu", "hip", "meta")
_ACCELERATORS = ("cuda", "hip", "xpu", "mps")


class device:  # noqa: N801
    """A device: torch.device("cuda:1"), torch.device("cuda", 1), torch.device(1).

    "cuda" is the first device of the daemon that is not the CPU, whoever made it. Without one it is
    the CPU, after one warning. As a context, it is where factories make their tensors.

    >>> torch.device("cpu").type
    'cpu'
    """

    __slots__ = ("_before", "index", "type")

    def __init__(self, type: Any, index: Optional[int] = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index if index is None else index
        elif isinstance(type, int):
            type, index = "cuda", type
        found = re.fullmatch(r"([a-z]+)(?::(\d+))?", str(type))
        if found is None or found[1] not in _TYPES or (found[2] and index is not None):
            raise InvalidArgument(
                f"a device named {type!r}; it must be one of {', '.join(_TYPES)}, with or without "
                'an index, such as "cuda:0"')
        self.type: str = found[1]
        self.index: Optional[int] = int(found[2]) if found[2] else index
        self._before: List[Any] = []

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return device, (self.type, self.index)

    def __enter__(self) -> "device":
        self._before.append(_default["device"])
        _default["device"] = self
        return self

    def __exit__(self, *_: Any) -> None:
        _default["device"] = self._before.pop()


_default: Dict[str, Any] = {"device": None}
_found: "weakref.WeakKeyDictionary[Any, Tuple[List[str], List[str]]]" = (
    weakref.WeakKeyDictionary())
_warned: List[str] = []


def get_default_device() -> device:
    """Returns the device where factories make tensors.

    >>> torch.get_default_device()
    device(type='cpu')
    """
    return _default["device"] or device("cpu")


def set_default_device(wanted: Any) -> None:
    """Sets the device where factories make tensors.

    >>> torch.set_default_device("cpu")
    """
    _default["device"] = None if wanted is None else device(wanted)


def _names() -> Tuple[List[str], List[str]]:
    """Returns the daemon's accelerators, and its other devices."""
    connection = connections.default_connection()
    found = _found.get(connection)
    if found is None:
        names = [entry.name for entry in connection.devices()]
        found = ([name for name in names if not name.startswith(("cpu", "null"))],
                 [name for name in names if name.startswith(("cpu", "null"))])
        _found[connection] = found
    return found


def accelerators() -> List[str]:
    """Returns Kiln's names of the accelerators, in the order of their numbers."""
    return _names()[0]


def kiln_name(wanted: Any) -> Optional[str]:
    """Returns Kiln's name of a device; None if values need not move to be there."""
    if wanted is None:
        return None
    if isinstance(wanted, str) and not re.fullmatch(r"(cpu|cuda|mps|xpu|hip)(:\d+)?|meta", wanted):
        return wanted  # one of Kiln's own names, such as "opencl:0"
    wanted = device(wanted)
    if wanted.type == "meta":
        raise InvalidArgument('the device "meta"; tensors without values are lazy ones in Kiln')
    others, own = _names()
    if wanted.type not in _ACCELERATORS:
        return own[0] if others and own else None
    if not others:
        if not _warned:
            _warned.append(wanted.type)
            warnings.warn(
                f'the daemon has no accelerator, so "{wanted}" is its CPU', stacklevel=3)
        return None
    index = wanted.index or 0
    if index >= len(others):
        raise InvalidArgument(
            f'no device "{wanted}": the daemon has {len(others)} accelerators, '
            f"{', '.join(others)}")
    return others[index]


def device_at(home: Any) -> device:
    """Returns the device of a value's home."""
    if isinstance(home, str):
        names = accelerators()
        if home in names:
            return device("cuda", names.index(home))
    return device("cpu")


def cuda_device(wanted: Any = None) -> device:
    """Returns the accelerator of this number, or the first one."""
    if wanted is None:
        return device("cuda", 0)
    found = device(wanted)
    return device(found.type, found.index or 0)
