"""The table of ops. Generated from compiler/ops; do not edit."""

from kiln._op_def import Attribute as A
from kiln._op_def import Op

OP_SET_VERSION = 1

OPS = (
    Op("add", "binary", ("x", "y"), (), "broadcast", "promote", "numeric", -1, "integer", "x + y."),
    Op("sum", "reduce", ("x",), (A("axes", "ints", ()), A("keepdims", "bool", False)), "reduce", "same", "numeric", -1, "integer", "Sum over axes."),
)
