"""Indices that only the device knows: each program tells of those that are out of range.

An op that takes indices has *checks*. A program that computes it has further outputs for them: for
each check the number by which the farthest index is told, from which this process knows whether it
is within its limit. Sizes are no part of that, so loops whose sizes change run the same programs.
`_session/verdicts.py` fetches these outputs, and README.md says what a user sees.
"""

import os
import struct
import weakref
from typing import (
    Any,
    Container,
    Dict,
    Iterable,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from kiln._basics import conversion
from kiln._basics.dtypes import DType, bool_, int64, uint64
from kiln._basics.errors import OutOfRange
from kiln._basics.source import Source, format_source
from kiln._graph.node import Node
from kiln.variables import Dim, has_dims

enabled = os.environ.get("KILN_CHECKS", "1") != "0"

_WORD = 1 << 64

# On what, besides the index, the number depends that a program tells: whether negative ones count
# from the end, what is ignored, and whether the dtype has a sign.
Form = Tuple[bool, Optional[int], bool]


class Limit(NamedTuple):
    """Which integers an op takes."""

    op: str  # as the user has called it
    size: Any  # None: there is no limit above
    from_end: bool = False  # negative ones count from the end
    ignored: Optional[int] = None  # allowed, wherever it is
    what: str = "index"
    of: str = "places"

    def lies_within(self, least: int, most: int) -> bool:
        """Whether all of these are allowed."""
        return bool((-self.size if self.from_end else 0) <= least and (
            self.size is None or most < self.size))

    def message(self, value: int) -> str:
        """What is wrong with an integer that is not allowed."""
        if self.size is None:
            return f"{self.op}: {self.what} {value} is out of range: it must not be negative"
        low = -self.size if self.from_end else 0
        allowed = f"{low}..{self.size - 1}" if self.size != 0 else "none"
        ignored = "" if self.ignored is None else f", and {self.ignored}, which is ignored"
        return (f"{self.op}: {self.what} {value} is out of range for {self.size} {self.of}: "
                f"allowed {allowed}{ignored}")


class Check(NamedTuple):
    """An operand of integers, and its limit."""

    index: Node
    limit: Limit


def check(index: Node, limit: Limit) -> Tuple[Check, ...]:
    """The checks of an operand: none where its values are known, or all that its dtype has fit.

    Raises OutOfRange if they are known and one is not allowed.
    """
    if not index.dtype.is_integer or 0 in index.shape:
        return ()
    known = _known(index, limit)
    if known is not None:
        for value in known:
            if not limit.lies_within(value, value):
                raise OutOfRange(limit.message(value))
        return ()
    if not enabled or (limit.size is not None and has_dims((limit.size,))) or (
            limit.lies_within(*conversion.integer_range(index.dtype))):
        return ()
    return (Check(index, limit),)


def _known(index: Node, limit: Limit) -> Optional[Tuple[int, ...]]:
    """The least and the most of what is not ignored, if this process knows them."""
    if index.op == "const":
        value = index.attributes[0][1]
        return None if isinstance(value, Dim) else () if value == limit.ignored else (value,)
    if index.host is not None:
        values = index.host
        if limit.ignored is not None:
            values = values[values != limit.ignored]
        return (int(values.min()), int(values.max())) if values.size else ()
    if index.buffer is None or index.buffer.least_most is None:
        return None
    least, most = index.buffer.least_most
    # What is ignored may be one of them.
    return (least, most) if limit.ignored is None or limit.lies_within(least, most) else None


def form_of(found: Check) -> Form:
    """The form of the number that a program tells."""
    is_signed = found.index.dtype.is_signed
    return found.limit.from_end and is_signed, found.limit.ignored, is_signed


class Told(NamedTuple):
    """Where a program tells of a check."""

    node: Any  # which has it
    place: int  # among the node's checks
    output: int  # among those for checks
    element: int
    results: Tuple[int, ...]  # what the program computes from it, by number


class Writer:
    """Adds the outputs for checks to a graph, while `build` makes its message."""

    def __init__(self, writer: Any, homes: Dict[int, Any]) -> None:
        self._writer = writer
        self._homes = homes
        # By home, and then by what a number depends on: the nodes whose checks it decides.
        self._found: Dict[Any, Dict[Any, List[Tuple[Node, int]]]] = {}

    def note(self, node: Node, numbers: Dict[Node, int]) -> None:
        """Takes note of a node's checks; `numbers` are the graph's."""
        for place, found in enumerate(node.checks or ()):
            number = numbers[found.index]
            here = self._found.setdefault(self._homes.get(number), {})
            key = number, len(found.index.shape), found.index.dtype, form_of(found)
            here.setdefault(key, []).append((node, place))

    def write(self, order: Sequence[Node], roots: Sequence[Node]) -> Tuple[List[Told], List[int]]:
        """Where the program tells of each check, and the sizes of the outputs that do."""
        if not self._found:
            return [], []
        results = _results(order, roots)
        told: List[Told] = []
        sizes: List[int] = []
        for home, numbers in self._found.items():
            first = len(self._writer.graph.nodes)
            for element, (key, nodes) in enumerate(numbers.items()):
                told += [Told(node, place, len(sizes), element, results[node])
                         for node, place in nodes]
            rows = [self._farthest(*key, nodes[0][0]) for key, nodes in numbers.items()]
            self._writer.graph.outputs.append(rows[0] if len(rows) == 1 else self._writer.add(
                "concat", uint64, rows, axis=0))
            sizes.append(len(rows))
            if home is not None:
                for number in range(first, len(self._writer.graph.nodes)):
                    self._homes[number] = home
        return told, sizes

    def _farthest(self, number: int, rank: int, dtype: DType,
                  form: Form, node: Node) -> int:
        """The farthest index, as a number that tells of it: itself in 64 bits, or, where negative
        ones are allowed, 0, -1, 1, -2, 2, … as 0, 1, 2, 3, 4, …"""
        add, first = self._writer.add, len(self._writer.graph.nodes)
        from_end, ignored, _ = form
        if from_end:
            number = number if dtype is int64 else add("cast", int64, [number])
            doubled = add("shl", int64, [number, add("const", int64, [], value=1)])
            sign = add("shr", int64, [number, add("const", int64, [], value=63)])
            number = add("xor", int64, [doubled, sign])
        number = number if dtype is uint64 else add("cast", uint64, [number])
        if ignored is not None:
            is_ignored = add("cmpeq", bool_, [
                number, add("const", uint64, [], value=ignored % _WORD)])
            number = add("where", uint64, [
                is_ignored, add("const", uint64, [], value=0), number])
        if rank:
            number = add("max", uint64, [number], axes=tuple(range(rank)))
        row = add("reshape", uint64, [number], shape=(1,))
        at = f"{format_source(node.source)}: check of the indices of {node.checks[0].limit.op}"
        for wire in self._writer.graph.nodes[first:]:
            wire.source = at
        return row


def _results(order: Sequence[Node], roots: Sequence[Node]) -> Dict[Node, Tuple[int, ...]]:
    """By node with checks: the roots that are computed from it."""
    checked = [node for node in order if node.checks]
    bits = {node: 1 << place for place, node in enumerate(checked)}
    reached: Dict[Node, int] = {}
    for node in order:
        mask = bits.get(node, 0)
        for operand in node.operands:
            mask |= reached.get(operand, 0)
        reached[node] = mask
    return {node: tuple([place for place, root in enumerate(roots) if reached[root] & bits[node]])
            for node in checked}


class Rule(NamedTuple):
    """What a program tells of a check, and what follows. It holds no node, and so no value."""

    limit: Limit
    form: Form
    source: Optional[Source]
    output: int
    element: int
    results: Tuple[int, ...]

    def error(self, number: int) -> Optional[OutOfRange]:
        """What is wrong if a run has told of this number; None: nothing."""
        from_end, _, is_signed = self.form
        size = _WORD >> 1 if self.limit.size is None else self.limit.size
        if number < size * (2 if from_end else 1):
            return None
        if from_end:
            value = ~(number >> 1) if number & 1 else number >> 1
        else:
            value = number - _WORD if is_signed and number >= _WORD >> 1 else number
        return OutOfRange(
            self.limit.message(value), metadata={"source": format_source(self.source)})


def rules(told: Iterable[Told]) -> List[Rule]:
    """By what the outputs of a program are judged."""
    return [Rule(found.limit, form_of(found), node.source, output, element, results)
            for node, place, output, element, results in told
            for found in (node.checks or ())[place : place + 1]]


class _Judge:
    """Finds the first index out of range in what one run tells by one of its outputs.

    Results that were computed from it have failed then, and say so whenever they are read.
    """

    __slots__ = ("_rules",)

    def __init__(self, rules: Iterable[Rule], buffers: Sequence[Any],
                 state: Container[int]) -> None:
        self._rules = [
            (rule, [weakref.ref(buffers[number]) for number in rule.results
                    if number not in state]) for rule in rules]

    def __call__(self, data: bytes) -> Optional[OutOfRange]:
        numbers = struct.unpack(f"<{len(data) // 8}Q", data)
        first: Optional[OutOfRange] = None
        for rule, references in self._rules:
            error = rule.error(numbers[rule.element])
            if error is None:
                continue
            for reference in references:
                buffer = reference()
                if buffer is not None and buffer.error is None:
                    buffer.error = error
            first = first or error
        return first


def outputs(sizes: Sequence[int]) -> List[Tuple[DType, Tuple[int, ...]]]:
    """The dtypes and shapes of the outputs for checks."""
    return [(uint64, (size,)) for size in sizes]


def expect(connection: Any, rules: Sequence[Rule], results: Sequence[Any], count: int,
           state: Container[int] = ()) -> None:
    """Has a run judged by all of its results but the first `count`.

    `state` are those of the first, by number, that something goes on with whatever they are.
    """
    for output, buffer in enumerate(results[count:]):
        own = [rule for rule in rules if rule.output == output]
        connection.verdicts.expect(connection, buffer, _Judge(own, results, state))
