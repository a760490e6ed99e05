"""`kiln.ops.NAME.expansion()`: the primitives of an op."""

import pathlib
import re

import pytest

import kiln
from kiln._graph.node import TABLE

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden" / "expansions"


def golden(op, case):
    """Returns a case of the compiler's own test, and operands of its inputs' types."""
    blocks = (GOLDEN / f"{op}.txt").read_text().split("\n\n")
    text = next(block for block in blocks if block.startswith(f"# {case}\n"))
    text = text.partition("\n")[2].rstrip("\n")
    inputs = re.findall(r"^input \d+ (\w+)(?:\[([\d,]*)\])?", text, re.MULTILINE)
    return text, [kiln.zeros(tuple(map(int, shape.split(","))) if shape else (), dtype=dtype)
                  for dtype, shape in inputs]


@pytest.mark.parametrize("op, case, attributes", [
    ("abs", "abs", {}), ("abs", "abs_int32", {}), ("silu", "silu", {}), ("softmax", "softmax", {}),
    ("softmax", "softmax_first", {"axis": 0}), ("mse_loss", "mse_loss", {}),
    ("mse_loss", "mse_loss_sum", {"reduction": "sum"}),
])  # fmt: skip
def test_an_expansion_is_the_compilers(connection, op, case, attributes):
    text, operands = golden(op, case)
    shown = getattr(kiln.ops, op).expansion(*operands, **attributes)
    assert shown == text
    assert repr(shown) == str(shown)  # lines, not "\n", in an interactive Python


def test_a_primitive_is_its_own_expansion(connection):
    assert kiln.ops.neg.expansion(kiln.ones(2)).splitlines() == [
        "input 0 float32[2]", "%0 = input float32[2] index=0", "%1 = neg float32[2] %0",
        "output %1"]


@pytest.mark.parametrize("name", dir(kiln.ops))
def test_every_op_has_an_example_to_expand(stand_in, name):
    op = TABLE[name.rstrip("_")]
    getattr(kiln.ops, name).expansion()
    (_, graph), = stand_in.graphs
    operands = op.example[0]
    assert [node.op for node in graph.nodes] == ["input"] * len(operands) + [op.name]
    shapes = [node.attributes["shape"].shape.dims for node in graph.nodes[:-1]]
    assert [[dim.size for dim in shape] for shape in shapes] == [
        [*shape] for shape in operands]


def test_operands_are_not_computed(stand_in):
    x = kiln.ones(3, 4) + 1
    kiln.ops.softmax.expansion(x, axis=0)
    kiln.ops.add.expansion(x, 2.5)
    assert [[node.op for node in graph.nodes] for _, graph in stand_in.graphs] == [
        ["input", "softmax"], ["input", "const", "add"]]
    assert not x.is_realized and not stand_in.runs


def test_mistakes_are_the_ops(stand_in):
    with pytest.raises(kiln.InvalidArgument, match="axis"):
        kiln.ops.softmax.expansion(kiln.ones(3), axis=1)
    with pytest.raises(kiln.InvalidArgument, match='no attribute "axes"'):
        kiln.ops.softmax.expansion(kiln.ones(3), axes=0)
    assert not stand_in.graphs
