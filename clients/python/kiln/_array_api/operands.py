"""Operands of functions: tensors, and values that become tensors."""

from typing import Any, Union

import numpy as np

from kiln._tensor.base import TensorBase, apply, tensor_of
from kiln.tensor import Tensor

# A Python number is weak: with a tensor it takes that tensor's dtype.
Operand = Union[Tensor, "np.ndarray[Any, Any]", bool, int, float]


def unary(name: str, x: Operand) -> Tensor:
    """Returns the op `name` of one operand."""
    return tensor_of(x)._op(name)


def binary(name: str, x1: Operand, x2: Operand) -> Tensor:
    """Returns the op `name` of two operands."""
    return apply(name, (x1, x2))


def arithmetic(name: str, x1: Operand, x2: Operand) -> Tensor:
    """Returns the op `name` of two operands; bools count as integers."""
    if isinstance(x1, TensorBase) or not isinstance(x2, TensorBase):
        return tensor_of(x1)._numeric(name, x2)
    return x2._numeric(name, x1, reflected=True)


def power(x1: Operand, x2: Operand) -> Tensor:
    """Returns x1 to the power of x2."""
    if isinstance(x1, TensorBase) or not isinstance(x2, TensorBase):
        return tensor_of(x1).pow(x2)
    return x2.__rpow__(x1)


def rounded(name: str, x: Operand) -> Tensor:
    """Returns the op `name` of floats; integers are returned unchanged."""
    tensor = tensor_of(x)
    return tensor._op(name) if tensor.dtype.is_float else tensor
