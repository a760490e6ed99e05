"""Element types, and how they promote."""

from typing import Any, Dict, Optional, Tuple

import numpy as np

from kiln._basics.errors import InvalidArgument


class DType:
    """An element type, such as `kiln.float32`. There is one object of each: compare with `is`.

    >>> kiln.float32.name, kiln.float32.itemsize, kiln.float32.is_float
    ('float32', 4, True)
    """

    __slots__ = ("code", "is_float", "is_integer", "is_signed", "itemsize", "name", "numpy")

    def __init__(self, name: str, code: int, itemsize: int, numpy: Optional[str]) -> None:
        self.name = name
        self.code = code  # kiln.v1.DType
        self.itemsize = itemsize
        # The dtype of .numpy(); None: NumPy has no such type.
        self.numpy = None if numpy is None else np.dtype(numpy)
        self.is_float = "float" in name
        self.is_integer = "int" in name
        self.is_signed = name.startswith("int")

    def __repr__(self) -> str:
        return f"kiln.{self.name}"

    def __reduce__(self) -> Tuple[Any, ...]:
        # Unpickling returns the one object of this name, since dtypes are compared by identity.
        return as_dtype, (self.name,)


bool_ = DType("bool", 1, 1, "bool")
int8 = DType("int8", 2, 1, "int8")
int16 = DType("int16", 3, 2, "int16")
int32 = DType("int32", 4, 4, "int32")
int64 = DType("int64", 5, 8, "int64")
uint8 = DType("uint8", 6, 1, "uint8")
uint16 = DType("uint16", 7, 2, "uint16")
uint32 = DType("uint32", 8, 4, "uint32")
uint64 = DType("uint64", 9, 8, "uint64")
float16 = DType("float16", 10, 2, "float16")
bfloat16 = DType("bfloat16", 11, 2, None)
float32 = DType("float32", 12, 4, "float32")
float64 = DType("float64", 13, 8, "float64")
float8_e4m3 = DType("float8_e4m3", 14, 1, None)
float8_e5m2 = DType("float8_e5m2", 15, 1, None)

ALL = (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16,
       float32, float64, float8_e4m3, float8_e5m2)  # fmt: skip
# Storage formats: no arithmetic takes them.
FLOAT8 = (float8_e4m3, float8_e5m2)
BY_NAME: Dict[str, DType] = {dtype.name: dtype for dtype in ALL}
BY_CODE: Dict[int, DType] = {dtype.code: dtype for dtype in ALL}
_BY_PYTHON_TYPE = {bool: bool_, int: int64, float: float32}
_SIGNED_OF_SIZE = {1: int8, 2: int16, 4: int32, 8: int64}


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


def promote(a: DType, b: DType) -> DType:
    """Returns the common dtype of two operands: the Python array API's promotion, completed.

    Bool with any other dtype gives the other one, an integer with a float gives that float, and two
    floats of one size give the next larger IEEE type. Raises InvalidArgument for uint64 with a
    signed integer.
    """
    if a is b or b is bool_:
        return a
    if a is bool_:
        return b
    if a.is_float and b.is_float:
        if a.itemsize != b.itemsize:
            return a if a.itemsize > b.itemsize else b
        return float16 if a.itemsize == 1 else float32
    if a.is_float or b.is_float:
        return a if a.is_float else b
    return _promote_integers(a, b)


def _promote_integers(a: DType, b: DType) -> DType:
    if a.is_signed == b.is_signed:
        return a if a.itemsize > b.itemsize else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if unsigned is uint64:
        raise InvalidArgument(
            f"no integer holds both {a.name} and {b.name}; cast one of them")
    return _SIGNED_OF_SIZE[max(signed.itemsize, 2 * unsigned.itemsize)]


_CLASSES = {
    "any": ALL,
    "numeric": tuple(d for d in ALL if (d.is_float and d.itemsize > 1) or d.is_integer),
    "float": tuple(d for d in ALL if d.is_float and d.itemsize > 1),
    "integer": tuple(d for d in ALL if d.is_integer),
    "integer_or_bool": tuple(d for d in ALL if d.is_integer or d is bool_),
    "bool": (bool_,),
    "float_or_bool": tuple(d for d in ALL if (d.is_float and d.itemsize > 1) or d is bool_),
    "uint32": (uint32,),
}


def members(dtype_class: str) -> Tuple[DType, ...]:
    """Returns the dtypes of a class of the table of ops."""
    return _CLASSES[dtype_class.replace(" ", "_")]
