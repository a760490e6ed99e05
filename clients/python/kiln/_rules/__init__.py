"""Shape and dtype rules, one function each, by the names that the table of ops uses.

The daemon has the same rules; tests/golden/shape_cases.json keeps the two equal. A shape rule is
called with the operands' shapes and the complete attributes and raises InvalidArgument with the
shapes that met and what would be right. A family of rules is a module with a table RULES.
"""

from typing import Any, Dict, Sequence, Tuple

from kiln._errors import InvalidArgument
from kiln._op_def import Op
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
from kiln._rules.convolution import spatial_rank
from kiln._rules.dtypes import FIXED_DTYPES, infer_dtype
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
    "FIXED_DTYPES",
    "SHAPE_RULES",
    "Attributes",
    "Shape",
    "broadcast",
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


def complete_attributes(op: Op, attributes: Attributes) -> Dict[str, Any]:
    """`attributes` with the row's defaults; raises on unknown and missing ones."""
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
        if isinstance(value, _NEVER[attribute.type]):
            raise InvalidArgument(
                f'the attribute "{attribute.name}" of "{op.name}" is {value!r:.80}; it must be '
                f"{_MEANING[attribute.type]}")
        result[attribute.name] = value
    return result


# What no attribute of a type is. (Not what it is: an integer may be NumPy's.)
_NEVER: Dict[str, Tuple[type, ...]] = {
    "int": (str, float, tuple, list), "float": (str, tuple, list), "bool": (str, tuple, list),
    "string": (bool, int, float, tuple, list), "ints": (str, int, float),
    "shape": (str, int, float), "number": (str, tuple, list),
}  # fmt: skip
_MEANING = {
    "int": "an integer", "float": "a number", "bool": "True or False", "string": "a string",
    "ints": "integers", "shape": "a shape", "number": "a number",
}  # fmt: skip
