"""The arguments of a constraint."""

from typing import Callable, NamedTuple, Sequence

from kiln._basics.dtypes import DType
from kiln._ops.definition import Op
from kiln._rules.shapes import Attributes, Shape


class Query(NamedTuple):
    """Everything that a constraint may examine; attributes are complete."""

    op: Op
    shapes: Sequence[Shape]
    dtypes: Sequence[DType]
    attributes: Attributes
    shape: Shape  # the result's
    dtype: DType


Constraint = Callable[[Op, Sequence[Shape], Sequence[DType], Attributes, Shape, DType], None]
