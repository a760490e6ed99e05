"""The outputs by which programs report their checks, and how the client judges them.

For each checked index a program reports the farthest one as a number, from which this process knows
whether all are within their limits. Sizes and lines are not part of it, so loops whose sizes change
run the same programs. `_session/verdicts.py` reads these outputs.
"""

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
    Union,
)

from kiln._basics.dtypes import DType, as_dtype, bool_, int64, uint64
from kiln._basics.errors import KilnError
from kiln._basics.source import Source, format_source
from kiln._graph.checks import Form, Limit, Requirement, form_of
from kiln._graph.node import Node
from kiln._placement.mesh import Mesh

_WORD = 1 << 64
_ALONG_MAX = 4  # the number of scalar results, such as losses, whose bits are added


class Told(NamedTuple):
    """The output element that reports a check."""

    node: Any  # the node that has the check
    place: int  # among the node's checks
    output: int  # among the reporting outputs
    element: int
    results: Tuple[int, ...]  # the numbers of the program's results that are computed from it


class Telling(NamedTuple):
    """The contents of a program's last outputs, which report its checks."""

    checks: Sequence[Told]
    sizes: Sequence[int]  # of these outputs
    # The numbers of the scalar results whose bits are the last elements of the only such output.
    along: Sequence[int]


_NOTHING = Telling((), (), ())


class _Key(NamedTuple):
    """Determines a reported number."""

    number: int  # of the indices' node in the graph
    rank: int
    dtype: DType
    form: Form


_Found = Dict[_Key, List[Tuple[Node, int]]]


class Teller:
    """Adds the outputs that report checks to a graph, while `build` makes its message."""

    def __init__(self, writer: Any, homes: Dict[int, Any]) -> None:
        """`homes` are those of the graph's nodes, by number."""
        self._writer = writer
        self._homes = homes
        # The nodes whose checks a number decides, and which of their checks.
        self._found: _Found = {}

    def note(self, node: Node, numbers: Dict[Node, int]) -> None:
        """Records a node's checks; `numbers` are those of the graph's nodes."""
        for place, found in enumerate(node.checks or ()):
            key = _Key(numbers[found.indices], len(found.indices.shape), found.indices.dtype,
                       form_of(found))
            self._found.setdefault(key, []).append((node, place))

    def write(self, order: Sequence[Node], roots: Sequence[Node],
              numbers: Dict[Node, int]) -> Telling:
        """Adds the outputs. `order` has the graph's nodes, operands first."""
        if not self._found:
            return _NOTHING
        results = _results(order, roots)
        told: List[Told] = []
        sizes: List[int] = []
        along = [place for place, root in enumerate(roots) if not root.shape][:_ALONG_MAX]
        groups: Dict[Any, _Found] = {None: self._found}
        homes = set(self._homes.values())
        if len(homes) > 1 and not any(isinstance(home, Mesh) for home in homes):
            groups, along = self._by_device(), []  # results may be on another device
        for home, indices in groups.items():
            first = len(self._writer.graph.nodes)
            for element, nodes in enumerate(indices.values()):
                told += [Told(node, place, len(sizes), element, results[node])
                         for node, place in nodes]
            rows = [self._farthest(key, nodes[0][0]) for key, nodes in indices.items()]
            rows += [self._bits(numbers[roots[place]], roots[place].dtype) for place in along]
            self._writer.graph.outputs.append(
                self._writer.add("concat", uint64, rows, axis=0) if len(rows) > 1 else rows[0])
            sizes.append(len(rows))
            if home is not None:
                for number in range(first, len(self._writer.graph.nodes)):
                    self._homes[number] = home
        return Telling(told, sizes, along)

    def _by_device(self) -> Dict[Any, _Found]:
        found: Dict[Any, _Found] = {}
        for key, nodes in self._found.items():
            found.setdefault(self._homes.get(key.number), {})[key] = nodes
        return found

    def _farthest(self, key: _Key, node: Node) -> int:
        """Adds the farthest index as a number; returns the number of its node: the index in 64
        bits, or, if negative ones are allowed, 0, -1, 1, -2, 2, … as 0, 1, 2, 3, 4, …"""
        add, first = self._writer.add, len(self._writer.graph.nodes)
        number, rank, dtype, form = key
        if form.from_end:
            number = number if dtype is int64 else add("cast", int64, [number])
            doubled = add("shl", int64, [number, add("const", int64, [], value=1)])
            sign = add("shr", int64, [number, add("const", int64, [], value=63)])
            number = add("xor", int64, [doubled, sign])
        number = number if dtype is uint64 else add("cast", uint64, [number])
        if form.ignored is not None:
            ignored = add("const", uint64, [], value=form.ignored % _WORD)
            is_ignored = add("cmpeq", bool_, [number, ignored])
            number = add("where", uint64, [
                is_ignored, add("const", uint64, [], value=0), number])
        if rank:
            number = add("max", uint64, [number], axes=tuple(range(rank)))
        row: int = add("reshape", uint64, [number], shape=(1,))
        (check, *_) = node.checks or ()
        for wire in self._writer.graph.nodes[first:]:
            wire.source = f"{format_source(node.source)}: check of the indices of {check.limit.op}"
        return row

    def _bits(self, number: int, dtype: DType) -> int:
        """Adds a scalar's bits as a uint64."""
        add = self._writer.add
        if dtype.is_float or dtype.is_signed:
            dtype = as_dtype(f"uint{8 * dtype.itemsize}")
            number = add("bitcast", dtype, [number])
        number = number if dtype is uint64 else add("cast", uint64, [number])
        return int(add("reshape", uint64, [number], shape=(1,)))


def _results(order: Sequence[Node], roots: Sequence[Node]) -> Dict[Node, Tuple[int, ...]]:
    """Returns, for each node with checks, the numbers of the roots that are computed from it."""
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
    """Judges the number that a run reports for one check. Holds no node, and so no value."""

    limit: Union[Limit, Requirement]
    form: Form
    source: Optional[Source]
    output: int
    element: int
    results: Tuple[int, ...]

    def error(self, number: int) -> Optional[KilnError]:
        """Returns the error for a reported number; None: all indices are in range."""
        size = _WORD >> 1 if self.limit.size is None else self.limit.size
        if number < size * (2 if self.form.from_end else 1):
            return None
        if self.form.from_end:
            value = ~(number >> 1) if number & 1 else number >> 1
        else:
            value = number - _WORD if self.form.is_signed and number >= _WORD >> 1 else number
        found: KilnError = self.limit.error(
            self.limit.message(value), metadata={"source": format_source(self.source)})
        return found


class Rules(NamedTuple):
    """The rules by which the runs of a program are judged."""

    rules: Sequence[Rule] = ()
    outputs: Sequence[Tuple[DType, Tuple[int, ...]]] = ()  # the reporting outputs, the last ones
    along: Sequence[int] = ()  # see Telling


NO_RULES = Rules()


def rules(telling: Telling) -> Rules:
    """Returns how the runs of a program with this Telling are judged."""
    each = [Rule(check.limit, form_of(check), told.node.source, told.output, told.element,
                 told.results)
            for told in telling.checks for check in told.node.checks[told.place : told.place + 1]]
    return Rules(each, [(uint64, (size,)) for size in telling.sizes], telling.along)


def expect(connection: Any, rules: Rules, results: Sequence[Any],
           state: Container[int] = ()) -> None:
    """Judges a run by its result buffers once they are read.

    Results whose numbers are in `state` are not marked failed: computation goes on with them.
    """
    if not rules.rules:
        return
    for output, buffer in enumerate(results[-len(rules.outputs):]):
        own = [rule for rule in rules.rules if rule.output == output]
        connection.verdicts.expect(connection, buffer, _Judge(own, results, state))
    begin = rules.outputs[-1][1][0] - len(rules.along)
    for element, number in enumerate(rules.along, begin):
        results[number].along = buffer, element


class _Judge:
    """Finds the first index out of range in one reporting output of one run.

    Marks the results that were computed from it as failed; each read of them raises the error.
    """

    __slots__ = ("_rules",)

    def __init__(self, rules: Iterable[Rule], buffers: Sequence[Any],
                 state: Container[int]) -> None:
        self._rules = [
            (rule, [weakref.ref(buffers[number]) for number in rule.results
                    if number not in state]) for rule in rules]

    def __call__(self, data: bytes) -> Optional[KilnError]:
        numbers = struct.unpack(f"<{len(data) // 8}Q", data)
        first: Optional[KilnError] = None
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
