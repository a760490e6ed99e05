"""What the daemon may forget, since the Python objects that stood for it have died."""

import weakref
from collections import deque
from typing import Any, Deque, Dict, List


class _Reference(weakref.ref):  # type: ignore[type-arg]
    __slots__ = ("kind", "name")

    kind: str
    name: Any


class Releases:
    """Objects that are watched, and the names of those that have died.

    An object may die anywhere, even in a thread that holds a lock, and Python code that runs then
    would swallow a KeyboardInterrupt. So it moves its reference to a queue, without Python code.
    """

    def __init__(self) -> None:
        self._living: Dict[int, _Reference] = {}
        self._dead: Deque[_Reference] = deque()

    def watch(self, owner: Any, kind: str, name: Any) -> None:
        """When `owner` dies, `name` is to be released: a field of Release, or "program"."""
        reference = _Reference(owner, self._dead.append)
        reference.kind, reference.name = kind, name
        # A weak reference calls back only if it is itself still alive.
        self._living[id(reference)] = reference

    def __len__(self) -> int:
        return len(self._dead)

    def take(self) -> Dict[str, List[Any]]:
        """The names to release, by their kind. For one thread at a time."""
        names: Dict[str, List[Any]] = {}
        while self._dead:
            reference = self._dead.popleft()
            del self._living[id(reference)]
            names.setdefault(reference.kind, []).append(reference.name)
        return names
