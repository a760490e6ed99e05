"""Tensors that are still referenced and have no value yet: the next computation computes them, too.

So an eager loop that carries state from one iteration to the next (`h = step(h)`, and a read of
something made of h) begins each iteration with a value, and its graph does not grow. Two kinds:

- *assigned* tensors (running statistics, weights, moments) are always computed along.
- others only where that costs little. The program computes them anyway if they are on the way to
  what is asked for, and gradients of what is asked for would compute it again later. All others are
  computed only if they are state: made since the last read, from something that was lazy at that
  read already, or at a line that has made such a tensor before.

These stay lazy: views of values; a tensor far larger than its inputs (a reduction may be fused with
it, so that it is never in memory); gradients of earlier reads; tensors beyond a bound of bytes.
Tensors that would change the program or make it fail stay lazy, too: those on another device or
connection, failed values, placeholders of a traced function, and tensors made under another
precision of matrix products.

Each thread computes its own tensors; unreferenced ones are not computed.
"""

import threading
import weakref
from typing import (
    Any,
    Container,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
)

from kiln._basics.source import Source
from kiln._graph.matmul_precision import current_code
from kiln._graph.node import Node, mode, moment
from kiln._session import connection as connections

# Ops that only rearrange elements: a read through one is as cheap as a read of its stored result.
_SAME_SIZE = frozenset(("reshape", "permute", "flip", "detach", "expand"))
_VIEWS = _SAME_SIZE | {"shrink", "pad"}
_SOURCES = frozenset(("input", "const", "iota"))
# A longer chain of views is state that grows, such as x = x.flip() in a loop.
_LONGEST_VIEW = 16
# A tensor stays lazy if it is larger than this and so many times larger than all its inputs.
_ALWAYS_BYTES = 16 << 20
_TIMES_LARGER = 4
# The newest tensors come first. State is small. A tensor for each layer, or for each sample of a
# data set, is not state and is computed when it is used.
_NEAR_MAX = 512  # tensors on the way to what is asked for
_NEAR_BYTES_MAX = 256 << 20
_FAR_MAX = 64  # others
_FAR_BYTES_MAX = 64 << 20
_LINES_MAX = 1024
# Each read examines the held tensors again, at most this many.
_KEPT_MAX = 1024
_KEPT_AT_FIRST = 1024  # references before dead ones are removed

_assigned: Dict[int, "weakref.ref[Any]"] = {}


class _Made(threading.local):
    """The tensors that this thread has made by operations, oldest first; some are dead."""

    def __init__(self) -> None:
        self.references: List[weakref.ref[Any]] = []
        self.precision = current_code()  # at the time they were made
        self.last_read = 0.0  # nodes with a larger number were made after it
        self.references_max = _KEPT_AT_FIRST


_made = _Made()

# Lines of the user's program that make state which is not on the way to what is read.
_state_lines: Dict[Source, None] = {}


def note_made(tensor: Any) -> None:
    """Records a tensor that has just been made."""
    node = tensor._node
    if node.op == "input" or node.buffer is not None or mode.trace is not None:
        return
    if _made.precision != current_code():
        _made.references, _made.precision = [], current_code()
    references = _made.references
    references.append(weakref.ref(tensor))
    if len(references) >= _made.references_max:
        references[:] = [reference for reference in references if _is_lazy(reference())]
        _made.references_max = 2 * len(references) + _KEPT_AT_FIRST


def note_assigned(tensor: Any) -> None:
    """Records that a tensor was given a lazy value."""
    if mode.trace is None and not tensor._node.is_value:
        _assigned[id(tensor)] = weakref.ref(tensor)


def take_assigned() -> List[Any]:
    """Returns the assigned tensors that are still alive, and forgets them."""
    tensors = [reference() for reference in list(_assigned.values())]
    _assigned.clear()
    return [tensor for tensor in tensors if tensor is not None]


def companions(asked: Iterable[Node], without: Container[int] = ()) -> List[Node]:
    """Returns the nodes to compute along with `asked`, in addition to assigned tensors.

    Tensors whose id is in `without` are forgotten until they are asked for.
    """
    references = _made.references
    if not references or _made.precision != current_code():
        return []
    _made.references = []
    near: List[_Held] = []
    far: List[_Held] = []
    wanted = set(asked)
    check: Optional[_Check] = None
    for reference in references:
        tensor = reference()
        if tensor is None or not _is_lazy(tensor) or id(tensor) in without:
            continue
        if tensor._node in wanted:
            continue
        # Walks over all that is asked for, which most small steps do not need.
        check = check or _Check(wanted)
        node = _worth_computing(tensor._node)
        if node is None:
            _made.references.append(reference)  # it may become more than a view of a value
        else:
            (near if check.reaches(node) else far).append(_Held(reference, node))
    found: List[Node] = []
    if check is not None:
        found += _taken(near[-_NEAR_MAX:], _NEAR_BYTES_MAX, check)
        found += _taken(far[-_FAR_MAX:], _FAR_BYTES_MAX, check)
        del _made.references[:-_KEPT_MAX]
    _made.last_read = moment()
    return found


class _Held(NamedTuple):
    """A tensor and the node to compute for it."""

    reference: "weakref.ref[Any]"
    node: Node


def _taken(group: Sequence[_Held], bytes_max: int, check: "_Check") -> List[Node]:
    """Returns the nodes of a group to compute along. The next read examines the others again."""
    found: List[Node] = []
    left = bytes_max
    for held in reversed(group):
        size = _nbytes(held.node)
        # The first one is always taken, or a loop with large state would never compute it.
        taken = (size <= left or not found) and check.allows(held.node)
        if taken:
            left -= size
            found.append(held.node)
        tensor = held.reference()
        if tensor is not None and not (taken and held.node is tensor._node):
            _made.references.append(held.reference)
    return found[::-1]


def _is_lazy(tensor: Optional[Any]) -> bool:
    return tensor is not None and tensor._node.op != "input" and tensor._node.buffer is None


def _worth_computing(node: Node) -> Optional[Node]:
    """Returns the node, or what it is a view of; None for a view of a value."""
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
    """Decides whether nodes may be computed along with others."""

    def __init__(self, asked: Set[Node]) -> None:
        self._homes = {node.home for node in asked}
        self._fine: Set[Node] = set()  # nodes that the connection can compute, with all under them
        self._connection: Any = None
        reached = self._reached(asked, asked=True)
        if self._connection is None:
            self._connection = connections.default_connection()
        self._fine |= reached or set()
        # Whether what is asked for was already carried over from the last read without a value.
        self._is_carried = any(_was_lazy_then(node) for node in self._fine)

    def reaches(self, node: Node) -> bool:
        """Returns whether a node is on the way to what is asked for or was allowed before."""
        return node in self._fine

    def allows(self, node: Node) -> bool:
        """Returns whether a node may be computed along; if nothing else computes it, it must be
        state or have gradients.
        """
        if node.home not in self._homes or not _is_small(node):
            return False
        if node in self._fine:
            return True
        reached = self._reached([node])
        if reached is None or not (self._has_gradients(reached) or self._is_state(node, reached)):
            return False
        self._fine |= reached
        return True

    def _has_gradients(self, nodes: Iterable[Node]) -> bool:
        """Returns whether they include gradients, which would later compute their y again."""
        return any(node.op == "gradient" and node.operands[0] in self._fine for node in nodes)

    def _is_state(self, node: Node, reached: Set[Node]) -> bool:
        """Returns whether a loop carries the node on; `reached` has the nodes under it that are not
        in _fine.
        """
        if node.number <= _made.last_read:
            return False  # not made since the last read, so it can wait
        if node.source is None or node.source in _state_lines:
            return node.source is not None
        # The value that is read may depend on old state, and the new state on part of that value.
        carried = any(map(_was_lazy_then, reached)) or (self._is_carried and any(
            operand in self._fine for other in reached for operand in other.operands))
        if carried:
            if len(_state_lines) >= _LINES_MAX:
                _state_lines.clear()
            _state_lines[node.source] = None
        return carried

    def _reached(self, roots: Iterable[Node], asked: bool = False) -> Optional[Set[Node]]:
        """Returns the nodes under the roots that are not in _fine; None: not computable here."""
        seen: Set[Node] = set()
        stack = list(roots)
        has_connection = asked
        while stack:
            node = stack.pop()
            if node in self._fine:
                # A number may belong to graphs of several connections.
                has_connection = has_connection or node.is_value or bool(node.operands)
                continue
            if node in seen:
                continue
            seen.add(node)
            buffer = node.buffer
            if buffer is not None:
                has_connection = True
                if self._connection is None:
                    self._connection = buffer.connection
                if not asked and (
                        buffer.error is not None or buffer.connection is not self._connection):
                    return None
            elif node.op == "input":
                if node.host is None and not asked:
                    return None
            elif node.op == "gradient" and node.operands[0].buffer is not None and not asked:
                return None  # everything before y would be computed again
            else:
                stack.extend(node.operands)
        # Nodes that depend on no value belong to the default connection.
        is_here = has_connection or self._connection is connections.default_connection()
        return seen if is_here else None


def _was_lazy_then(node: Node) -> bool:
    """Returns whether a node had no value at the last read, and has none now."""
    return bool(node.operands) and node.buffer is None and node.number <= _made.last_read


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
