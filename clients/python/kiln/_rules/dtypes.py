"""Rules that determine an op's dtype from its operands' dtypes."""

from typing import Any, Sequence

from kiln._basics import dtypes as _dtypes
from kiln._basics.dtypes import DType
from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op

# Rules that always give the dtype of that name.
FIXED_DTYPES = ("bool", "int64", "int32", "uint32", "float32")


def _promote_all(op: Op, dtypes: Sequence[DType]) -> DType:
    result = _dtypes.bool_
    for i, dtype in enumerate(dtypes):
        if not op.is_special(i):
            result = _dtypes.promote(result, dtype)
    return result


def _no_arithmetic(op: Op, dtype: DType) -> InvalidArgument:
    return InvalidArgument(f'"{op.name}" of {dtype.name}, which only stores numbers; cast it to '
                           "float16, bfloat16 or float32 first")


def infer_dtype(op: Op, dtypes: Sequence[DType], declared: Any = None) -> DType:
    """Returns the result's dtype; `declared` is the wanted one if the op leaves it open.

    Raises InvalidArgument for operands of other dtypes.
    """
    for i, dtype in enumerate(dtypes):
        wanted = op.special_class if op.is_special(i) else op.operand_class
        if dtype not in _dtypes.members(wanted):
            if dtype in _dtypes.FLOAT8 and _dtypes.float32 in _dtypes.members(wanted):
                raise _no_arithmetic(op, dtype)
            raise InvalidArgument(
                f'operand {i} of "{op.name}" has dtype {dtype.name}; it must be {wanted}')
    result = _dtype_by_rule(op, dtypes, declared)
    if declared is not None and declared is not result:
        raise InvalidArgument(
            f'"{op.name}" gives {result.name} here, not the declared {declared.name}')
    return result


def _dtype_by_rule(op: Op, dtypes: Sequence[DType], declared: Any) -> DType:
    rule = op.dtype_rule
    if rule == "attribute":
        if declared is None:
            raise InvalidArgument(f'"{op.name}" needs a dtype')
        wanted: DType = declared
        return wanted
    if rule == "same":
        return dtypes[0]
    if rule == "second":
        return dtypes[1]
    promoted = _promote_all(op, dtypes)
    if rule == "promote":
        return promoted
    if rule == "promote_float":
        if promoted in _dtypes.FLOAT8:
            raise _no_arithmetic(op, promoted)
        return promoted if promoted.is_float else _dtypes.float32
    return _dtypes.BY_NAME[rule]
