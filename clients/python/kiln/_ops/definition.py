"""The form of a row in the generated table of ops (`kiln/_ops/table.py`)."""

from typing import Any, Dict, NamedTuple, Optional, Tuple


class Attribute(NamedTuple):
    """An op's attribute. A default of None means that it is required."""

    name: str
    type: str  # "int", "float", "bool", "string", "ints", "shape" or "number"
    default: Optional[Any]
    choices: Tuple[str, ...] = ()  # what a string must be one of, if there are any
    range: str = "any"  # what a number must be: a name in `kiln/_rules/attributes.py`


class Op(NamedTuple):
    """One op, as `compiler/ops` describes it; rules are the names of `kiln/_rules`."""

    name: str
    kind: str
    operands: Tuple[str, ...]  # "?" after a name: optional; "*": one or more
    attributes: Tuple[Attribute, ...]
    shape_rule: str
    dtype_rule: str
    operand_class: str
    # An operand outside promotion, with a class of its own; "*": it and all after it; -1: none.
    special_operand: int
    special_class: str
    constraints: Tuple[str, ...]  # what must hold besides, by the names of `kiln/_rules`
    doc: str
    # Operands' shapes and attributes of a call to show it by.
    example: Optional[Tuple[Tuple[Tuple[int, ...], ...], Dict[str, Any]]]

    def is_special(self, operand: int) -> bool:
        """Whether an operand, by its number, stands apart."""
        if self.special_operand < 0:
            return False
        any_number = self.operands[self.special_operand].endswith("*")
        return operand == self.special_operand or (any_number and operand > self.special_operand)
