"""Sizes that change from one iteration to the next, as variables of one program.

Two outlines have one *form* if they differ only in sizes and numbers. From two or more of a form, a
guess says which sizes follow from which: each is a variable, or factor * variable + constant. The
daemon proves for each value that the program is right there, so a wrong guess only costs time.
"""

from math import prod
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from kiln._basics.bindings import Symbol
from kiln._graph.build import MOVES, declare
from kiln._graph.node import TABLE, Attributes, Node
from kiln._graph.outline import Outline, checked, is_fixed, moved_axes, stands
from kiln.variables import Dim, Number

# Smaller sizes stay numbers: size 1 broadcasts, and size 0 has no elements.
SIZE_MIN = 2
# A program does the work of its variables' largest sizes. The bounds reach at least this far, and
# twice as far as the sizes seen, while all tensors together have at most this many elements.
_REACH_MIN = 128
_CHEAP_ELEMENTS = 1 << 22

# The attribute of an op that has sizes.
_SIZED = {op.name: part.name for op in TABLE.values() for part in op.attributes
          if part.type == "shape" or (op.name, part.name) == ("interpolate", "size")}

# In a reshape's shape: the size that is left.
_REST = -1

# One size: a node, which shape it belongs to ("shape", or a slice's or padding's "operand" or
# "result"), and the axis.
_Place = Tuple[Node, str, int]


class Form(NamedTuple):
    """The common key of outlines of one form, and the sizes of one of them."""

    key: Tuple[Any, ...]
    sizes: Tuple[int, ...]
    places: List[_Place]


def form_of(outline: Outline, roots: Sequence[Node]) -> Form:
    """Returns the form of an outline."""
    key: List[Any] = [outline.key[0]]
    sizes: List[int] = []
    places: List[_Place] = []

    def note(node: Node, kind: str, shape: Sequence[int]) -> Tuple[Optional[int], ...]:
        for axis, size in enumerate(shape):
            if size >= SIZE_MIN:
                sizes.append(size)
                places.append((node, kind, axis))
        return tuple([size if size < SIZE_MIN else None for size in shape])

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
            given = (tuple([axis for axis, _, _ in moved_axes(node)]),
                     note(node, "operand", node.operands[0].shape),
                     note(node, "result", node.shape))
        elif op == "const":
            given = repr(given)
        elif op in _SIZED:
            given = tuple([(name, note(node, "shape", value) if name == _SIZED[op] else value)
                           for name, value in given])
        key.append((op, node.dtype, given, operands, stands(node)))
        if node.checks is not None and node.buffer is None:
            key.append(checked(node, index))
    key.extend(index.get(root, (root.dtype, repr(root.attributes))) for root in roots)
    return Form(tuple(key), tuple(sizes), places)


def _operand(index: Dict[Node, int], node: Node, place: int) -> Any:
    operand = node.operands[place]
    if operand in index:
        return index[operand]
    return operand.dtype, repr(operand.attributes) if is_fixed(node, place) else None


class Guess:
    """A guess of how the sizes of a form follow from variables."""

    def __init__(self, samples: Sequence[Sequence[int]], outline: Outline, form: Form,
                 size_min: int = SIZE_MIN) -> None:
        """Guesses from the sizes of several outlines; `outline` and `form` are the last one's.

        `size_min`: the least value of variables that have not been smaller.
        """
        self._size_min = max(size_min, SIZE_MIN)
        columns = list(zip(*samples))
        spread = [max(column) - min(column) for column in columns]
        self._bases: List[int] = []  # the places whose size is itself a variable
        # By place: the variable's number, the factor, the constant.
        self._follow: List[Optional[Tuple[int, int, int]]] = [None] * len(columns)
        varying = [place for place in range(len(columns)) if spread[place]]
        self._rests = _rests(form, varying)
        for place in sorted(varying, key=spread.__getitem__):
            if place in self._rests:
                continue
            for number, base in enumerate(self._bases):
                found = _affine(columns[base], columns[place])
                if found is not None:
                    self._follow[place] = (number, *found)
                    break
            else:
                self._follow[place] = (len(self._bases), 1, 0)
                self._bases.append(place)
        self._fixed = form.sizes
        self.symbols = self._bounded(
            [columns[base] for base in self._bases], outline, form)

    def size_max(self, samples: Sequence[Sequence[int]]) -> int:
        """Returns the least `size_min` with which no variable may be smaller than it has been."""
        return max([min(sample[base] for sample in samples) for base in self._bases],
                   default=SIZE_MIN)

    def fits(self, sizes: Sequence[int]) -> bool:
        """Returns whether the sizes follow from the variables as guessed, ignoring bounds."""
        for place, (size, fixed, follows) in enumerate(zip(sizes, self._fixed, self._follow)):
            if place not in self._rests and size != (
                    fixed if follows is None else
                    follows[1] * sizes[self._bases[follows[0]]] + follows[2]):
                return False
        return True

    def bindings(self, sizes: Sequence[int]) -> Optional[Dict[Symbol, int]]:
        """Returns the variables' values for sizes that fit; None: one is out of bounds."""
        bound = {symbol: sizes[base] for symbol, base in zip(self.symbols, self._bases)}
        inside = all(symbol.low <= value <= symbol.high for symbol, value in bound.items())
        return bound if inside else None

    def written(self, form: Form) -> "Sizes":
        """Returns the writer for the graph's message."""
        return Sizes(self.symbols, {
            place: self._dim(number) for number, place in enumerate(form.places)})

    def _dim(self, place: int) -> Number:
        follows = self._follow[place]
        if place in self._rests:
            return _REST
        if follows is None:
            return self._fixed[place]
        number, factor, constant = follows
        return Dim({(self.symbols[number],): factor, (): constant})

    def _bounded(self, seen: Sequence[Sequence[int]], outline: Outline, form: Form) -> List[Symbol]:
        sizes_min = [self._size_min] * len(seen)
        sizes_max = [_reach(sizes) for sizes in seen]
        elements = sum(prod(node.shape) for node in outline.nodes)
        for number, sizes in enumerate(seen):
            elements = elements * sizes_max[number] // sizes[-1]
        if elements > _CHEAP_ELEMENTS:
            # A size that grows is likely to go on growing; one that does not, such as an epoch's
            # last batch, is not.
            sizes_max = [2 * sizes[-1] if sizes[-1] > max(sizes[:-1]) else max(sizes)
                         for sizes in seen]
        for follows in self._follow:
            if follows is not None:
                number, factor, constant = follows
                # factor * variable + constant >= SIZE_MIN
                if factor > 0:
                    sizes_min[number] = max(sizes_min[number], -((constant - SIZE_MIN) // factor))
                else:
                    sizes_max[number] = min(sizes_max[number], (constant - SIZE_MIN) // -factor)
        self._keep_slices_inside(sizes_max, form)
        return [Symbol(f"size{number}", min(low, min(sizes)), max(high, max(sizes)))
                for number, (low, high, sizes) in enumerate(zip(sizes_min, sizes_max, seen))]

    def _keep_slices_inside(self, sizes_max: List[int], form: Form) -> None:
        number_of = {place: number for number, place in enumerate(form.places)}
        for node in {node for node, kind, _ in form.places if kind == "result"}:
            if node.op != "shrink":
                continue
            for axis, _, _ in moved_axes(node):
                length = self._follow_at(number_of.get((node, "result", axis)))
                whole = self._follow_at(number_of.get((node, "operand", axis)))
                if length is not None and whole is None and length[1] > 0:
                    size = node.operands[0].shape[axis]
                    sizes_max[length[0]] = min(
                        sizes_max[length[0]], (size - length[2]) // length[1])

    def _follow_at(self, place: Optional[int]) -> Optional[Tuple[int, int, int]]:
        return None if place is None else self._follow[place]


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


def _reach(sizes: Sequence[int]) -> int:
    return max(_REACH_MIN, 1 << (2 * max(sizes) - 1).bit_length())


def _affine(base: Sequence[int], column: Sequence[int]) -> Optional[Tuple[int, int]]:
    """Returns the factor and constant that give a column from a varying base, or None."""
    other = next(i for i, size in enumerate(base) if size != base[0])
    factor, rest = divmod(column[other] - column[0], base[other] - base[0])
    constant = column[0] - factor * base[0]
    if rest or not factor or any(
            factor * a + constant != b for a, b in zip(base, column)):
        return None
    return factor, constant


class Sizes:
    """Writes variables in place of sizes while `build` makes a graph's message."""

    def __init__(self, symbols: Sequence[Symbol], dims: Dict[_Place, Number]) -> None:
        self._symbols = symbols
        self._dims = dims

    def declare(self, graph: Any) -> None:
        """Adds the variables to the graph."""
        declare(graph, self._symbols)

    def shape(self, node: Node) -> Tuple[Number, ...]:
        """Returns an input's shape."""
        return self._of(node, "shape", node.shape)

    def result(self, node: Node) -> Tuple[Number, ...]:
        """Returns the shape of the result of a slice or padding."""
        return self._of(node, "result", node.shape)

    def attributes(self, node: Node) -> Attributes:
        """Returns a node's attributes."""
        if node.op in MOVES:
            ((name, pairs),) = node.attributes
            before = self._of(node, "operand", node.operands[0].shape)
            written: List[Number] = []
            for axis, (old, new) in enumerate(zip(before, self.result(node))):
                begin: Number = pairs[2 * axis]
                written += [begin, begin + new if node.op == "shrink" else new - old - begin]
            return ((name, tuple(written)),)
        sized = _SIZED.get(node.op)
        if sized is None:
            return node.attributes
        return tuple([(name, self._of(node, "shape", value) if name == sized else value)
                      for name, value in node.attributes])

    def _of(self, node: Node, kind: str, shape: Sequence[int]) -> Tuple[Number, ...]:
        return tuple([self._dims.get((node, kind, axis), size) for axis, size in enumerate(shape)])
