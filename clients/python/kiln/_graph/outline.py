"""The outline of an eager program: all but the numbers that may change between iterations.

Two graphs with one outline are computed by one program once their numbers are its inputs. A number
is an operand given as a Python number, the begin of a slice, or the amount of padding that moves a
tensor.
"""

import operator
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from kiln import variables
from kiln._basics import dtypes
from kiln._basics.dtypes import DType
from kiln._graph import checks, places
from kiln._graph.build import MOVES, differentiated
from kiln._graph.matmul_precision import current_code
from kiln._graph.node import Node
from kiln._placement import placement as placements
from kiln.variables import Dim, has_dims

# Small whole exponents, and those that lead to them in gradients, select how a power is computed.
_LARGEST_SPECIAL_EXPONENT = 8


class Position(NamedTuple):
    """The position of a number: an operand of a node, or the begin of a slice or padding."""

    node: Node
    place: int  # of the operand, or the axis


class Outline:
    """All nodes except numbers, operands first; the key; the numbers and their positions."""

    __slots__ = ("key", "nodes", "numbers", "positions", "values")

    def __init__(self, nodes: List[Node], values: Set[Node], key: Tuple[Any, ...],
                 numbers: Tuple[Any, ...], positions: List[Position]) -> None:
        self.nodes = nodes
        self.values = values  # the nodes that are inputs
        self.key = key
        self.numbers = numbers
        self.positions = positions


def is_number(node: Node) -> bool:
    """Returns whether a node is a Python number that may become an input.

    Bools choose between two programs; variables are inputs already; 8-bit floats have few values
    and are rounded differently as inputs.
    """
    return (node.op == "const" and node.dtype is not dtypes.bool_ and not node.shape
            and node.dtype not in dtypes.FLOAT8
            and not isinstance(node.attributes[0][1], Dim))


def dtype_of(position: Position) -> DType:
    """Returns the dtype in which a number is an input."""
    node, place = position
    return dtypes.int64 if node.op in MOVES else node.operands[place].dtype


class Move(NamedTuple):
    """A slice or padding along one axis."""

    axis: int
    begin: int
    length: int  # of the slice, or of both paddings
    is_whole: bool  # nothing is cut off or added, so only one begin is possible


def moves(node: Node) -> Sequence[Move]:
    """Returns what a slice or padding does along each axis."""
    pairs = node.attributes[0][1]
    found = []
    for axis, size in enumerate(node.operands[0].shape):
        begin, end = pairs[2 * axis], pairs[2 * axis + 1]
        length = end - begin if node.op == "shrink" else begin + end
        found.append(Move(axis, begin, length, length == (size if node.op == "shrink" else 0)))
    return found


def is_whole(position: Position) -> bool:
    """Returns whether a position is the begin of a slice or padding that leaves its axis whole."""
    node, place = position
    return node.op in MOVES and moves(node)[place].is_whole


def outline(roots: Sequence[Node]) -> Optional[Outline]:
    """Returns the outline of a program; None if some sizes are variables already."""
    again: Set[Node] = set()
    operations, requests = _reached(roots, again)
    if requests:
        again = differentiated(roots)
        if any(node.buffer is not None for node in again):
            operations, _ = _reached(roots, again)
    made = _Outliner(again)
    made.add(operations)
    found = made.finished(roots)
    return None if variables.in_use and any(map(_has_variables, found.nodes)) else found


_by_number = operator.attrgetter("number")


def _reached(roots: Sequence[Node], again: Set[Node]) -> Tuple[List[Node], bool]:
    """Returns the operations under the roots, operands first, and whether gradients are requested.

    Sorts by the order of creation, which is faster than another walk.
    """
    found = {root for root in roots if root.operands}
    stack = list(found)
    requests = False
    while stack:
        node = stack.pop()
        if node.op == "gradient":
            requests = True
        for operand in node.operands:
            if operand.operands and operand not in found and (
                    operand.buffer is None or operand in again):
                found.add(operand)
                stack.append(operand)
    return sorted(found, key=_by_number), requests


class _Outliner:
    """Builds an outline."""

    def __init__(self, again: Set[Node]) -> None:
        self._nodes: List[Node] = []
        self._again = again
        self._values: Set[Node] = set()
        self._index: Dict[Node, int] = {}
        self._key: List[Any] = [current_code()]
        self._numbers: List[Any] = []
        self._positions: List[Position] = []
        self._buffers: Dict[int, int] = {}

    def add(self, operations: Sequence[Node]) -> None:
        """Adds operations, and their sources where they are first used."""
        index, nodes, key = self._index, self._nodes, self._key
        lies = placements.in_use
        for node in operations:
            if node.op in MOVES:
                self._add_move(node)
            elif node.kind is not None:
                key.append(node.kind)
            else:
                key.append((node.op, node.dtype, repr(node.attributes)))
            key.append(len(node.operands))
            for place, operand in enumerate(node.operands):
                number = index.get(operand)
                if number is None:
                    number = self._add_source(operand)
                key.append(number)
                if number < 0:
                    self._add_number(node, place, operand)
            index[node] = len(nodes)
            nodes.append(node)
            if lies:
                key.append(stands(node))
            elif node.tracked or node.variable or node.leaf is not None:
                # Below all operand numbers.
                key.append(-2 - node.tracked - 2 * node.variable - 4 * (node.leaf is not None))
            if node.checks is not None and node.buffer is None:
                key.append(checked(node, index))

    def finished(self, roots: Sequence[Node]) -> Outline:
        """Returns the outline with these roots."""
        for node in roots:
            number = self._index.get(node)
            if number is None:
                number = self._add_source(node)
            self._key.append(number if number >= 0 else (node.dtype, _value(node)))
        return Outline(self._nodes, self._values, tuple(self._key), tuple(self._numbers),
                       self._positions)

    def _add_source(self, node: Node) -> int:
        if is_number(node):
            self._index[node] = -1
            return -1
        number = self._index[node] = len(self._nodes)
        self._nodes.append(node)
        apart = stands(node)
        if node.op == "input" or (node.buffer is not None and node not in self._again):
            self._values.add(node)
            # Tensors that share a buffer are one input.
            same = self._buffers.setdefault(
                id(node if node.buffer is None else node.buffer), len(self._buffers))
            self._key.append((node.dtype, node.shape, same, apart))
        else:
            self._key.append((node.op, node.dtype, repr(node.attributes), apart))
        return number

    def _add_move(self, node: Node) -> None:
        self._key += (node.op, node.dtype)
        for axis, begin, length, whole in moves(node):
            self._numbers.append(begin)
            self._positions.append(Position(node, axis))
            self._key += (length, whole)

    def _add_number(self, node: Node, place: int, operand: Node) -> None:
        self._key.append(operand.dtype)
        if is_fixed(node, place):
            self._key.append((_value(operand),))
        else:
            self._numbers.append(_value(operand))
            self._positions.append(Position(node, place))


def checked(node: Node, index: Dict[Node, int]) -> Tuple[Any, ...]:
    """Returns the part of a key that distinguishes equal nodes with different checks of indices."""
    return tuple([(index[check.indices], checks.form_of(check)) for check in node.checks or ()])


def stands(node: Node) -> Any:
    """Distinguishes nodes that compute the same by their gradients and their device or mesh."""
    gradient = node.tracked, node.variable, node.leaf is not None
    if node.home is None:
        return gradient
    at = places.where(node)
    return (*gradient, node.home, at and at.number)


def _has_variables(node: Node) -> bool:
    return has_dims(node.shape) or any(
        isinstance(value, Dim) or (isinstance(value, tuple) and has_dims(value))
        for _, value in node.attributes)


def _value(node: Node) -> Any:
    """Returns a key that equals only the same number's: 0.0 differs from -0.0, NaN equals NaN."""
    value = node.attributes[0][1]
    return value if value and value == value else repr(value)


def is_fixed(node: Node, place: int) -> bool:
    """Returns whether a number selects how the node is computed, and so is never an input."""
    if node.op != "pow" or place != 1:
        return False
    exponent = node.operands[1].attributes[0][1]
    return bool(abs(exponent) <= _LARGEST_SPECIAL_EXPONENT and exponent == int(exponent))
