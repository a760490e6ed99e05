"""The primitives that the daemon expands an op to."""

from typing import Any, Callable, List

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph.build import build
from kiln._graph.node import placeholder
from kiln._ops.definition import Op
from kiln._session.connection import default_connection
from kiln.ops._examples import dtype_of
from kiln.tensor import Tensor, wrap


class Text(str):
    """Text that an interactive Python shows as it is, with its lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def expansion(op: Op, function: Callable[..., Tensor], operands: Any, attributes: Any) -> Text:
    """Returns the primitives of one application of an op, one per line.

    Of the operands only shapes and dtypes count. Without any, and without attributes, they are
    those of the example in the op's documentation.
    """
    if not operands and not attributes:
        if op.example is None:
            raise InvalidArgument(f'"{op.name}" has no example; give its operands')
        shapes, attributes = op.example
        operands = [_input(dtype_of(op, i), shape) for i, shape in enumerate(shapes)]
        if op.dtype_rule == "attribute":
            attributes = {**attributes, "dtype": dtypes.int32}
    given: List[Any] = [_input(operand.dtype, operand.shape) if isinstance(operand, Tensor)
                        else operand for operand in operands]
    inputs = [operand._node for operand in given if isinstance(operand, Tensor)]
    built = build([function(*given, **attributes)._node], fixed_inputs=inputs)
    text = default_connection()._checked_text(built.graph, op.name, built.bindings)
    return Text(text.rstrip("\n"))


def _input(dtype: dtypes.DType, shape: Any) -> Tensor:
    return wrap(placeholder(dtype, shape))
