"""Checks attributes against an op's row: unknown and missing ones, types, allowed values."""

from typing import Any, Callable, Dict, Tuple

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Attribute, Op
from kiln._rules.shapes import Attributes
from kiln.variables import Dim

_INTEGER_MIN, _INTEGER_MAX = -(1 << 63), (1 << 63) - 1

_MEANING = {
    "int": "an integer", "float": "a number", "bool": "True or False", "string": "a string",
    "ints": "integers", "shape": "a shape", "number": "a number",
}  # fmt: skip

_RANGES: Dict[str, Tuple[Callable[[Any], bool], str]] = {
    "any": (lambda value: True, "a number"),
    "positive": (lambda value: value > 0, "above 0"),
    "not_negative": (lambda value: value >= 0, "0 or above"),
    # Rejects NaN as well, though it does not equal 0.
    "not_zero": (lambda value: value < 0 or value > 0, "other than 0"),
    "fraction": (lambda value: 0 <= value <= 1, "in [0, 1]"),
}


def complete_attributes(op: Op, attributes: Attributes) -> Dict[str, Any]:
    """Returns the attributes as Python's own numbers, with the row's defaults.

    Raises InvalidArgument for unknown and missing ones, and for values that the row does not allow.
    """
    known = {attribute.name for attribute in op.attributes}
    for name in attributes:
        if name not in known:
            raise InvalidArgument(
                f'"{op.name}" has no attribute "{name}"; it takes '
                f'{", ".join(sorted(known)) or "none"}')
    result = {}
    for attribute in op.attributes:
        value = attributes.get(attribute.name, attribute.default)
        if value is None:
            raise InvalidArgument(
                f'"{op.name}" needs the attribute "{attribute.name}" ({attribute.type})')
        result[attribute.name] = _checked(op, attribute, value)
    return result


def _checked(op: Op, attribute: Attribute, value: Any) -> Any:
    """Returns a value as the wire takes it for the attribute."""
    # A uint64 constant may use all 64 bits.
    integer_max = 2 * _INTEGER_MAX + 1 if op.name == "const" else _INTEGER_MAX
    typed = _typed(attribute.type, value, integer_max)
    if typed is None:
        raise _wrong(op, attribute, value, _MEANING[attribute.type])
    if attribute.choices and typed not in attribute.choices:
        *first, last = (f'"{choice}"' for choice in attribute.choices)
        raise _wrong(op, attribute, value, f"{', '.join(first)} or {last}")
    holds, meaning = _RANGES[attribute.range]
    if not holds(typed):
        raise _wrong(op, attribute, value, meaning)
    return typed


def _wrong(op: Op, attribute: Attribute, value: Any, wanted: str) -> InvalidArgument:
    return InvalidArgument(f'the attribute "{attribute.name}" of "{op.name}" is {value!r:.80}; '
                           f"it must be {wanted}")


def _typed(kind: str, value: Any, integer_max: int) -> Any:
    """Returns the value in a type of the wire; None if it is of another kind."""
    if kind == "string":
        return value if isinstance(value, str) else None
    if kind == "bool":
        return bool(value) if isinstance(value, (bool, np.bool_)) else None
    if kind in ("ints", "shape"):
        return _integers(value)
    if kind == "number" and isinstance(value, (bool, np.bool_)):
        return bool(value)
    integer = _integer(value, integer_max)
    if integer is not None or kind == "int":
        return integer
    return float(value) if isinstance(value, (float, np.floating)) else None


def _integer(value: Any, integer_max: int = _INTEGER_MAX) -> Any:
    if isinstance(value, Dim):
        return value
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        return None
    return int(value) if _INTEGER_MIN <= value <= integer_max else None


def _integers(value: Any) -> Any:
    if not isinstance(value, (tuple, list)):
        return None
    result = tuple(_integer(item) for item in value)
    return None if None in result else result
