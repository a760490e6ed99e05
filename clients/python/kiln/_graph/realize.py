"""Computing and reading values."""

import weakref
from typing import Any, Dict, Iterable, List, Sequence, Tuple

import numpy as np

from kiln import variables
from kiln._basics import conversion
from kiln._basics.bindings import require
from kiln._basics.errors import FailedPrecondition, TraceError
from kiln._graph import build
from kiln._graph.node import Node, mode
from kiln._session import connection as connections

# Tensors that were assigned a lazy value. They are computed together with whatever is computed
# next, so that state (running statistics, weights, moments) costs no program of its own and no
# chain of updates grows.
_pending: Dict[int, "weakref.ref[Any]"] = {}


def assigned(tensor: Any) -> None:
    """Takes note that `tensor` was given a lazy value."""
    if mode.trace is None and not tensor._node.is_value:
        _pending[id(tensor)] = weakref.ref(tensor)


def _take_pending() -> List[Any]:
    tensors = [reference() for reference in list(_pending.values())]
    _pending.clear()
    return [tensor for tensor in tensors if tensor is not None]


def realize(tensors: Iterable[Any]) -> None:
    """Computes tensors, and what was assigned before, in one program."""
    refuse_in_trace()
    nodes = [tensor._node for tensor in [*tensors, *_take_pending()]]
    unique = list(dict.fromkeys(nodes))
    for node in unique:
        # Host data has nothing to compute; it is uploaded.
        if node.op == "input" and node.buffer is None:
            buffer_of(node)
    roots = [node for node in unique if node.buffer is None]
    if not roots:
        return
    built = build.build(roots)
    outputs = [(node.dtype, variables.shape_at(node.shape, built.bindings)) for node in roots]
    require(built.graph.variables, built.bindings)
    connection, inputs = bind(built.inputs)
    program = connection.define(built.graph)
    results = connection.run(program, inputs, outputs, bindings=built.bindings)
    for node, buffer in zip(roots, results):
        settle(node, buffer)


def settle(node: Node, buffer: Any) -> None:
    """Gives a node its value; forgets the expression unless a gradient may need it."""
    node.buffer = buffer
    if not node.tracked or node.leaf is not None:
        node.op = "input"
        node.operands = ()
        node.attributes = ()


def bind(nodes: Sequence[Node]) -> Tuple[Any, List[Any]]:
    """The connection on which these values are, and their buffers; uploads what is not there."""
    connection = next((node.buffer.connection for node in nodes if node.buffer is not None), None)
    if connection is None:
        connection = connections.default_connection()
    return connection, [buffer_of(node, connection) for node in nodes]


def buffer_of(node: Node, connection: Any = None) -> Any:
    """The buffer of a value; uploads it if need be."""
    if node.buffer is None:
        if node.host is None:
            build.require_no_placeholders([node])
        assert node.host is not None
        connection = connection or connections.default_connection()
        data: Any = node.host.reshape(-1).view(np.uint8)
        node.buffer = connection.upload(memoryview(data), node.dtype, node.shape)
        # So that an index out of range is an error here, where its value is known.
        if node.dtype.is_integer and node.host.size:
            node.buffer.least_most = int(node.host.min()), int(node.host.max())
        # The device has it now; two copies would double the memory of a data set.
        node.host = None
    elif connection is not None and node.buffer.connection is not connection:
        raise FailedPrecondition(
            f"tensors of two connections meet ({connection} and {node.buffer.connection}); move "
            "one over NumPy, or make it again after kiln.connect()")
    return node.buffer


def read(node: Node, tensor: Any) -> np.ndarray:
    """The value of a tensor as an array."""
    refuse_in_trace()
    if node.host is not None:
        if node.dtype.numpy is None:
            return conversion.from_bytes(node.host.tobytes(), node.dtype, node.shape)
        return node.host.copy()
    if node.buffer is None:
        realize([tensor])
        node = tensor._node
    assert node.buffer is not None
    data = node.buffer.connection.download(node.buffer)
    return conversion.from_bytes(data, node.dtype, node.buffer.shape)


def read_bytes(tensor: Any) -> Any:
    """The bytes of a tensor's value as they travel: row-major, little-endian, in its own dtype."""
    refuse_in_trace()
    if tensor._node.host is None and tensor._node.buffer is None:
        realize([tensor])
    node = tensor._node
    if node.host is not None:
        return memoryview(node.host.reshape(-1).view(np.uint8))
    return node.buffer.connection.download(node.buffer)


def created(node: Node, data: Any) -> None:
    """Takes note of a tensor made from host data; raises where kiln.jit cannot watch that data."""
    if mode.trace is None:
        return
    mode.trace.created(node)
    if isinstance(data, np.ndarray) and data.ndim > 0:
        raise TraceError(
            "a NumPy array is used inside a function that kiln.jit traces; later calls would not "
            "see it change. Pass it as an argument, or make a tensor of it outside")


def refuse_in_trace(reader: str = "") -> None:
    """Raises while kiln.jit traces: then there are no values. `reader` is what asked for one."""
    if mode.trace is not None:
        by = f" by {reader}" if reader else ""
        raise TraceError(
            f"a value is read inside a function that kiln.jit traces{by}: there are only shapes "
            "and dtypes while it is traced. Return the tensor and read it outside, or choose with "
            "kiln.where")
