"""Nodes of the lazy graph: in client memory, with known shapes and dtypes; nothing is sent."""

import itertools
import threading
import weakref
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

import numpy as np

from kiln import _rules, variables
from kiln._basics import conversion
from kiln._basics import dtypes as _dtypes
from kiln._basics.bindings import Bindings, merged
from kiln._basics.dtype_table import FORMATS
from kiln._basics.dtypes import DType
from kiln._basics.errors import InvalidArgument, KilnError
from kiln._basics.source import Source, user_source
from kiln._graph import dialects
from kiln._graph.dialects import Dialect
from kiln._ops.definition import Op
from kiln._ops.table import OPS
from kiln._placement import placement as placements
from kiln._placement.placement import Home, Placement, met
from kiln._session.handles import Buffer

Shape = Tuple[int, ...]
Attributes = Tuple[Tuple[str, Any], ...]

TABLE: Dict[str, Op] = {op.name: op for op in OPS}


class _Mode(threading.local):
    """The modes of the current thread."""

    # Each thread starts with these: class attributes are the defaults of a threading.local.
    gradients = True  # False within kiln.no_grad()
    trace: Any = None  # the kiln.jit trace in progress
    autocast: Any = None  # the operand casts of kiln.autocast()


mode = _Mode()


_NO_BINDINGS: Bindings = {}


calls = itertools.count()  # numbers the calls of traced functions


class TracedCall(NamedTuple):
    """A call of a traced function, whose results have values but no expression."""

    number: int  # counts all such calls, so a later one has a larger number
    name: str  # of the function


_made = itertools.count()


def moment() -> int:
    """Returns a number between those of the nodes made before and those made later."""
    return next(_made)


class Node:
    """An operation or a value.

    A node with a `buffer` or with `host` data is a value ("input" in a graph). So is a placeholder,
    which represents an argument or a captured tensor while kiln.jit traces.
    """

    __slots__ = ("__weakref__", "attributes", "bindings", "buffer", "checks", "cut", "dialect",
                 "dtype", "function", "home", "host", "kind", "leaf", "number", "op", "operands",
                 "placement", "retained", "shape", "source", "tracked", "variable")  # fmt: skip

    def __init__(self, op: str, dtype: DType, shape: Shape, operands: Tuple["Node", ...],
                 attributes: Attributes, source: Optional[Source]) -> None:
        self.op = op
        self.dtype = dtype
        self.shape = shape
        self.operands = operands
        self.attributes = attributes
        self.source = source  # in the user's program
        # The order of creation: larger than the operands' numbers.
        self.number: float = next(_made)
        # Nodes of one kind have one op, dtype and attributes; None: no kind was assigned.
        self.kind: Optional[int] = None
        self.buffer: Optional[Buffer] = None
        self.host: Optional[np.ndarray] = None  # not uploaded yet
        # The tensor that wants a gradient here, if any; and whether one is wanted here or below.
        self.leaf: Optional[weakref.ref[Any]] = None
        self.tracked = False
        # The tensor that retain_grad() was called on, if any: a result that wants its gradient.
        self.retained: Optional[weakref.ref[Any]] = None
        # Whether kiln.grad differentiates by this very node, so that no equal one may replace it.
        self.variable = False
        # The function of another package, with a derivative of its own, that has made it, if any.
        self.function: Any = None
        # The limits of its indices (checks.Check), if only the device knows the indices.
        self.checks: Optional[Tuple[Any, ...]] = None
        # The call of a traced function that a gradient would have to flow out of, if any.
        self.cut: Optional[TracedCall] = None
        # The place where it is computed, if its operands determine that; and for a placeholder, the
        # placement of the value.
        self.home: Home = None
        self.placement: Optional[Placement] = None
        # The known values of variables in this node and those below.
        self.bindings: Bindings = _NO_BINDINGS
        # The rules and the class of its tensors, if they are others than Kiln's own.
        self.dialect: Optional[Dialect] = None

    @property
    def is_value(self) -> bool:
        """Returns whether this is a value rather than an operation still to be run."""
        return self.op == "input" or self.buffer is not None


# The shape, dtype, attributes for the wire, and kind of each op's inputs seen so far. The key
# includes types, since 1, 1.0 and True are equal, and the sign of a zero. Attributes and kind are
# None if nodes with equal keys may need different ones: variables are equal whatever their values.
_inferred: Dict[Any, Tuple[Shape, DType, Optional[Attributes], Optional[int]]] = {}
_kinds = itertools.count()
_INFERRED_KEPT = 1 << 16
_OF_ANY_NUMBER = frozenset(
    op.name for op in OPS if any(attribute.type == "number" for attribute in op.attributes))


def make(name: str, operands: Tuple[Node, ...], attributes: Attributes = (),
         dtype: Optional[DType] = None) -> Node:
    """Returns a node of an op in the table. Errors of the rules are raised with the user's line."""
    if mode.autocast is not None:
        operands = mode.autocast.operands(name, operands)
    dialect = None
    if dialects.in_use:
        for operand in operands:
            if operand.dialect is not None:
                dialect = operand.dialect
                operands = dialect.operands(name, operands)
                break
    if attributes:
        types = [tuple(map(type, value)) if type(value) is tuple
                 else type(value) if value or type(value) is not float else str(value)
                 for _, value in attributes]
        key: Any = (name, attributes, dtype, *types,
                    *[(node.shape, node.dtype) for node in operands])
    elif len(operands) == 2:  # by far the most common case
        one, other = operands
        key = (name, dtype, one.shape, one.dtype, other.shape, other.dtype)
    else:
        key = (name, dtype, *[(node.shape, node.dtype) for node in operands])
    try:
        found = _inferred.get(key)
    except TypeError:  # not hashable, so no attribute that _infer accepts
        found = None
    source = user_source()
    if found is None:
        inferred = _infer(name, operands, attributes, dtype)
        found = (*inferred, None if inferred[2] is None else next(_kinds))
        if len(_inferred) >= _INFERRED_KEPT:
            _inferred.clear()
        _inferred[key] = found
    if found[2] is not None:
        attributes = found[2]
    node = Node(name, found[1], found[0], operands, attributes, source)
    node.kind = found[3]
    node.dialect = dialect
    if variables.in_use:
        _note_bindings(node)
    if placements.in_use:
        node.home = _home_of(name, operands)
    if mode.gradients and name != "detach":
        for operand in operands:
            if operand.tracked:
                node.tracked = True
            # Tuples compare by their first item, so the later call counts.
            if operand.cut is not None and (node.cut is None or operand.cut > node.cut):
                node.cut = operand.cut
    return node


def _home_of(name: str, operands: Tuple[Node, ...]) -> Home:
    home: Home = None
    # y may be on another device than x, and dy/dx is where x is.
    if name == "gradient" and isinstance(operands[1].home, str) and isinstance(
            operands[0].home, str):
        return operands[1].home
    for operand in operands:
        if operand.home is not None:
            home = met(home, operand.home)
    return home


def _infer(name: str, operands: Tuple[Node, ...], attributes: Attributes,
           dtype: Optional[DType]) -> Tuple[Shape, DType, Optional[Attributes]]:
    op = TABLE.get(name)
    if op is None:
        raise InvalidArgument(f'unknown op "{name}"')
    try:
        _rules.check_operand_count(op, len(operands))
        complete = _rules.complete_attributes(op, dict(attributes))
        shapes = [node.shape for node in operands]
        shape = _rules.infer_shape(op, shapes, complete)
        dtypes = [node.dtype for node in operands]
        result = _rules.infer_dtype(op, dtypes, dtype)
        _rules.check_constraints(_rules.Query(op, shapes, dtypes, complete, shape, result))
        if variables.in_use:
            shape = variables.without_values(shape)
            if any(_has_dims(value) for _, value in attributes):
                return shape, result, None
        if name in _OF_ANY_NUMBER:
            return shape, result, None
        return shape, result, tuple((key, complete[key]) for key, _ in attributes)
    except KilnError as error:
        # A new exception, so that the message begins with the op; it finds the line in the user's
        # program again.
        raise type(error)(f"{name}: {error.message}") from None


def _has_dims(value: Any) -> bool:
    several = isinstance(value, (tuple, list))
    return variables.has_dims(value) if several else isinstance(value, variables.Dim)


def _note_bindings(node: Node) -> None:
    known = _NO_BINDINGS
    for operand in node.operands:
        if operand.bindings:
            known = merged(known, operand.bindings)
    for _, attribute in node.attributes:
        values = variables.values_in(attribute)
        if values:
            known = merged(known, values)
    node.bindings = known


class Reshaped(NamedTuple):
    """A shape with variables, the known values of these, and the dialect of the value."""

    shape: Any
    bindings: Bindings
    dialect: Optional[Dialect] = None


def value(buffer: Buffer, like: Union[Node, Reshaped, None] = None) -> Node:
    """Returns the node of a value on the device, with the shape of `like`, if given."""
    node = Node("input", buffer.dtype, buffer.shape, (), (), None)
    node.buffer = buffer
    if buffer.placement is not None and buffer.is_chosen:
        node.home = buffer.placement.home
    if like is not None:
        node.shape, node.bindings = like.shape, like.bindings
        node.dialect = like.dialect
    return node


def host_value(array: np.ndarray, dtype: DType) -> Node:
    """Returns the node of a value in host memory; it is uploaded when it is first needed."""
    node = Node("input", dtype, array.shape, (), (), user_source())
    node.host = array
    return node


def placeholder(dtype: DType, shape: Shape) -> Node:
    """Returns a node that represents a value which a traced function is given at each call."""
    return Node("input", dtype, shape, (), (), None)


_scalars: Dict[Any, Node] = {}
# No float dtype overflows below the smallest of their largest numbers.
SURELY_FITS = min(float_format.largest for float_format in FORMATS.values())


def scalar(number: Any, dtype: DType) -> Node:
    """Returns the constant node of a number; raises InvalidArgument if it does not fit."""
    if isinstance(number, variables.Dim):
        return make("const", (), (("value", number),), dtype)
    # 1, 1.0 and True are equal, and so are 0.0 and -0.0, but they are different constants.
    key = (number, type(number), dtype, str(number) if number == 0 else "")
    node = _scalars.get(key)
    # Realising a tensor that is a number turns its node into a value on a connection.
    if node is None or node.is_value:
        typed = _typed(number, dtype)
        node = Node("const", dtype, (), (), (("value", typed),), None)
        if key in _scalars or len(_scalars) < _INFERRED_KEPT:
            _scalars[key] = node
    return node


def _typed(number: Any, dtype: DType) -> Any:
    if not isinstance(number, (int, float)):
        raise InvalidArgument(f"{number!r:.80} is not a number; a value of {dtype.name} is needed")
    if dtype is _dtypes.bool_:
        return bool(number)
    if dtype.is_float:
        if abs(number) > SURELY_FITS and conversion.overflows(float(number), dtype):
            raise InvalidArgument(
                f"{number!r} does not fit {dtype.name}; cast to a wider dtype first, or use "
                "kiln.inf")
        return float(number)
    low, high = conversion.integer_range(dtype)
    if isinstance(number, float) or not low <= number <= high:
        raise InvalidArgument(f"{number!r} is not a value of {dtype.name}")
    return int(number)


def stand_apart(node: Node) -> None:
    """Makes a node a copy of its former self: a variable that gradients may be requested for."""
    was = Node(node.op, node.dtype, node.shape, node.operands, node.attributes, node.source)
    was.tracked, was.variable, was.cut = node.tracked, node.variable, node.cut
    was.bindings, was.buffer, was.home = node.bindings, node.buffer, node.home
    was.kind, was.number, was.dialect = node.kind, node.number, node.dialect
    node.op, node.operands, node.attributes, node.variable = "contiguous", (was,), (), True
    node.kind = None
    # Between the number of its former self and those of its users.
    node.number += 2.0**-20


def alias(node: Node) -> Node:
    """Returns another node with the same value, without gradient."""
    if node.buffer is not None:
        return value(node.buffer, node)
    if node.host is not None:
        same = host_value(node.host, node.dtype)
        same.dialect = node.dialect
        return same
    return make("detach", (node,))
