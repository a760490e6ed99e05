"""The shapes of a graph's tensors when sizes change, by the rules of its ops."""

from math import prod
from typing import Any, Dict, List, Optional

from kiln import _rules
from kiln._basics.errors import KilnError
from kiln._graph.node import TABLE, Node, Shape
from kiln._graph.outline import Outline


def shapes(outline: Outline, sizes: Any) -> Optional[List[Shape]]:
    """Returns the shapes of all nodes with these sizes (sizes.Sizes); None: some are not legal."""
    changed: Dict[Node, Shape] = {}
    found = []
    try:
        for node in outline.nodes:
            shape = node.shape
            if node in outline.values:
                changed[node] = shape = _rules.check_shape(sizes.shape(node))
            elif sizes.has(node) or any(operand in changed for operand in node.operands):
                changed[node] = shape = _shape(node, changed, sizes)
            found.append(shape)
    except KilnError:
        return None
    return found


def _shape(node: Node, changed: Dict[Node, Shape], sizes: Any) -> Shape:
    op = TABLE[node.op]
    operands = [changed.get(operand, operand.shape) for operand in node.operands]
    given = dict(sizes.attributes(node))
    if node.op == "reshape":
        given["shape"] = _completed(given["shape"], operands[0])
    attributes = _rules.complete_attributes(op, given)
    shape = _rules.infer_shape(op, operands, attributes)
    dtypes = [operand.dtype for operand in node.operands]
    _rules.check_constraints(_rules.Query(op, operands, dtypes, attributes, shape, node.dtype))
    return shape


def _completed(shape: Shape, operand: Shape) -> Shape:
    """Returns a reshape's shape with the size that is left (-1), if there is one."""
    if -1 not in shape:
        return shape
    others = prod([size for size in shape if size >= 0])
    rest = prod(operand) // others if others else 0
    return tuple([rest if size == -1 else size for size in shape])
