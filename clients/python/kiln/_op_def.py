"""The form of a row in the generated table of ops (`kiln/_ops.py`)."""

from typing import Any, NamedTuple, Optional, Tuple


class Attribute(NamedTuple):
    """An op's attribute. A default of None means that it is required."""

    name: str
    type: str  # "int", "float", "bool", "string", "ints", "shape" or "number"
    default: Optional[Any]


class Op(NamedTuple):
    """One op, as `compiler/ops` describes it; rules are the names of `kiln/_rules`."""

    name: str
    kind: str
    operands: Tuple[str, ...]  # "?" after a name: optional; "*": one or more
    attributes: Tuple[Attribute, ...]
    shape_rule: str
    dtype_rule: str
    operand_class: str
    special_operand: int  # an operand outside promotion, with a class of its own; -1: none
    special_class: str
    doc: str
