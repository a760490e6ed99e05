"""Shape and dtype rules, one function each, by the names that the table of ops uses.

The daemon has the same rules; tests/golden/shape_cases.json keeps the two equal. A shape rule is
called with the operands' shapes and the complete attributes and raises InvalidArgument with the
shapes that met and what would be right. A family of rules is a module with a table RULES.
"""

from typing import Dict, Sequence

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules import (
    arrays,
    basic,
    convolution,
    einsum,
    indexed,
    movement,
    neural,
    products,
    windows,
)
from kiln._rules.attributes import complete_attributes
from kiln._rules.constraints import CONSTRAINTS, check_constraints
from kiln._rules.convolution import spatial_rank
from kiln._rules.dtypes import FIXED_DTYPES, infer_dtype
from kiln._rules.query import Query
from kiln._rules.shapes import (
    Attributes,
    Shape,
    ShapeRule,
    broadcast,
    check_shape,
    normalize_axes,
    normalize_axis,
)

__all__ = [
    "CONSTRAINTS",
    "FIXED_DTYPES",
    "SHAPE_RULES",
    "Attributes",
    "Query",
    "Shape",
    "broadcast",
    "check_constraints",
    "check_operand_count",
    "check_shape",
    "complete_attributes",
    "infer_dtype",
    "infer_shape",
    "normalize_axes",
    "normalize_axis",
    "spatial_rank",
]

SHAPE_RULES: Dict[str, ShapeRule] = {
    **basic.RULES,
    **movement.RULES,
    **indexed.RULES,
    **products.RULES,
    **windows.RULES,
    **convolution.RULES,
    **neural.RULES,
    **arrays.RULES,
    **einsum.RULES,
}


def check_operand_count(op: Op, count: int) -> None:
    """Raises unless `op` takes `count` operands."""
    least = sum(1 for name in op.operands if not name.endswith("?"))
    unlimited = any(name.endswith("*") for name in op.operands)
    if count < least or (count > len(op.operands) and not unlimited):
        most = "more" if unlimited else len(op.operands)
        raise InvalidArgument(f'"{op.name}" has {count} operands; it takes {least} to {most}')


def infer_shape(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    """The result's shape; `attributes` are complete."""
    return check_shape(SHAPE_RULES[op.shape_rule](op, shapes, attributes))
