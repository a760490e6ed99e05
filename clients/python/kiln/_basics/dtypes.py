"""Element types, and how they promote."""

import copyreg
from typing import Any, Dict, Tuple

import numpy as np

from kiln._basics.dtype import DType as DType
from kiln._basics.dtype_table import *  # noqa: F403
from kiln._basics.dtype_table import ALL as ALL
from kiln._basics.dtype_table import CLASSES, FORMATS, PROMOTED, float32, int64
from kiln._basics.dtype_table import bool_ as bool_
from kiln._basics.errors import InvalidArgument

BY_NAME: Dict[str, DType] = {dtype.name: dtype for dtype in ALL}
BY_CODE: Dict[int, DType] = {dtype.code: dtype for dtype in ALL}
# Storage formats: no arithmetic takes them.
FLOAT8 = tuple(dtype for dtype in FORMATS if dtype.itemsize == 1)
_BY_PYTHON_TYPE = {bool: bool_, int: int64, float: float32}


def as_dtype(value: Any) -> DType:
    """Returns the dtype that a DType, a name, a Python type or a NumPy dtype stands for."""
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _BY_PYTHON_TYPE:
        return _BY_PYTHON_TYPE[value]
    name = value if isinstance(value, str) else np.dtype(value).name
    if name in BY_NAME:
        return BY_NAME[name]
    raise InvalidArgument(f"unknown dtype {value!r}; use one of {', '.join(BY_NAME)}")


def _pickled(dtype: DType) -> Tuple[Any, Tuple[str]]:
    return as_dtype, (dtype.name,)


# Unpickling returns the one object of a name, since dtypes are compared by identity.
copyreg.pickle(DType, _pickled)


def promote(a: DType, b: DType) -> DType:
    """Returns the common dtype of two operands: the Python array API's promotion, completed.

    Bool with any other dtype gives the other one, an integer with a float gives that float, and two
    floats of one size give the next larger IEEE type. Raises InvalidArgument for uint64 with a
    signed integer.
    """
    promoted = PROMOTED[a][b.code - 1]
    if promoted is None:
        raise InvalidArgument(f"no integer holds both {a.name} and {b.name}; cast one of them")
    return promoted


def members(dtype_class: str) -> Tuple[DType, ...]:
    """Returns the dtypes of a class of the table of ops."""
    return CLASSES[dtype_class]
