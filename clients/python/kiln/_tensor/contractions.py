"""Sums of products: matmul and einsum."""

from typing import TYPE_CHECKING, Any, Sequence

from kiln._basics import dtypes
from kiln._tensor.base import TensorBase, apply, weak_or_tensor

if TYPE_CHECKING:
    from kiln.tensor import Tensor


def contracted(name: str, operands: Sequence[Any], **attributes: Any) -> "Tensor":
    """Returns the op `name` of operands. A bool with a number counts as 0 or 1; for bools alone the
    result is whether any product is true, as in NumPy.
    """
    given = [weak_or_tensor(operand) for operand in operands]
    tensors = [operand for operand in given if isinstance(operand, TensorBase)]
    kinds = [tensor.dtype for tensor in tensors if tensor.dtype is not dtypes.bool_]
    if len(kinds) == len(tensors):
        return apply(name, given, **attributes)
    # A float32 sum of ones and zeros is not 0 if one of them is 1, however it is rounded.
    wanted = kinds[0] if kinds else dtypes.float32
    for kind in kinds[1:]:
        wanted = dtypes.promote(wanted, kind)
    cast = [operand.cast(wanted) if getattr(operand, "dtype", None) is dtypes.bool_ else operand
            for operand in given]  # fmt: skip
    result = apply(name, cast, **attributes)
    return result if kinds else result.cast(dtypes.bool_)
