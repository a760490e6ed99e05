"""What a constraint is asked, and the words of its answer."""

from typing import Any, Callable, NamedTuple, Sequence

from kiln._basics.dtypes import DType
from kiln._ops.definition import Op
from kiln._rules.shapes import Attributes, Shape
from kiln.variables import bounds


class Query(NamedTuple):
    """Everything a constraint may look at; attributes are complete."""

    op: Op
    shapes: Sequence[Shape]
    dtypes: Sequence[DType]
    attributes: Attributes
    shape: Shape  # the result's
    dtype: DType


Constraint = Callable[[Query], None]


def described(query: Query, place: int) -> str:
    return f"{query.op.operands[place].rstrip('?')} {query.shapes[place]}"


def surely_more(a: Any, b: Any) -> bool:
    """Whether a > b for all values of the variables in them."""
    return bool(bounds(a - b)[0] > 0)
