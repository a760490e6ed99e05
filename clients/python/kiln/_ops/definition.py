"""The form of a row in the generated table of ops (`kiln/_ops/table.py`)."""

from typing import Any, Dict, NamedTuple, Optional, Tuple


class Attribute(NamedTuple):
    """An op's attribute. A default of None means that it is required."""

    name: str
    type: str  # "int", "float", "bool", "string", "ints", "shape" or "number"
    default: Optional[Any]
    choices: Tuple[str, ...] = ()  # the allowed values of a string, if there are any
    range: str = "any"  # the allowed range of a number: a name in `kiln/_rules/attributes.py`


class Op(NamedTuple):
    """One op, as `compiler/ops` describes it; rules are names in `kiln/_rules`."""

    name: str
    kind: str
    operands: Tuple[str, ...]  # "?" after a name: optional; "*": one or more
    attributes: Tuple[Attribute, ...]
    shape_rule: str
    dtype_rule: str
    operand_class: str
    # The first operand outside promotion, with its own class; "*": it and all after it; -1: none.
    special_operand: int
    special_class: str
    constraints: Tuple[str, ...]  # further requirements, by the names in `kiln/_rules`
    doc: str
    # Operands' shapes and attributes of an example call.
    example: Optional[Tuple[Tuple[Tuple[int, ...], ...], Dict[str, Any]]]

    def is_special(self, operand: int) -> bool:
        """Returns whether the operand of this number is special: outside promotion."""
        if self.special_operand < 0:
            return False
        any_number = self.operands[self.special_operand].endswith("*")
        return operand == self.special_operand or (any_number and operand > self.special_operand)
