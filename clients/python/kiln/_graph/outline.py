"""What an eager program is, but for the numbers that may change from one iteration to the next.

Two graphs with one outline are computed by one program once their numbers are its inputs. A number
is an operand that Python gave, where a slice begins, or how far a tensor is moved by padding.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from kiln import variables
from kiln._basics import dtypes
from kiln._basics.dtypes import DType
from kiln._graph import places
from kiln._graph.build import MOVES, topological
from kiln._graph.matmul_precision import current_code
from kiln._graph.node import Node
from kiln._placement import placement as placements
from kiln.variables import Dim, has_dims

# Small whole exponents, and those that lead to them in gradients, choose how a power is computed.
_LARGEST_SPECIAL_EXPONENT = 8


class Position(NamedTuple):
    """Where a number stands: as the operand of a node, or where a slice or padding begins."""

    node: Node
    place: int  # of the operand, or the axis


class Outline:
    """Nodes but numbers, operands first; what is fixed; the numbers and their positions."""

    __slots__ = ("key", "nodes", "numbers", "positions", "values")

    def __init__(self, nodes: List[Node], values: Set[Node], key: Tuple[Any, ...], numbers: Tuple[Any, ...],
                 positions: List[Position]) -> None:
        self.nodes = nodes
        self.values = values  # those of the nodes that are inputs
        self.key = key
        self.numbers = numbers
        self.positions = positions


def is_number(node: Node) -> bool:
    """Whether a node is a number of Python's that may become an input.

    Bools choose between two programs, and variables are inputs already.
    """
    return (node.op == "const" and node.dtype is not dtypes.bool_ and not node.shape
            and not isinstance(node.attributes[0][1], Dim))


def dtype_of(position: Position) -> DType:
    """In which dtype a number is an input."""
    node, place = position
    return dtypes.int64 if node.op in MOVES else node.operands[place].dtype


def moved_axes(node: Node) -> Sequence[Tuple[int, int, int]]:
    """The axes along which a slice or padding stands somewhere: with its begin and its length."""
    shape = node.operands[0].shape
    pairs = node.attributes[0][1]
    found = []
    for axis, size in enumerate(shape):
        begin, end = pairs[2 * axis], pairs[2 * axis + 1]
        length = end - begin if node.op == "shrink" else begin + end
        # Nothing of it is cut off or added: there is one place only.
        if length != (size if node.op == "shrink" else 0):
            found.append((axis, begin, length))
    return found


def outline(roots: Sequence[Node], again: Set[Node]) -> Optional[Outline]:
    """The outline of a program; None if sizes of it are variables already."""
    index: Dict[Node, int] = {}
    nodes: List[Node] = []
    key: List[Any] = [current_code()]
    numbers: List[Any] = []
    positions: List[Position] = []
    inputs: Dict[int, int] = {}
    values: Set[Node] = set()
    lies = placements.in_use
    for node in topological(roots, again):
        op = node.op
        if variables.in_use and _has_variables(node):
            return None
        stands = _stands(node, lies)
        if op == "input" or (node.buffer is not None and node not in again):
            same = inputs.setdefault(id(node if node.buffer is None else node.buffer), len(inputs))
            key.append((None, node.dtype, node.shape, same, stands))
            values.add(node)
        elif op == "const" and is_number(node):
            index[node] = -1
            continue
        else:
            if op in MOVES:
                attributes: Any = []
                for axis, begin, length in moved_axes(node):
                    numbers.append(begin)
                    positions.append(Position(node, axis))
                    attributes.append((axis, length))
                attributes = tuple(attributes)
            else:
                attributes = node.attributes if op != "const" else repr(node.attributes)
            operands: List[Any] = []
            for place, operand in enumerate(node.operands):
                number = index[operand]
                operands.append(number if number >= 0 else operand.dtype)
                if number < 0:
                    value = _value(operand)
                    if op == "pow" and place == 1 and _is_special(value):
                        operands.append(value)
                    else:
                        numbers.append(value)
                        positions.append(Position(node, place))
            key.append((op, node.dtype, attributes, tuple(operands), stands))
        index[node] = len(nodes)
        nodes.append(node)
    for node in roots:
        number = index[node]
        key.append(number if number >= 0 else (node.dtype, _value(node)))
    return Outline(nodes, values, tuple(key), tuple(numbers), positions)


def _stands(node: Node, lies: bool) -> Any:
    """What tells nodes apart that compute the same: gradients by them, and where they lie."""
    if lies and node.home is not None:
        at = places.where(node)
        return (node.tracked, node.variable, node.leaf is not None, node.home, at and at.number)
    if node.tracked or node.variable or node.leaf is not None:
        return node.tracked, node.variable, node.leaf is not None
    return None


def _has_variables(node: Node) -> bool:
    return has_dims(node.shape) or any(
        isinstance(value, Dim) or (isinstance(value, tuple) and has_dims(value))
        for _, value in node.attributes)


def _value(node: Node) -> Any:
    """A number as something that only equals the same number: 0.0 is not -0.0, NaN is NaN."""
    value = node.attributes[0][1]
    return value if value and value == value else repr(value)


def _is_special(exponent: Any) -> bool:
    return isinstance(exponent, str) or (
        abs(exponent) <= _LARGEST_SPECIAL_EXPONENT and exponent == int(exponent))
