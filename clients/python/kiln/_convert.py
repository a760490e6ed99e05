"""Between Python numbers, NumPy arrays and the bytes that travel."""

from typing import Any, Tuple

import numpy as np

from kiln import _dtypes
from kiln._dtypes import DType
from kiln._errors import InvalidArgument


def weak_dtype(number: Any, like: DType) -> DType:
    """The dtype of a Python number that meets a tensor: the tensor's, where it has the kind."""
    if isinstance(number, bool):
        return like
    if isinstance(number, int):
        return _dtypes.int64 if like is _dtypes.bool_ else like
    return like if like.is_float else _dtypes.float32


def is_same_kind(source: DType, target: DType) -> bool:
    """Whether a cast stays within bools, integers or floats, or goes to a kind that holds more."""
    if source.is_float:
        return target.is_float
    return source is _dtypes.bool_ or target is not _dtypes.bool_


def to_array(data: Any, dtype: Any = None) -> Tuple[np.ndarray, DType]:
    """An own, contiguous copy of `data` as it travels, and its dtype.

    Without a dtype, Python floats are float32 and Python ints int64; NumPy arrays keep theirs.
    Types that NumPy lacks travel as unsigned integers with the same bits.
    """
    array = np.asarray(data)
    if dtype is None:
        own = isinstance(data, (np.ndarray, np.generic))
        wanted = _dtypes.float32 if array.dtype == np.float64 and not own else (
            _dtypes.as_dtype(array.dtype) if array.dtype.kind in "biuf" else None)
        if wanted is None:
            raise InvalidArgument(f"no tensor of {array.dtype}: {data!r:.80}")
    else:
        wanted = _dtypes.as_dtype(dtype)
    if wanted.numpy is None:
        if wanted is not _dtypes.bfloat16:
            raise InvalidArgument(f"make a float32 tensor and cast it to {wanted.name}")
        return _to_bfloat16(array), wanted
    return np.array(array, dtype=wanted.numpy, order="C", copy=True), wanted


def from_bytes(data: bytes, dtype: DType, shape: Tuple[int, ...]) -> np.ndarray:
    """The array in these bytes; writable."""
    if dtype.numpy is not None:
        return np.frombuffer(bytearray(data), dtype.numpy).reshape(shape)
    if dtype is _dtypes.bfloat16:
        return widen_bfloat16(np.frombuffer(data, np.uint16)).reshape(shape)
    raise InvalidArgument(f"cast {dtype.name} to float32 before reading it")


def _to_bfloat16(array: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    # Round to nearest, ties to even.
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    result = (rounded >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FC0), result).reshape(array.shape)


def widen_bfloat16(bits: np.ndarray) -> np.ndarray:
    """bfloat16's bits as float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
