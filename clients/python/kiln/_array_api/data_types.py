"""Functions about dtypes, as in the Python array API standard."""

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union

from kiln._basics import conversion, dtypes
from kiln._basics.dtype_table import FORMATS
from kiln._basics.dtypes import DType, promote
from kiln._basics.errors import InvalidArgument
from kiln.tensor import Tensor

TensorOrDType = Union[Tensor, DType, str]


class FloatInfo(NamedTuple):
    """The result of finfo(): properties of a float dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerInfo(NamedTuple):
    """The result of iinfo(): properties of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(value: Any) -> DType:
    return value.dtype if isinstance(value, Tensor) else dtypes.as_dtype(value)


def finfo(type: TensorOrDType, /) -> FloatInfo:
    """Returns the range and precision of a float dtype, or of a tensor's.

    Other dtypes raise InvalidArgument.

    >>> kiln.finfo(kiln.float16).max, kiln.finfo(kiln.float32).bits
    (65504.0, 32)
    """
    dtype = _dtype_of(type)
    float_format = FORMATS.get(dtype)
    if float_format is None:
        raise InvalidArgument(f"finfo of {dtype.name}; it must be a float dtype")
    largest = float_format.largest
    return FloatInfo(8 * dtype.itemsize, 2.0**-float_format.mantissa_bits, largest, -largest,
                     2.0 ** (1 - float_format.bias), dtype)


def iinfo(type: TensorOrDType, /) -> IntegerInfo:
    """Returns the range of an integer dtype, or of a tensor's; others raise InvalidArgument.

    >>> kiln.iinfo(kiln.int8).min, kiln.iinfo(kiln.uint64).max
    (-128, 18446744073709551615)
    """
    dtype = _dtype_of(type)
    if not dtype.is_integer:
        raise InvalidArgument(f"iinfo of {dtype.name}; it must be an integer dtype")
    low, high = conversion.integer_range(dtype)
    return IntegerInfo(8 * dtype.itemsize, high, low, dtype)


_KINDS: Dict[str, Callable[[DType], bool]] = {
    "bool": lambda dtype: dtype is dtypes.bool_,
    "signed integer": lambda dtype: dtype.is_signed,
    "unsigned integer": lambda dtype: dtype.is_integer and not dtype.is_signed,
    "integral": lambda dtype: dtype.is_integer,
    "real floating": lambda dtype: dtype.is_float,
    "complex floating": lambda dtype: False,
    "numeric": lambda dtype: dtype.is_integer or dtype.is_float,
}


def isdtype(dtype: DType, kind: Union[DType, str, Tuple[Union[DType, str], ...]]) -> bool:
    """Returns whether a dtype is of a kind, or of any kind in a tuple.

    Kinds are a dtype, "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating" (no dtype is) and "numeric". Others raise InvalidArgument.

    >>> kiln.isdtype(kiln.int8, "integral"), kiln.isdtype(kiln.bool, ("numeric", kiln.float32))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, part) for part in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in _KINDS:
        raise InvalidArgument(f"unknown kind of dtype {kind!r}; use one of {', '.join(_KINDS)}")
    return _KINDS[kind](dtype)


def kinds() -> Tuple[str, ...]:
    """Returns the names of the kinds of isdtype()."""
    return tuple(_KINDS)


def can_cast(from_: TensorOrDType, to: DType, /) -> bool:
    """Returns whether promotion leads from one dtype to the other.

    >>> kiln.can_cast(kiln.int8, kiln.int16), kiln.can_cast(kiln.float32, kiln.int64)
    (True, False)
    """
    target = dtypes.as_dtype(to)
    try:
        return promote(_dtype_of(from_), target) is target
    except InvalidArgument:
        return False


def result_type(*arrays_and_dtypes: Union[TensorOrDType, bool, int, float]) -> DType:
    """Returns the dtype to which tensors, dtypes and Python numbers promote.

    Numbers are weak: they take the dtype of the others, except that a float with integers or bools
    gives float32, and an int with bools int64. An integer with a float gives that float; float16
    with bfloat16 gives float32. Raises InvalidArgument for uint64 with a signed integer, which no
    integer dtype holds.

    >>> kiln.result_type(kiln.uint8, kiln.int8), kiln.result_type(kiln.float16, 2.5)
    (kiln.int16, kiln.float16)
    """
    result: Optional[DType] = None
    numbers = []
    for value in arrays_and_dtypes:
        if isinstance(value, (bool, int, float)):
            numbers.append(value)
        else:
            dtype = _dtype_of(value)
            result = dtype if result is None else promote(result, dtype)
    if result is None:
        if not numbers:
            raise InvalidArgument("result_type of nothing; it needs a tensor or a dtype")
        result = dtypes.bool_
    for number in numbers:
        result = conversion.weak_dtype(number, result)
    return result


def promote_types(a: DType, b: DType) -> DType:
    """Returns the dtype to which two dtypes promote; see result_type.

    >>> kiln.promote_types(kiln.int32, kiln.float32)
    kiln.float32
    """
    return promote(dtypes.as_dtype(a), dtypes.as_dtype(b))


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Returns the same values in another dtype; see Tensor.cast.

    With copy=False a tensor that has the dtype already is returned itself.

    >>> kiln.astype(kiln.tensor([1.5, 2.5]), kiln.int32).tolist()
    [1, 2]
    """
    if device is not None:
        x = x.to_device(device)
    cast = x.cast(dtype)
    return cast.__copy__() if copy and cast is x else cast
