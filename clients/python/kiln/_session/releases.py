"""Names that the daemon may forget because the Python objects for them have died."""

import weakref
from collections import deque
from typing import Any, Deque, Dict, List, Tuple


class _Reference(weakref.ref):  # type: ignore[type-arg]
    __slots__ = ("kind", "name", "nbytes")

    kind: str
    name: Any
    nbytes: int


class Releases:
    """Watches objects, and queues the names of those that have died.

    An object may die anywhere, even in a thread that holds a lock, and Python code that runs then
    would swallow a KeyboardInterrupt. So its weak reference moves itself to a queue, without Python
    code.
    """

    def __init__(self) -> None:
        self._living: Dict[int, _Reference] = {}
        self._dead: Deque[_Reference] = deque()
        # How many dead references have been counted, and their bytes. One value, so that an
        # interrupt leaves both right.
        self._counted: Tuple[int, int] = (0, 0)

    def watch(self, owner: Any, kind: str, name: Any, nbytes: int = 0) -> None:
        """Queues `name` for release when `owner` dies. `kind` is a field of Release, or "program".

        The release frees `nbytes` at the daemon.
        """
        reference = _Reference(owner, self._dead.append)
        reference.kind, reference.name, reference.nbytes = kind, name, nbytes
        # A weak reference calls back only if it is itself still alive.
        self._living[id(reference)] = reference

    def __len__(self) -> int:
        return len(self._dead)

    # For one thread at a time. References are accessed by index, since more may die meanwhile.

    def nbytes(self) -> int:
        """Returns the bytes of the dead objects."""
        count, nbytes = self._counted
        while count < len(self._dead):
            nbytes += self._dead[count].nbytes
            count += 1
        self._counted = count, nbytes
        return nbytes

    def first(self, count: int) -> Dict[str, List[Any]]:
        """Returns the names of the `count` that died first, by kind. They stay until `drop`."""
        names: Dict[str, List[Any]] = {}
        for place in range(count):
            reference = self._dead[place]
            names.setdefault(reference.kind, []).append(reference.name)
        return names

    def drop(self, count: int) -> None:
        """Forgets the `count` that died first, whose release has been sent."""
        self._counted = 0, 0
        for _ in range(count):
            reference = self._dead.popleft()
            del self._living[id(reference)]
