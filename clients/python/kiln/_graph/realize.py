"""Computing and reading values."""

from typing import Any, Container, FrozenSet, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from kiln import variables
from kiln._basics import conversion
from kiln._basics.bindings import Bindings, require
from kiln._basics.errors import FailedPrecondition, InvalidArgument, TraceError
from kiln._graph import build, live, places, plans, stages, telling
from kiln._graph import node as _node
from kiln._graph.node import Node, mode
from kiln._graph.outline import outline
from kiln._placement import placement as placements
from kiln._placement.mesh import Mesh
from kiln._placement.placement import Placement, ProgramHome, Stages, described, placed
from kiln._session import connection as connections
from kiln._session.stream import before_a_read


def realize(tensors: Iterable[Any], without: Container[int] = ()) -> None:
    """Computes tensors, and those that `live` adds, in one program for each home.

    Tensors whose id is in `without` are not computed along.
    """
    refuse_in_trace()
    state = [tensor._node for tensor in live.take_assigned()]
    nodes = [*[tensor._node for tensor in tensors], *state]
    lazy = [node for node in nodes if not node.is_value]
    if lazy:
        nodes += live.companions(lazy, without)
    realize_nodes(nodes, frozenset(state))


def realize_nodes(nodes: Iterable[Node], state: FrozenSet[Node] = frozenset()) -> None:
    """Computes nodes. Those in `state` are not marked failed by an index out of range."""
    unique = list(dict.fromkeys(nodes))
    for node in unique:
        # Host data is only uploaded.
        if node.op == "input" and node.buffer is None:
            buffer_of(node)
    roots = [node for node in unique if node.buffer is None]
    if not placements.in_use:
        _compute(roots, None, state)
        return
    groups = places.groups(roots)
    if stages.reach_devices(roots):
        # One program, so that nothing is computed twice.
        one = [node for home, own in groups if not isinstance(home, Mesh) for node in own]
        groups = [(None, one), *(group for group in groups if isinstance(group[0], Mesh))]
    for home, own in groups:
        _compute([node for node in own if node.buffer is None], home, state)


def _compute(roots: Sequence[Node], home: ProgramHome, state: FrozenSet[Node]) -> None:
    if not roots:
        return
    found = outline(roots)
    if found is None:
        _compute_with_variables(roots, home, state)
        return
    connection = connection_of(found.nodes)
    graph, nodes, bindings = plans.ready(connection, found, roots, home)
    connection, inputs = bind(nodes, graph.home)
    rules = graph.rules(found)
    lie = _lie(roots, graph.home, rules)
    program = graph.program(connection, inputs, lie)
    _run(roots, program, inputs, bindings, graph.home, lie, rules, state)


def _compute_with_variables(roots: Sequence[Node], home: ProgramHome,
                            state: FrozenSet[Node]) -> None:
    """Computes nodes whose sizes have the user's own variables."""
    built = build.build(roots)
    require(built.graph.variables, built.bindings)
    home = stages.home_of(built) or home
    connection, inputs = bind(built.inputs, home)
    rules = telling.rules(built.telling)
    lie = _lie(roots, home, rules)
    graph = places.with_sharding(
        built.graph, home, [buffer.placement for buffer in inputs], lie)
    program = connection.define(graph, devices=places.devices_of(home))
    _run(roots, program, inputs, built.bindings, home, lie, rules, state)


def _lie(roots: Sequence[Node], home: ProgramHome,
         rules: telling.Rules) -> List[Optional[Placement]]:
    """Returns the placements of the outputs: the roots, then those that report checks."""
    if home is None:
        return []
    return [*[places.where(node) for node in roots], *[None] * len(rules.outputs)]


def _run(roots: Sequence[Node], program: Any, inputs: Sequence[Any], bindings: Bindings,
         home: ProgramHome, lie: Sequence[Optional[Placement]], rules: telling.Rules,
         state: FrozenSet[Node]) -> None:
    outputs = [(node.dtype, variables.shape_at(node.shape, bindings)) for node in roots]
    results = program.connection.run(
        program, inputs, [*outputs, *rules.outputs], bindings=bindings, checks=len(rules.outputs))
    if home is not None:
        lies(results, lie, home)
    if rules.outputs:
        telling.expect(program.connection, rules, results, [
            number for number, node in enumerate(roots) if node in state])
    for node, buffer in zip(roots, results):
        settle(node, buffer)


def lies(results: Sequence[Any], placed_so: Sequence[Optional[Placement]],
         home: ProgramHome) -> None:
    """Records the placements of a program's results; None: the user chose none."""
    if isinstance(home, Stages):
        for buffer, placement, there in zip(results, placed_so, home.outputs):
            buffer.placement, buffer.is_chosen = placement or there, placement is not None
        return
    everywhere = placed(home) if home is not None else None
    for buffer, placement in zip(results, placed_so):
        buffer.placement, buffer.is_chosen = placement or everywhere, placement is not None


def settle(node: Node, buffer: Any) -> None:
    """Gives a node its value; drops the expression unless a gradient may need it."""
    node.buffer = buffer
    if not node.tracked or node.leaf is not None:
        node.op = "input"
        node.operands = ()
        node.attributes = ()
        node.checks = None


def connection_of(nodes: Iterable[Node]) -> Any:
    """Returns the connection of these values; the default connection if none is on a device yet."""
    for node in nodes:
        if node.buffer is not None:
            return node.buffer.connection
    return connections.default_connection()


def bind(nodes: Sequence[Node], home: ProgramHome = None,
         changing: Container[Node] = ()) -> Tuple[Any, List[Any]]:
    """Returns the connection of these values, and their buffers where the program runs.

    Uploads host data and copies values from elsewhere. For nodes in `changing`, which the program
    updates, the copy becomes the value.
    """
    connection = connection_of(nodes)
    if not placements.in_use:
        return connection, [buffer_of(node, connection) for node in nodes]
    if isinstance(home, Stages):
        each: Sequence[Optional[Placement]] = home.inputs
    else:
        each = [placed(home) if home is not None else None] * len(nodes)
    return connection, [_buffer_at(node, connection, wanted, node in changing)
                        for node, wanted in zip(nodes, each)]


def _buffer_at(node: Node, connection: Any, wanted: Optional[Placement], changes: bool) -> Any:
    buffer = node.buffer
    if buffer is None or buffer.connection is not connection:
        buffer = buffer_of(node, connection, wanted)
    at = buffer.placement
    if at is wanted or (at is not None and wanted is not None and (
            at.home is wanted.home or at.home == wanted.home)):
        return buffer
    here = connection.device  # values without a placement are there
    if (here if at is None else at.home) == (here if wanted is None else wanted.home):
        return buffer
    if changes:
        # Not marked as chosen: it moves to the next program's place as well.
        node.buffer = copy = connection.move(buffer, wanted)
        return copy
    if buffer.copies is None:
        buffer.copies = {}
    copied = buffer.copies.get(wanted)
    if copied is None:
        copied = buffer.copies[wanted] = connection.move(buffer, wanted)
    return copied


def buffer_of(node: Node, connection: Any = None, placement: Optional[Placement] = None) -> Any:
    """Returns the buffer of a value; uploads host data first, to `placement`."""
    # Another thread may upload it at the same time: it sets the buffer before it clears `host`.
    host = node.host
    if node.buffer is None:
        if host is None:
            build.require_no_placeholders([node])
        assert host is not None
        connection = connection or connections.default_connection()
        node.buffer = upload(connection, node, host, placement)
        # Two copies would double the memory of a data set.
        node.host = None
    elif connection is not None and node.buffer.connection is not connection:
        raise FailedPrecondition(
            f"tensors of two connections are used together ({connection} and "
            f"{node.buffer.connection}); copy one through NumPy, or make it again after "
            "kiln.connect()")
    return node.buffer


def upload(connection: Any, node: Node, host: np.ndarray, placement: Optional[Placement] = None,
           is_chosen: bool = False) -> Any:
    """Uploads the host data of a node; returns the buffer."""
    data: Any = host.reshape(-1).view(np.uint8)
    buffer = connection.upload(memoryview(data), node.dtype, node.shape, placement, is_chosen)
    # Lets checks raise for an index out of range at once, in the call.
    if node.dtype.is_integer and host.size:
        buffer.value_range = int(host.min()), int(host.max())
    return buffer


def elsewhere(given: Node, placement: Optional[Placement]) -> Node:
    """Returns a node of the same value placed at `placement`; None: on the session's device.

    The node is lazy within kiln.jit and for a lazy value, and gradients flow through it.
    """
    if given.home is None if placement is None else (
            places.is_on_device(given, placement) or
            (given.is_value and places.where(given) == placement)):
        return given
    if mode.trace is not None or given.tracked:
        return _within_program(given, placement)
    if given.buffer is None and given.host is None:
        if placement is not None and places.takes(placement.home, given.home):
            return places.lazily_placed(given, placement)
        realize_nodes([given])
    if given.buffer is None:
        connection = connections.default_connection()
        assert given.host is not None
        return _node.value(upload(connection, given, given.host, placement, is_chosen=True), given)
    connection = given.buffer.connection
    return _node.value(connection.move(given.buffer, placement, placement is not None), given)


def _within_program(given: Node, placement: Optional[Placement]) -> Node:
    if placement is not None and places.takes(placement.home, given.home):
        return places.lazily_placed(given, placement)
    if placement is not None and isinstance(placement.home, str) and isinstance(given.home, str):
        return stages.sent(given, placement.home)
    moves = f"{described(given.home)} to {described(placement.home if placement else None)}"
    if mode.trace is not None:
        raise TraceError(
            f"a tensor moves from {moves} inside a function that kiln.jit traces; only between "
            "devices that tensors were placed on can it do so. Move the tensor before the call, or "
            "the result after it")
    raise InvalidArgument(
        f"a tensor that a gradient flows through moves from {moves}, but gradients do not flow "
        "between programs; detach() it first")


def read(node: Node, tensor: Any) -> np.ndarray:
    """Returns the value of a tensor as an array."""
    refuse_in_trace()
    if node.host is not None:
        if node.dtype.numpy is None:
            return conversion.from_bytes(node.host.tobytes(), node.dtype, node.shape)
        return node.host.copy()
    if node.buffer is not None:
        data = node.buffer.connection.download(node.buffer)
    else:
        with before_a_read():
            realize([tensor])
            node = tensor._node
            assert node.buffer is not None
            data = node.buffer.connection.download(node.buffer)
    return conversion.from_bytes(data, node.dtype, node.buffer.shape)


def read_bytes(tensor: Any) -> Any:
    """Returns the bytes of a tensor's value: row-major, little-endian, in its dtype."""
    refuse_in_trace()
    if tensor._node.host is None and tensor._node.buffer is None:
        realize([tensor])
    node = tensor._node
    if node.host is not None:
        return memoryview(node.host.reshape(-1).view(np.uint8))
    return node.buffer.connection.download(node.buffer)


def created(node: Node, data: Any) -> None:
    """Records a tensor made of host data; raises TraceError if kiln.jit cannot watch it."""
    if mode.trace is None:
        return
    mode.trace.created(node)
    if isinstance(data, np.ndarray) and data.ndim > 0:
        raise TraceError(
            "a NumPy array is used inside a function that kiln.jit traces; later calls would not "
            "see changes to it. Pass it as an argument, or convert it to a tensor outside")


def refuse_in_trace(reader: str = "") -> None:
    """Raises TraceError while kiln.jit traces: there are no values then. `reader` asked for one."""
    if mode.trace is not None:
        by = f" by {reader}" if reader else ""
        raise TraceError(
            f"a value is read inside a function that kiln.jit traces{by}; only shapes and dtypes "
            "are known during tracing. Return the tensor and read it outside, or choose with "
            "kiln.where")
