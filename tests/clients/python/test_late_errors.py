"""Calls that kilnd would reject are rejected when the node is built, in the user's own line.

Every op of the table is called with all kinds of changes to a legal call: other dtypes, ranks and
sizes of operands, other attributes. Calls that the client accepts are then sent to kilnd, which
must accept them, too. Nothing is compiled: the graph ends in a node of an op that does not exist,
and kilnd reads nodes in order.
"""

import itertools

import grpc
import numpy as np
import pytest

import kiln
from kiln._basics import dtypes as _dtypes
from kiln._graph import node as _node
from kiln._graph.build import build
from kiln._graph.node import TABLE
from kiln._proto.kiln.v1 import program_pb2
from kiln._session.rpc import Stub
from kiln._session.stream import from_rpc
from op_table.row import ALL
from op_table.table import ROWS
from test_op_table import accepts, cases_for, domain_of

INTERNAL = ("const",)  # made of numbers that were checked; test_a_number_that_does_not_fit
SENTINEL = "an_op_that_there_is_not"
LARGEST = 2000  # elements of the operands of a legal call that is varied
DTYPES = ("float32", "float16", "int64", "uint64", "uint32", "bool", "float8_e5m2")
VALUES = {
    "int": (-100, -1, 0, 1, 2, 100, 1 << 70, 1.5, "x", True, (1,), np.int64(1), None),
    "float": (-1, 0, 0.5, 2.0, float("nan"), float("inf"), "x", True, (1.0,), np.float32(0.5)),
    "bool": (True, 1, "x", np.True_, 0.5),
    "string": ("x", "", 1, None),
    "number": (1, 1.5, True, "x", (1,), 1e300, float("nan"), -1, 300, 1 << 63, 1 << 64),
}  # fmt: skip
LISTS = ((), (0,), (1, 1), (-1, 0), (0, 0), (-9,), (1.5,), ("x",), (True,), 3, "x", None,
         (1 << 70,), (np.int64(1),))  # fmt: skip


def legal(name):
    """Returns some valid calls of an op, as (dtypes, shapes, attributes)."""
    found = []
    for dtype in ALL:
        if dtype in ROWS[name].refused or not accepts(name, dtype):
            continue
        for case in cases_for(name, dtype):
            if len(found) < 4 and max([np.prod(s) for s in case.shapes] or [1]) <= LARGEST:
                dtypes = [domain_of(ROWS[name], i).dtype or dtype
                          for i in range(len(case.shapes))]
                found.append((dtypes, list(case.shapes), dict(case.attributes)))
        if found:
            break
    return found


def other_shapes(shape):
    yield ()
    yield (*shape, 2)
    yield (1, *shape)
    if shape:
        yield shape[1:]
        yield shape[:-1]
    for i, size in enumerate(shape):
        for other in {0, 1, size + 1} - {size}:
            yield (*shape[:i], other, *shape[i + 1 :])


def other_values(attribute, value):
    if attribute.type not in ("ints", "shape"):
        yield from VALUES[attribute.type]
        return
    yield from LISTS
    if isinstance(value, tuple):
        yield from ((*value, 1), value[:-1], value * 2)
        for i in range(len(value)):
            for other in (-1, 0, value[i] + 1, 50):
                yield (*value[:i], other, *value[i + 1 :])


def variations(op, dtypes, shapes, attributes):
    """Yields other calls, most of which are invalid."""
    yield dtypes, shapes, {**attributes, "no_such_attribute": 1}
    yield dtypes[:-1], shapes[:-1], attributes
    yield [*dtypes, "float32"], [*shapes, (2,)], attributes
    for dtype in DTYPES:
        yield [dtype] * len(dtypes), shapes, attributes
        if op.dtype_rule == "attribute":
            yield dtypes, shapes, {**attributes, "dtype": dtype}
    for i in range(len(shapes)):
        for dtype in DTYPES:
            yield [*dtypes[:i], dtype, *dtypes[i + 1 :]], shapes, attributes
        for shape in other_shapes(shapes[i]):
            yield dtypes, [*shapes[:i], shape, *shapes[i + 1 :]], attributes
    # Operands of one shape vary together, so that relations between them still hold.
    for shape in other_shapes(shapes[0] if shapes else ()):
        yield dtypes, [shape if one == shapes[0] else one for one in shapes], attributes
    for attribute in op.attributes:
        left = {name: value for name, value in attributes.items() if name != attribute.name}
        yield dtypes, shapes, left
        for value in other_values(attribute, attributes.get(attribute.name, attribute.default)):
            yield dtypes, shapes, {**attributes, attribute.name: value}


_placeholders = {}


def operand(dtype, shape):
    key = dtype, tuple(shape)
    if key not in _placeholders:
        _placeholders[key] = kiln.tensor(0)
        _placeholders[key]._node = _node.placeholder(_dtypes.BY_NAME[dtype], tuple(shape))
    return _placeholders[key]


def call(name, tensors, attributes):
    spelled = f"{name}_" if name in ("and", "or", "not") else name
    return getattr(kiln.ops, spelled)(*tensors, **attributes)._node


def built(name):
    """Returns an op's accepted variations, with the nodes, and those rejected in a wrong way."""
    accepted, bad = [], []
    seen = set()
    for base in legal(name):
        for dtypes, shapes, attributes in itertools.chain([base], variations(TABLE[name], *base)):
            text = f"{name} of {list(zip(dtypes, shapes))} with {attributes}"
            if text in seen:
                continue
            seen.add(text)
            tensors = [operand(*one) for one in zip(dtypes, shapes)]
            try:
                node = call(name, tensors, attributes)
            except kiln.KilnError as error:
                if not error.source.startswith("test_late_errors.py:"):
                    bad.append(f"{text}: no line of its own: {error}")
                elif len(error.message) < 20:
                    bad.append(f"{text}: says too little: {error}")
                continue
            except Exception as error:
                bad.append(f"{text}: {type(error).__name__}: {error}")
                continue
            accepted.append((text, node))
    return accepted, bad


def first_refused(stub, session, nodes):
    """Returns the source and the reason of the first node, in order, that kilnd rejects."""
    graph = build(nodes).graph
    graph.nodes.add(op=SENTINEL)
    graph.outputs[:] = [len(graph.nodes) - 1]
    with pytest.raises(grpc.RpcError) as caught:
        stub.CompileProgram(program_pb2.CompileProgramRequest(session_id=session, graph=graph))
    error = from_rpc(caught.value)
    return graph.nodes[int(error.metadata["node"])], error


def late(connection, accepted):
    """Returns the accepted calls that kilnd rejects."""
    stub = Stub(connection._session.channel, "kiln.v1.ProgramService")
    left = dict(enumerate(accepted))
    found = []
    for number, (_, node) in left.items():
        node.source = (f"call {number}", 1)
    while True:
        node, error = first_refused(stub, connection._session.id, [n for _, n in left.values()])
        if node.op == SENTINEL:
            return found
        number = int(node.source.split()[1].split(":")[0])
        found.append(f"{left.pop(number)[0]}: {error.message}")
        assert len(found) < 1000


def test_nothing_is_refused_late(connection):
    accepted, bad = [], []
    for name in TABLE:
        if name in ROWS and name not in INTERNAL:
            mine, theirs = built(name)
            accepted += mine
            bad += theirs
    assert len(accepted) > 2 * len(TABLE), "the legal calls themselves are refused"
    refused = late(connection, accepted)
    assert not bad, f"{len(bad)} are refused without a message:\n" + "\n".join(bad[:40])
    assert not refused, f"{len(refused)} are refused late:\n" + "\n".join(refused[:40])


@pytest.mark.parametrize(("value", "dtype"), [
    (300, "uint8"), (-1, "uint64"), (1 << 64, "uint64"), (1 << 63, "int64"), (0.5, "int32"),
    (float("nan"), "int8"), (1e300, "float32"), (1e5, "float16"), (1e39, "bfloat16"),
    (500.0, "float8_e4m3"), ("x", "float32"), ("x", "bool"),
])  # fmt: skip
def test_a_number_that_does_not_fit(value, dtype):
    with pytest.raises(kiln.InvalidArgument, match=r"is not|does not fit") as caught:
        kiln.full((2,), value, dtype=dtype)
    assert caught.value.source.startswith("test_late_errors.py:")
    assert repr(value) in str(caught.value)


def test_a_number_beside_a_tensor_fits_its_dtype(connection):
    with pytest.raises(kiln.InvalidArgument, match="1e\\+30 does not fit float16"):
        kiln.ones(2, dtype="float16") * 1e30
    largest = kiln.full((2,), 3.4028235677973362e38, dtype="float32")  # rounds to the largest
    np.testing.assert_array_equal(largest.numpy(), np.finfo(np.float32).max)
    np.testing.assert_array_equal((kiln.ones(2, dtype="float16") * kiln.inf).numpy(), np.inf)
