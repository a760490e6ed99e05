"""The daemon's rules for nodes, so that errors are raised at the line that makes a node.

Shape rules and constraints are generated from the table of ops (`generated.py`). The functions that
they call and the rules of dtypes exist both here and in the daemon; tests/golden/shape_cases.json
keeps the two equal. A shape rule takes the operands' shapes and the complete attributes; it raises
InvalidArgument with the offending shapes and what would be right. Errors for only some values of a
variable are left to the run, when the daemon knows the values.
"""

from typing import Sequence

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.arguments import NUMBER, flag, whole
from kiln._rules.attributes import complete_attributes
from kiln._rules.dtypes import FIXED_DTYPES, infer_dtype
from kiln._rules.generated import CONSTRAINTS, SHAPE_RULES
from kiln._rules.query import Query
from kiln._rules.shapes import (
    Attributes,
    Shape,
    broadcast,
    check_shape,
    normalize_axes,
    normalize_axis,
)
from kiln._rules.windows import spatial_rank

__all__ = [
    "CONSTRAINTS",
    "FIXED_DTYPES",
    "NUMBER",
    "SHAPE_RULES",
    "Attributes",
    "Query",
    "Shape",
    "broadcast",
    "check_constraints",
    "check_operand_count",
    "check_shape",
    "complete_attributes",
    "flag",
    "infer_dtype",
    "infer_shape",
    "normalize_axes",
    "normalize_axis",
    "spatial_rank",
    "whole",
]


def check_operand_count(op: Op, count: int) -> None:
    """Raises InvalidArgument unless `op` takes `count` operands."""
    operands_min = sum(1 for name in op.operands if not name.endswith("?"))
    unlimited = any(name.endswith("*") for name in op.operands)
    if count < operands_min or (count > len(op.operands) and not unlimited):
        operands_max = len(op.operands)
        wanted = (f"at least {operands_min}" if unlimited
                  else f"{operands_min}" if operands_min == operands_max
                  else f"{operands_min} to {operands_max}")  # fmt: skip
        names = f": {', '.join(op.operands)}" if op.operands else ""
        raise InvalidArgument(f'"{op.name}" has {count} operands; it takes {wanted}{names}')


def infer_shape(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    """Returns the result's shape; `attributes` are complete."""
    return check_shape(SHAPE_RULES[op.shape_rule](op, shapes, attributes))


def check_constraints(query: Query) -> None:
    """Raises InvalidArgument for the first of the op's constraints that does not hold."""
    for name in query.op.constraints:
        CONSTRAINTS[name](*query)
