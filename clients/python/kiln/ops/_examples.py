"""The example call in each op's documentation."""

from typing import NamedTuple, Optional, Tuple

from kiln import _rules
from kiln._basics import dtypes
from kiln._ops.definition import Op

Shape = Tuple[int, ...]

# bindings/opgen_examples.cc chooses examples that these dtypes fit.
_DTYPE_OF_CLASS = {"integer": dtypes.int64, "integer_or_bool": dtypes.int64,
                   "bool": dtypes.bool_, "uint32": dtypes.uint32}  # fmt: skip


class Example(NamedTuple):
    """A call's arguments as text, and the shape of its result."""

    text: str
    shape: Shape


def example_of(op: Op) -> Optional[Example]:
    """Returns the example of an op; None if the shared cases have none for it."""
    if op.example is None:
        return None
    shapes, attributes = op.example
    result = _rules.infer_shape(op, shapes, _rules.complete_attributes(op, attributes))
    parts = [_operand(op, i, shape) for i, shape in enumerate(shapes)]
    parts += [f"{name}={value!r}" for name, value in attributes.items()]
    if op.dtype_rule == "attribute":
        parts.append("dtype=kiln.int32")
    return Example(", ".join(parts), result)


def dtype_of(op: Op, number: int) -> dtypes.DType:
    """Returns the dtype of an operand in the example."""
    wanted = op.special_class if op.is_special(number) else op.operand_class
    return _DTYPE_OF_CLASS.get(wanted, dtypes.float32)


def _operand(op: Op, number: int, shape: Shape) -> str:
    dtype = dtype_of(op, number)
    return f"kiln.ones({shape})" if dtype is dtypes.float32 else (
        f"kiln.ones({shape}, dtype={dtype})")
