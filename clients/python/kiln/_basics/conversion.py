"""Conversion between Python numbers, NumPy arrays and the bytes that are sent."""

import math
from typing import Any, Tuple

import numpy as np

from kiln._basics import dtype_table, dtypes, short_floats
from kiln._basics.dtype import DType
from kiln._basics.errors import InvalidArgument


def weak_dtype(number: Any, like: DType) -> DType:
    """The dtype of a Python number next to a tensor: the tensor's, if the number's kind fits."""
    if isinstance(number, bool):
        return like
    if isinstance(number, int):
        return dtypes.int64 if like is dtypes.bool_ else like
    return like if like.is_float else dtypes.float32


def integer_range(dtype: DType) -> Tuple[int, int]:
    """Returns the smallest and the largest value of an integer dtype."""
    bits = 8 * dtype.itemsize
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.is_signed else (0, (1 << bits) - 1)


def overflows(number: float, dtype: DType) -> bool:
    """Whether a finite number becomes infinite or NaN when it is rounded to a float dtype."""
    if not math.isfinite(number):
        return False
    with np.errstate(over="ignore"):
        if dtype.numpy is None:
            bits = short_floats.narrow(np.array([number]), dtype, saturate=False)
            rounded = short_floats.widen(bits, dtype)
        else:
            rounded = np.array([number]).astype(dtype.numpy)
    return not np.isfinite(rounded).all()


def is_padding(number: Any) -> bool:
    """Whether a number is the fill value of the op `pad`: 0, but not -0.0."""
    return bool(number == 0) and math.copysign(1, number) > 0


def is_same_kind(source: DType, target: DType) -> bool:
    """Whether a cast keeps the kind (bool, integer, float) or goes to a more general one."""
    if source.is_float:
        return target.is_float
    return source is dtypes.bool_ or target is not dtypes.bool_


def to_array(data: Any, dtype: Any = None) -> Tuple[np.ndarray, DType]:
    """Returns a contiguous copy of `data` in the form in which it is sent, and its dtype.

    Without a dtype, Python floats are float32 and Python ints int64; NumPy arrays keep theirs.
    Types that NumPy lacks are sent as unsigned integers with the same bits.
    """
    try:
        array = np.asarray(data)
    except ValueError as error:  # lists of unequal length
        raise InvalidArgument(f"cannot make a tensor of {data!r:.80}: {error}") from None
    own = isinstance(data, (np.ndarray, np.generic))
    is_float = dtype is not None and dtypes.as_dtype(dtype).is_float
    if array.dtype == np.float64 and not own and not is_float and (abs(array) >= 2.0**63).any():
        array = _with_large_ints(data, array)
    foreign = dtype_table.ML_DTYPES.get(array.dtype.name)
    if foreign is not None:
        if dtype is None or dtypes.as_dtype(dtype) is foreign:
            return array.copy(order="C").view(short_floats.carrier(foreign)), foreign
        array = array.astype(np.float32)
    if dtype is None:
        # np.asarray makes float64 of Python floats, so float64 is not the user's choice.
        wanted = dtypes.float32 if array.dtype == np.float64 and not own else (
            dtypes.as_dtype(array.dtype) if array.dtype.kind in "biuf" else None)
        if wanted is None:
            raise InvalidArgument(f"cannot make a tensor of {array.dtype}: {data!r:.80}")
    else:
        wanted = dtypes.as_dtype(dtype)
    if wanted.numpy is None:
        return short_floats.narrow(array, wanted), wanted
    return np.array(array, dtype=wanted.numpy, order="C", copy=True), wanted


def _with_large_ints(data: Any, array: np.ndarray) -> np.ndarray:
    """Returns all-int data as uint64: NumPy makes floats of ints beyond int64 next to others."""
    numbers = np.asarray(data, object)
    if not all(isinstance(number, (int, np.integer)) for number in numbers.flat):
        return array
    try:
        return numbers.astype(np.uint64)
    except OverflowError:
        raise InvalidArgument(
            f"no integer dtype holds all of {data!r:.80}; convert them with "
            "dtype=kiln.float64") from None


def from_bytes(data: bytes, dtype: DType, shape: Tuple[int, ...]) -> np.ndarray:
    """Returns the array in these bytes; writable."""
    if dtype.numpy is not None:
        # An array on `bytes` would be read-only.
        return np.frombuffer(bytearray(data), dtype.numpy).reshape(shape)
    bits = np.frombuffer(data, short_floats.carrier(dtype))
    wide: np.ndarray = short_floats.widen(bits, dtype).reshape(shape)
    return wide
