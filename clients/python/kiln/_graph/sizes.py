"""Sizes and amounts that change from one iteration to the next, as variables of one program.

A *size* is one of a shape, or a whole number that an op takes and that says how far or how many: an
offset of a diagonal, the classes of one_hot. Two outlines have one *form* if they differ only in
sizes and numbers. From two or more of a form, a guess says which sizes follow from which: each is a
variable, or factor * variable + constant. The daemon proves for each value that the program is
right there, so a wrong guess only costs time.
"""

from math import gcd
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Set, Tuple

from kiln._basics.bindings import Symbol
from kiln._graph import extent
from kiln._graph.bounds import Bounds
from kiln._graph.build import MOVES, declare
from kiln._graph.node import TABLE, Attributes, Node
from kiln._graph.outline import Outline, Position, checked, is_fixed, moves, stands
from kiln.variables import Dim, Number

# A dimension of size 1 broadcasts, and one of size 0 has no elements: other sizes are larger.
_SIZE_MIN = 2

# In a reshape's shape: the size that is left.
_REST = -1

_WITH_SHAPE = frozenset(
    op.name for op in TABLE.values() if any(part.type == "shape" for part in op.attributes))
# The attributes that are amounts. All others, such as an axis or a stride, select the computation.
_AMOUNTS: Dict[str, str] = {
    "cross_entropy": "ignore_index", "diag_embed": "offset", "diagonal": "offset",
    "interpolate": "size", "nll_loss": "ignore_index", "one_hot": "classes",
    "pad_circular": "padding", "pad_constant": "padding", "pad_reflect": "padding",
    "pad_replicate": "padding", "roll": "shifts", "tril": "diagonal", "triu": "diagonal",
    "window": "size"}  # fmt: skip

# One size: a node, what it belongs to ("shape", a slice's or padding's "operand" or "result", or
# "amount"), and the axis.
_Place = Tuple[Node, str, int]


class Form(NamedTuple):
    """The common key of outlines that differ only in sizes, and the sizes of one of them."""

    key: Tuple[Any, ...]
    sizes: Tuple[int, ...]
    places: List[_Place]
    whole: Tuple[Any, ...]  # which axes slices and paddings leave whole

    @property
    def case(self) -> Tuple[Any, ...]:
        """Returns what usually makes another computation, but not in a loop over sizes.

        Dimensions of size 0 and 1, and axes that a slice or padding leaves whole.
        """
        return (*self.whole, *[
            size if size < _SIZE_MIN and kind != "amount" else None
            for size, (_, kind, _) in zip(self.sizes, self.places)])


def form_of(outline: Outline, roots: Sequence[Node]) -> Form:
    """Returns the form of an outline."""
    key: List[Any] = [outline.key[0]]
    sizes: List[int] = []
    places: List[_Place] = []
    whole: List[Any] = []

    def note(node: Node, kind: str, shape: Sequence[int]) -> int:
        sizes.extend(shape)
        places.extend([(node, kind, axis) for axis in range(len(shape))])
        return len(shape)

    index = {node: place for place, node in enumerate(outline.nodes)}
    inputs: Dict[Any, int] = {}
    for node in outline.nodes:
        op: Any = node.op
        given: Any = node.attributes
        operands = tuple([_operand(index, node, place) for place in range(len(node.operands))])
        if node in outline.values:
            op = inputs.setdefault(id(node.buffer or node), len(inputs))
            given, operands = note(node, "shape", node.shape), ()
        elif op in MOVES:
            whole.append(tuple([move.is_whole for move in moves(node)]))
            given = (note(node, "operand", node.operands[0].shape),
                     note(node, "result", node.shape))
        elif op == "const":
            given = repr(given)
        elif op in _WITH_SHAPE:
            given = tuple([(name, note(node, "shape", value) if name == "shape" else value)
                           for name, value in given])
        elif op in _AMOUNTS:
            given = repr([(name, note(node, "amount", _amounts(value))
                           if name == _AMOUNTS[op] else value) for name, value in given])
        key.append((op, node.dtype, given, operands, stands(node)))
        if node.checks is not None and node.buffer is None:
            key.append(checked(node, index))
    key.extend(index.get(root, (root.dtype, repr(root.attributes))) for root in roots)
    return Form(tuple(key), tuple(sizes), places, tuple(whole))


def _amounts(value: Any) -> Tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


def _operand(index: Dict[Node, int], node: Node, place: int) -> Any:
    operand = node.operands[place]
    if operand in index:
        return index[operand]
    return operand.dtype, repr(operand.attributes) if is_fixed(node, place) else None


class _Follows(NamedTuple):
    """A size that is factor * a variable's value + constant."""

    variable: int  # its number
    factor: int
    constant: int


class _Base(NamedTuple):
    """A size that is step * a variable's value + rest."""

    place: int
    step: int
    rest: int


class Guess:
    """A guess of how the sizes of a form follow from variables."""

    def __init__(self, samples: Sequence[Sequence[int]], numbers: Sequence[Sequence[Any]],
                 outline: Outline, form: Form) -> None:
        """Guesses from the sizes and numbers of several outlines; `outline` is the last one."""
        columns = list(zip(*samples))
        self._fixed = form.sizes
        moved = frozenset(
            position for place, position in enumerate(outline.positions)
            if any(sample[place] != numbers[0][place] for sample in numbers))
        of_sizes = {place for place, (_, kind, _) in enumerate(form.places) if kind != "amount"}

        def bounds_of(samples: Sequence[Sequence[int]]) -> Bounds:
            seen = [[self._value(base, sample[base.place]) for sample in samples
                     if sample[base.place] % base.step == base.rest] for base in self._bases]
            return Bounds(
                seen, {follows.variable for place, follows in enumerate(self._follow)
                       if follows is not None and place in of_sizes},
                lambda values: extent.shapes(outline, Sizes((), self._places(form, values), moved)))

        for by_ratio in (False, True):
            self._relate(columns, form, by_ratio)
            bounds = bounds_of(samples)
            # Sizes that are only legal together, such as 2 * n and 7 * n, follow from one variable.
            if bounds.are_free:
                break
        # Whether all sizes between those seen, and some beyond them, are legal. If not, the
        # outlines only look like one loop: a dimension of size 1 is broadcast in one of them.
        self.is_continuous = bounds.are_continuous
        # Variables of the wire are at least 1, so smaller values are shifted.
        self._shifts = [max(0, 1 - low) for low, _ in bounds.ends]
        self.symbols = [
            Symbol(f"size{number}", low + shift, high + shift)
            for number, ((low, high), shift) in enumerate(zip(bounds.ends, self._shifts))]

    def _relate(self, columns: Sequence[Sequence[int]], form: Form, by_ratio: bool) -> None:
        """Finds which sizes follow from which. By ratio: each size may be a variable's multiple.

        Not by ratio, the only varying size of a reshape is left to the daemon.
        """
        self._bases: List[_Base] = []
        self._follow: List[Optional[_Follows]] = [None] * len(columns)
        spread = [max(column) - min(column) for column in columns]
        varying = sorted(filter(spread.__getitem__, range(len(columns))), key=spread.__getitem__)
        self._rests = set() if by_ratio else _rests(form, varying)
        families: List[List[int]] = []  # places, the base's first
        for place in varying:
            if place in self._rests:
                continue
            for family in families:
                if _is_affine(columns[family[0]], columns[place], by_ratio):
                    family.append(place)
                    break
            else:
                families.append([place])
        for number, (place, *others) in enumerate(families):
            common = gcd(spread[place], *[spread[other] for other in others])
            step = spread[place] // common
            base = _Base(place, step, columns[place][0] % step)
            self._bases.append(base)
            values = [self._value(base, size) for size in columns[place]]
            for each in (place, *others):
                self._follow[each] = _Follows(number, *_affine(values, columns[each]))

    @staticmethod
    def _value(base: "_Base", size: int) -> int:
        return (size - base.rest) // base.step

    def fits(self, sizes: Sequence[int]) -> bool:
        """Returns whether the sizes follow from the variables as guessed, ignoring bounds."""
        values = [self._value(base, sizes[base.place]) for base in self._bases]
        for place, (size, fixed, follows) in enumerate(zip(sizes, self._fixed, self._follow)):
            if place not in self._rests and size != (
                    fixed if follows is None else
                    follows.factor * values[follows.variable] + follows.constant):
                return False
        return True

    def bindings(self, sizes: Sequence[int]) -> Optional[Dict[Symbol, int]]:
        """Returns the variables' values for sizes that fit; None: one is out of bounds."""
        bound = {symbol: self._value(base, sizes[base.place]) + shift
                 for symbol, base, shift in zip(self.symbols, self._bases, self._shifts)}
        inside = all(symbol.low <= value <= symbol.high for symbol, value in bound.items())
        return bound if inside else None

    def written(self, form: Form) -> "Sizes":
        """Returns the writer for the graph's message."""
        variables: List[Number] = [
            Dim({(symbol,): 1}) - shift for symbol, shift in zip(self.symbols, self._shifts)]
        return Sizes(self.symbols, self._places(form, variables))

    def _places(self, form: Form, values: Sequence[Number]) -> Dict[_Place, Number]:
        found: Dict[_Place, Number] = {
            place: follows.factor * values[follows.variable] + follows.constant
            for place, follows in zip(form.places, self._follow) if follows is not None}
        found.update({form.places[place]: _REST for place in self._rests})
        return found


def _rests(form: Form, varying: Sequence[int]) -> Set[int]:
    """Returns the places that are their reshape's only varying size.

    It is determined by the other sizes and the number of elements, whatever this depends on.
    """
    found: Dict[Node, List[int]] = {}
    for place in varying:
        node = form.places[place][0]
        if node.op == "reshape":
            found.setdefault(node, []).append(place)
    return {places[0] for places in found.values() if len(places) == 1}


def _is_affine(base: Sequence[int], column: Sequence[int], by_ratio: bool) -> bool:
    """Returns whether a column is factor * base + constant, by ratio with any rational factor."""
    other = next(i for i, size in enumerate(base) if size != base[0])
    rise, run = column[other] - column[0], base[other] - base[0]
    return bool(rise) and (by_ratio or rise % run == 0) and all(
        rise * (a - base[0]) == run * (b - column[0]) for a, b in zip(base, column))


def _affine(values: Sequence[int], column: Sequence[int]) -> Tuple[int, int]:
    """Returns the factor and the constant that give a column from values."""
    other = next(i for i, value in enumerate(values) if value != values[0])
    factor = (column[other] - column[0]) // (values[other] - values[0])
    return factor, column[0] - factor * values[0]


class Sizes:
    """Writes variables in place of sizes while `build` makes a graph's message."""

    def __init__(self, symbols: Sequence[Symbol], dims: Dict[_Place, Number],
                 moved: FrozenSet[Position] = frozenset()) -> None:
        """`moved` are begins that do not matter, since they are inputs."""
        self._symbols = symbols
        self._dims = dims
        self._moved = moved
        self._nodes = {node for node, _, _ in dims}

    def declare(self, graph: Any) -> None:
        """Adds the variables to the graph."""
        declare(graph, self._symbols)

    def has(self, node: Node) -> bool:
        """Returns whether one of a node's sizes is a variable."""
        return node in self._nodes

    def shape(self, node: Node) -> Tuple[Number, ...]:
        """Returns an input's shape."""
        return self._of(node, "shape", node.shape)

    def result(self, node: Node) -> Tuple[Number, ...]:
        """Returns the shape of the result of a slice or padding."""
        return self._of(node, "result", node.shape)

    def attributes(self, node: Node) -> Attributes:
        """Returns a node's attributes."""
        if node not in self._nodes:
            return node.attributes
        if node.op in MOVES:
            ((name, pairs),) = node.attributes
            before = self._of(node, "operand", node.operands[0].shape)
            written: List[Number] = []
            for axis, (old, new) in enumerate(zip(before, self.result(node))):
                begin: Number = 0 if (node, axis) in self._moved else pairs[2 * axis]
                written += [begin, begin + new if node.op == "shrink" else new - old - begin]
            return ((name, tuple(written)),)
        return tuple([(name, self._attribute(node, name, value))
                      for name, value in node.attributes])

    def _attribute(self, node: Node, name: str, value: Any) -> Any:
        if name == _AMOUNTS.get(node.op):
            amounts = self._of(node, "amount", _amounts(value))
            return amounts if isinstance(value, tuple) else amounts[0]
        return self._of(node, "shape", value) if name == "shape" else value

    def _of(self, node: Node, kind: str, shape: Sequence[int]) -> Tuple[Number, ...]:
        return tuple([self._dims.get((node, kind, axis), size) for axis, size in enumerate(shape)])
