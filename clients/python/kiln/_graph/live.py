"""Tensors that somebody still holds and that have no value yet: whatever is computed next computes
them, too.

So an eager loop that carries state from one iteration to the next (`h = step(h)`, and a read of
something made of h) begins each iteration with a value, and its graph does not grow. Two kinds:

- *assigned* tensors (running statistics, weights, moments) are always computed along.
- others only where that costs little: not views of what has a value, not what is far larger than
  what it is made of (a reduction may be fused with it, so that it never lies in memory), not a
  gradient of what was computed before, not very many at once, and nothing that could make the
  program fail: another connection's values, failed ones, placeholders of a traced function.

Each thread computes its own; what nobody holds any more is not computed.
"""

import threading
import weakref
from typing import Any, Container, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from kiln._graph.node import Node, mode
from kiln._session import connection as connections

# Ops that only say where elements are found: as cheap when they are read as when they are stored.
_SAME_SIZE = frozenset(("reshape", "permute", "flip", "detach", "expand"))
_VIEWS = _SAME_SIZE | {"shrink", "pad"}
_SOURCES = frozenset(("input", "const", "iota"))
# A chain of more views than this is state that grows, such as x = x.flip() in a loop.
_LONGEST_VIEW = 16
# What is larger than this, and so many times larger than all that it is made of, stays lazy.
_ALWAYS_BYTES = 16 << 20
_TIMES_LARGER = 4
# More tensors on the way to what is asked for, or more others, are no state: they are many at once,
# such as the samples of a data set, and each is computed when it is used.
_MOST_NEAR = 512
_MOST_FAR = 64
_KEPT_AT_FIRST = 1024  # references, until those that are dead are looked for

_assigned: Dict[int, "weakref.ref[Any]"] = {}


class _Made(threading.local):
    """The tensors that this thread has made of operations, oldest first; some have died."""

    def __init__(self) -> None:
        self.references: List[weakref.ref[Any]] = []
        self.most = _KEPT_AT_FIRST


_made = _Made()


def note_made(tensor: Any) -> None:
    """Takes note of a tensor that has just been made."""
    node = tensor._node
    if node.op == "input" or node.buffer is not None or mode.trace is not None:
        return
    references = _made.references
    references.append(weakref.ref(tensor))
    if len(references) >= _made.most:
        references[:] = [reference for reference in references if _is_lazy(reference())]
        _made.most = 2 * len(references) + _KEPT_AT_FIRST


def note_assigned(tensor: Any) -> None:
    """Takes note that a tensor was given a lazy value."""
    if mode.trace is None and not tensor._node.is_value:
        _assigned[id(tensor)] = weakref.ref(tensor)


def take_assigned() -> List[Any]:
    """The assigned tensors that are still alive; once."""
    tensors = [reference() for reference in list(_assigned.values())]
    _assigned.clear()
    return [tensor for tensor in tensors if tensor is not None]


def companions(asked: Iterable[Node], without: Container[int] = ()) -> List[Node]:
    """What is to be computed along with these nodes, beside what was assigned.

    Tensors whose id is in `without` are forgotten, until they are asked for.
    """
    references = _made.references
    if not references:
        return []
    _made.references = []
    check = _Check(asked)
    near: List[Tuple[weakref.ref[Any], Node]] = []
    far: List[Tuple[weakref.ref[Any], Node]] = []
    for reference in references:
        tensor = reference()
        if tensor is None or not _is_lazy(tensor) or id(tensor) in without:
            continue
        node = _worth_computing(tensor._node)
        if check.asks_for(tensor._node):
            continue
        if node is None:
            _made.references.append(reference)  # later, perhaps
        else:
            (near if check.reaches(node) else far).append((reference, node))
    found: List[Node] = []
    for group, most in ((near, _MOST_NEAR), (far, _MOST_FAR)):
        if len(group) <= most:
            found += [node for reference, node in group if _is_taken(reference, node, check)]
    return found


def _is_taken(reference: "weakref.ref[Any]", node: Node, check: "_Check") -> bool:
    allowed = check.allows(node)
    tensor = reference()
    if not allowed or tensor is None or node is not tensor._node:
        # Later, perhaps; or a view, which will be one of a value.
        _made.references.append(reference)
    return allowed


def _is_lazy(tensor: Optional[Any]) -> bool:
    return tensor is not None and tensor._node.op != "input" and tensor._node.buffer is None


def _worth_computing(node: Node) -> Optional[Node]:
    """The node itself or, of a view, what it is a view of; None: a view of a value."""
    target: Optional[Node] = None
    base = node
    for _ in range(_LONGEST_VIEW):
        if target is None and base.op not in _SAME_SIZE:
            target = base
        if base.buffer is not None or base.op in _SOURCES:
            return None
        if base.op not in _VIEWS:
            return target
        base = base.operands[0]
    return node


class _Check:
    """Whether nodes may be computed along with others."""

    def __init__(self, asked: Iterable[Node]) -> None:
        self._asked = set(asked)
        self._homes = {None, *(node.home for node in self._asked)}
        self._fine: Set[Node] = set()
        self._connection: Any = None
        self._walk(self._asked, asked=True)
        if self._connection is None:
            self._connection = connections.default_connection()

    def asks_for(self, node: Node) -> bool:
        """Whether a node is computed anyway."""
        return node in self._asked

    def reaches(self, node: Node) -> bool:
        """Whether a node is on the way to what was asked for; before others are allowed."""
        return node in self._fine

    def allows(self, node: Node) -> bool:
        """Whether a node may be."""
        return node.home in self._homes and self._walk([node]) and _is_small(node)

    def _walk(self, roots: Iterable[Node], asked: bool = False) -> bool:
        """Whether all under these nodes can be computed here."""
        seen: Set[Node] = set()
        stack = list(roots)
        while stack:
            node = stack.pop()
            if node in seen or node in self._fine:
                continue
            seen.add(node)
            buffer = node.buffer
            if buffer is not None:
                if self._connection is None:
                    self._connection = buffer.connection
                if buffer.error is not None or buffer.connection is not self._connection:
                    return False
            elif node.op == "input":
                if node.host is None:
                    return False
            elif node.op == "gradient" and node.operands[0].buffer is not None and not asked:
                return False  # all that led to y would be computed again
            else:
                stack.extend(node.operands)
        self._fine |= seen
        return True


def _is_small(node: Node) -> bool:
    size = _nbytes(node)
    return size <= _ALWAYS_BYTES or size <= _TIMES_LARGER * sum(
        _nbytes(value) for value in _values_under(node))


def _nbytes(node: Node) -> int:
    count = node.dtype.itemsize
    for size in node.shape:
        count *= getattr(size, "high", size)
    return count


def _values_under(node: Node) -> Iterator[Node]:
    seen: Set[Node] = set()
    stack = [node]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.is_value:
            yield node
        else:
            stack.extend(node.operands)
