"""The dialect of kiln.torch's tensors: PyTorch's promotion."""

import math
from typing import Any, Tuple

from kiln._basics import conversion, dtypes
from kiln._basics.dtypes import DType
from kiln._graph import dialects
from kiln._graph.node import SURELY_FITS, TABLE, Node, make

# Ops of elements side by side, whose operands promote.
_PROMOTING = frozenset(
    op.name for op in TABLE.values()
    if op.shape_rule == "broadcast" and op.dtype_rule in ("promote", "promote_float", "bool"))
_SHIFTS = frozenset(("shl", "shr"))


class _Torch(dialects.Dialect):
    """PyTorch's rules.

    A tensor without dimensions widens the dtype of one with dimensions only if it is of a higher
    kind: bool, integer, float. Python's numbers wrap like integers, and become infinite.
    """

    def operands(self, name: str, operands: Tuple[Node, ...]) -> Tuple[Node, ...]:
        """Returns the operands, those without dimensions in the dtype of the others."""
        if len(operands) < 2 or name not in _PROMOTING:
            return operands
        if name in _SHIFTS:
            operands = _without_bools(operands)
        op = TABLE[name]
        taken = [(i, node) for i, node in enumerate(operands) if not op.is_special(i)]
        first = taken[0][1].dtype
        if all(node.dtype is first for _, node in taken):
            return operands
        wide = [node.dtype for _, node in taken if node.shape]
        if not wide or len(wide) == len(taken):
            return operands
        wanted = wide[0]
        for dtype in wide[1:]:
            wanted = dtypes.promote(wanted, dtype)
        changed = list(operands)
        for i, node in taken:
            if not node.shape and node.dtype is not wanted and kind(node.dtype) <= kind(wanted):
                changed[i] = make("cast", (node,), (), wanted)
        return tuple(changed)

    def number(self, value: Any, dtype: DType, op: str) -> Any:
        """Returns the value of a Python number in a dtype."""
        if dtype.is_float:
            if abs(value) > SURELY_FITS and conversion.overflows(float(value), dtype):
                return math.copysign(math.inf, value)
        elif dtype.is_integer and not isinstance(value, bool):
            low, high = conversion.integer_range(dtype)
            if not low <= value <= high:
                # A quotient is a float, and so is its divisor.
                return float(value) if op == "div" else (value - low) % (high - low + 1) + low
        return value


def _without_bools(operands: Tuple[Node, ...]) -> Tuple[Node, ...]:
    """Returns operands with bools in the dtype of the integer among them."""
    wanted = next((node.dtype for node in operands if node.dtype.is_integer), None)
    if wanted is None:
        return operands
    return tuple([make("cast", (node,), (), wanted) if node.dtype is dtypes.bool_ else node
                  for node in operands])


def kind(dtype: DType) -> int:
    """Returns 0 for bool, 1 for integers, 2 for floats."""
    return 2 if dtype.is_float else int(dtype.is_integer)


TORCH: Any = _Torch()
dialects.use()
