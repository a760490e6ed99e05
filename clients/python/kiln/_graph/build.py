"""Makes the wire's graph from nodes."""

from typing import Any, Dict, Iterable, List, Sequence, Set, Tuple

from kiln import variables
from kiln._basics.bindings import Bindings, Symbol, merged
from kiln._basics.dtypes import DType, uint64
from kiln._basics.errors import InvalidArgument, TraceError
from kiln._basics.source import format_source
from kiln._graph.gradient_boundaries import GradientBoundaries
from kiln._graph.matmul_precision import current_code
from kiln._graph.node import TABLE, Attributes, Node
from kiln._graph.telling import Teller, Telling
from kiln._ops.table import OP_SET_VERSION
from kiln._placement import placement as placements
from kiln._proto.kiln.v1 import graph_pb2
from kiln.variables import Dim

# Ops with an attribute that says where something begins along each axis.
MOVES = frozenset(("shrink", "pad"))


class Built:
    """A graph, its input nodes in the order of their index, and known values of variables."""

    __slots__ = ("bindings", "graph", "homes", "inputs", "telling")

    def __init__(self, graph: Any, inputs: List[Node], bindings: Bindings,
                 homes: Dict[int, Any], telling: Telling) -> None:
        self.graph = graph
        self.inputs = inputs
        self.bindings = bindings  # values of the variables that are known
        self.homes = homes  # of the graph's nodes that have one, by number
        self.telling = telling  # how the last outputs report checks


def differentiated(roots: Iterable[Node]) -> Set[Node]:
    """Returns the realised nodes that must be computed again because a gradient needs them.

    A gradient needs the expression between y and x. Values that were read in between keep their
    expression as long as they are tracked.
    """
    again: Set[Node] = set()
    seen: Set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op == "gradient" and node.buffer is None:
            _mark_tracked(node.operands[0], again)
        if node.buffer is None or node in again:
            stack.extend(node.operands)
    return again


def _mark_tracked(y: Node, again: Set[Node]) -> None:
    stack = [y]
    while stack:
        node = stack.pop()
        if node in again or not node.tracked or node.leaf is not None:
            continue
        again.add(node)
        stack.extend(node.operands)


def topological(roots: Sequence[Node], again: Set[Node]) -> List[Node]:
    """Returns all nodes under the roots, operands first.

    Operands of values are left out, except of nodes in `again`.
    """
    order: List[Node] = []
    done: Set[Node] = set()
    # An explicit stack: graphs are deeper than Python's recursion limit.
    stack = list(reversed(roots))
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        if node.buffer is not None and node not in again:
            waiting = []
        else:
            waiting = [operand for operand in node.operands if operand not in done]
        if waiting:
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        done.add(node)
        order.append(node)
    return order


class GraphWriter:
    """Writes a graph's message."""

    def __init__(self, precision: Any) -> None:
        self.graph = graph_pb2.Graph(
            op_set_version=OP_SET_VERSION,
            float32_matmul_precision=current_code() if precision is None else precision)
        self.inputs: List[Node] = []

    def add_input(self, node: Node, shape: Sequence[Any]) -> int:
        """Adds an input for a value, with this shape in the graph; returns its number."""
        wire = self.graph.nodes.add(op="input", dtype=node.dtype.code)
        wire.attributes["index"].i = len(self.inputs)
        _set_shape(wire.attributes["shape"], shape)
        self.inputs.append(node)
        return len(self.graph.nodes) - 1

    def add(self, op: str, dtype: DType, operands: Sequence[int], **attributes: Any) -> int:
        """Adds an operation that has no node; returns its number."""
        wire = self.graph.nodes.add(op=op, dtype=dtype.code, operands=operands)
        _set_attributes(wire, dtype, tuple(attributes.items()))
        return len(self.graph.nodes) - 1


def build(roots: Sequence[Node], updates: Sequence[Tuple[Node, Node]] = (),
          fixed_inputs: Sequence[Node] = (), precision: Any = None, lifted: Any = None) -> Built:
    """Returns the graph with the outputs `roots`, then those that report checks.

    Equal nodes are written once. `updates` are pairs of a value and its replacement. `fixed_inputs`
    are the first inputs, in this order, whether they are used or not. `precision` is an earlier
    result of matmul_precision.current_code(); None: the current one. `lifted` are the numbers that
    are inputs (lifting.LiftedNumbers), if any.
    """
    ends = [*roots, *(new for _, new in updates)]
    again = differentiated(ends)
    order = topological([*fixed_inputs, *ends], again)
    boundaries = GradientBoundaries(order)
    writer = GraphWriter(precision)
    graph = writer.graph
    number: Dict[Node, int] = {}
    input_of_buffer: Dict[Any, int] = {}
    equal: Dict[Any, int] = {}
    apart: Dict[int, int] = {}
    sources: Dict[Any, str] = {}
    homes: Dict[int, Any] = {}
    teller = Teller(writer, homes)
    if lifted is not None:
        lifted.declare(writer)
    for node in order:
        if node.op == "input" or (node.buffer is not None and node not in again):
            # Tensors that share a buffer are one input, unless with_variable() gave one of them
            # another shape or a gradient distinguishes them.
            key = (id(node) if node.buffer is None else
                   (id(node.buffer), node.shape, boundaries.input_identity(node)))
            if key not in input_of_buffer:
                input_of_buffer[key] = writer.add_input(
                    node, node.shape if lifted is None else lifted.shape(node))
            number[node] = input_of_buffer[key]
            _note_home(homes, number[node], node)
            continue
        operands = [number[operand] for operand in node.operands]
        for place, operand in enumerate(node.operands):
            if boundaries.between(node, operand, place):
                operands[place] = _detached(graph, operands[place], operand, equal)
                _note_home(homes, operands[place], operand)
            elif lifted is not None and operand.op == "const" and lifted.has(node, place):
                operands[place] = lifted.operand(writer, node, place)
        attributes = node.attributes if lifted is None else lifted.attributes(node)
        moved = lifted.moved(writer, node, operands[0]) if (
            lifted is not None and node.op in MOVES) else None
        whole = (node.op, node.dtype, attributes if moved is None else moved, tuple(operands),
                 _numbers(node), boundaries.identity(node),
                 node.home if placements.in_use else None)
        index = equal.get(whole)
        if index is None:
            if boundaries.is_apart(node):
                first = len(graph.nodes)
                operands = [_own_copy(graph, node, operands[0], apart)]
                for copied in range(first, len(graph.nodes)):
                    _note_home(homes, copied, node)
            index = equal[whole] = moved if moved is not None else _add_node(
                graph, node, operands, attributes, sources)
        number[node] = index
        _note_home(homes, index, node)
        if node.checks is not None and node.buffer is None:
            teller.note(node, number)
    graph.outputs.extend(number[node] for node in roots)
    telling = teller.write(order, roots, number)
    for old, new in updates:
        graph.updates.add(input=number[old], value=number[new])
    bindings: Bindings = {}
    if variables.in_use:
        declare(graph, _symbols(order))
        for node in ends:
            bindings = merged(bindings, node.bindings)
    return Built(graph, writer.inputs, bindings, homes, telling)


def _note_home(homes: Dict[int, Any], number: int, node: Node) -> None:
    if placements.in_use and node.home is not None:
        homes[number] = node.home


def _detached(graph: Any, number: int, node: Node, equal: Dict[Any, int]) -> int:
    """Returns the number of a node's value without gradient."""
    index = equal.get(("detach", number))
    if index is None:
        graph.nodes.add(op="detach", dtype=node.dtype.code, operands=[number])
        index = equal["detach", number] = len(graph.nodes) - 1
    return index


# The daemon keeps equal nodes once. A node that must stay apart copies a copy made in another
# shape, with its own number of leading ones, more than any user writes.
_ONES_MIN = 4


def _own_copy(graph: Any, node: Node, operand: int, apart: Dict[int, int]) -> int:
    ones = apart[operand] = apart.get(operand, _ONES_MIN) + 1
    last = operand
    for op, shape in (("reshape", (1,) * ones + tuple(node.shape)), (node.op, None),
                      ("reshape", node.shape)):
        wire = graph.nodes.add(op=op, dtype=node.dtype.code, operands=[last])
        if shape is not None:
            _set_shape(wire.attributes["shape"], shape)
        elif op == "shard":
            # The leading ones are split over no axis of the mesh.
            spec = (0,) * ones + dict(node.attributes)["spec"]
            _set_attribute(wire.attributes["spec"], "ints", spec)
        last = len(graph.nodes) - 1
    return last


def _symbols(order: Sequence[Node]) -> Iterable[Symbol]:
    """Returns the variables used in nodes."""
    found: Dict[str, Symbol] = {}
    for node in order:
        numbers = [node.shape, *(value for _, value in node.attributes)]
        for number in numbers:
            for item in number if isinstance(number, (tuple, list)) else (number,):
                if not isinstance(item, Dim):
                    continue
                for symbol in item.symbols:
                    if found.setdefault(symbol.name, symbol) != symbol:
                        raise InvalidArgument(
                            f"two variables have one name: {found[symbol.name]!r} and "
                            f"{symbol!r}; variables of one name must have the same bounds")
    return found.values()


def declare(graph: Any, symbols: Iterable[Symbol]) -> None:
    """Writes a graph's variables in a fixed order, so that equal graphs have equal bytes."""
    for symbol in sorted(symbols):
        graph.variables.add(name=symbol.name, min=symbol.low, max=symbol.high)


def _numbers(node: Node) -> Any:
    # 1, 1.0 and True are equal in Python, and so are 0.0 and -0.0, but they are different
    # constants.
    return repr(node.attributes) if node.op == "const" else None


def _add_node(graph: Any, node: Node, operands: List[int], attributes: Attributes,
              sources: Dict[Any, str]) -> int:
    wire = graph.nodes.add(op=node.op, dtype=node.dtype.code, operands=operands)
    if node.source is not None:
        source = sources.get(node.source)
        if source is None:
            source = sources[node.source] = format_source(node.source)
        wire.source = source
    if attributes:
        _set_attributes(wire, node.dtype, attributes)
    return len(graph.nodes) - 1


def _set_attributes(wire: Any, dtype: DType, attributes: Attributes) -> None:
    types = {attribute.name: attribute.type for attribute in TABLE[wire.op].attributes}
    for name, value in attributes:
        if name == "value" and dtype is uint64 and value >= 1 << 63:
            value -= 1 << 64  # the int64 of the same bits
        _set_attribute(wire.attributes[name], types[name], value)


def _set_shape(attribute: Any, shape: Sequence[int]) -> None:
    # An empty shape must be set, too, and adding no dims does not set it.
    attribute.shape.SetInParent()
    for size in shape:
        _set_dim(attribute.shape.dims.add(), size)


def _set_dim(wire: Any, number: Any) -> None:
    if not isinstance(number, Dim):
        wire.size = number
        return
    terms = number.terms
    if number.constant == 0 and list(terms.values()) == [1]:
        (symbol,) = terms
        wire.variable = symbol.name
        return
    wire.sum.constant = number.constant
    for symbol in sorted(terms):
        wire.sum.terms.add(variable=symbol.name, factor=terms[symbol])


def _set_attribute(attribute: Any, kind: str, value: Any) -> None:
    if kind == "shape":
        _set_shape(attribute, value)
    elif isinstance(value, Dim):
        _set_dim(attribute.dim, value)
    elif kind == "ints" and variables.has_dims(value):
        _set_shape(attribute, value)
    elif kind == "ints":
        attribute.ints.SetInParent()
        attribute.ints.values.extend(value)
    elif isinstance(value, str):
        attribute.s = value
    # Precedes int, of which bool is a subclass.
    elif isinstance(value, bool):
        attribute.b = value
    elif isinstance(value, int) and kind != "float":
        attribute.i = value
    else:
        attribute.f = value


def require_no_placeholders(inputs: Iterable[Node]) -> None:
    """Raises TraceError if a graph depends on a placeholder of a traced function."""
    for node in inputs:
        if node.buffer is None and node.host is None:
            raise TraceError(
                "this tensor was made inside a function that kiln.jit traced and exists only "
                "there; return it from the function to use it outside")
