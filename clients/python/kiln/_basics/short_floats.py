"""bfloat16 and the two float8 formats, which NumPy lacks, stored as unsigned integers."""

import functools
from typing import Any, Tuple

import numpy as np

from kiln._basics import dtypes
from kiln._basics.dtypes import DType

# The names of ml_dtypes' NumPy dtypes.
BY_FOREIGN_NAME = {"bfloat16": dtypes.bfloat16, "float8_e4m3fn": dtypes.float8_e4m3,
                   "float8_e5m2": dtypes.float8_e5m2}  # fmt: skip


def carrier(dtype: DType) -> Any:
    """Returns the unsigned integer dtype that holds the bits."""
    return np.dtype(np.uint16 if dtype.itemsize == 2 else np.uint8)


def narrow(array: Any, dtype: DType, saturate: bool = True) -> Any:
    """Returns the bits of numbers, rounded to the nearest one of the dtype, ties to even.

    Numbers beyond a float8's largest become the largest. Without `saturate` they become NaN in E4M3
    and an infinity in E5M2. Infinities stay infinities in E5M2 either way.
    """
    if dtype is dtypes.bfloat16:
        return _to_bfloat16(np.asarray(array))
    values, threshold = _positive(dtype)
    wide = np.asarray(array, np.float64)
    # The index of a number among those from 0 up is its bits; the thresholds are the midpoints
    # between neighbours.
    place = np.searchsorted(threshold, np.abs(wide), side="left")
    tie = (place < len(threshold)) & (
        threshold[np.minimum(place, len(threshold) - 1)] == np.abs(wide))
    bits = np.where(tie & (place % 2 == 1), place + 1, place)
    largest, beyond = len(values) - 1, _FORMATS[dtype][2]
    held = saturate & ~(np.isinf(wide) & (dtype is dtypes.float8_e5m2))
    bits = np.where(bits > largest, np.where(held, largest, beyond), bits)
    bits = np.where(np.isnan(wide), 0x7F if dtype is dtypes.float8_e4m3 else 0x7E, bits)
    return (bits | np.where(np.signbit(wide), 0x80, 0)).astype(np.uint8)


def widen(bits: Any, dtype: DType) -> Any:
    """Returns the numbers as float32."""
    if dtype is dtypes.bfloat16:
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return _all(dtype)[bits]


def _to_bfloat16(array: Any) -> Any:
    bits = _odd_float32(array) if array.dtype == np.float64 else np.ascontiguousarray(
        array, np.float32).view(np.uint32)
    # Round to nearest, ties to even.
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    result = (rounded >> np.uint32(16)).astype(np.uint16)
    # Rounding could turn a NaN into an infinity, or overflow it to zero.
    return np.where(np.isnan(array), np.uint16(0x7FC0), result).reshape(array.shape)


def _odd_float32(array: Any) -> Any:
    """Returns the bits of float64 numbers truncated to float32; the last bit is 1 if inexact.

    Rounding to odd makes a second rounding correct. (Boldo and Melquiond, 2008.)
    """
    with np.errstate(over="ignore", under="ignore"):
        near = np.asarray(array.astype(np.float32), order="C")
    bits = near.view(np.uint32)
    bits = bits - (np.abs(near.astype(np.float64)) > np.abs(array)).astype(np.uint32)
    return bits | (near != array).astype(np.uint32)


# The bits of the mantissa, the bias, and the pattern after the largest number: E4M3 has one NaN of
# each sign and no infinity; E5M2 follows IEEE. (Micikevicius et al., 2022.)
_FORMATS = {dtypes.float8_e4m3: (3, 7, 0x7F), dtypes.float8_e5m2: (2, 15, 0x7C)}


@functools.cache
def _all(dtype: DType) -> Any:
    """Returns the numbers of all 256 bit patterns."""
    mantissa_bits, bias, special = _FORMATS[dtype]
    bits = np.arange(128)
    exponent, mantissa = bits >> mantissa_bits, bits & ((1 << mantissa_bits) - 1)
    fraction = mantissa / (1 << mantissa_bits)
    values = np.where(exponent == 0, fraction * 2.0 ** (1 - bias),
                      (1 + fraction) * 2.0 ** (exponent - bias))
    values = np.where(bits >= special, np.nan, values)
    if dtype is dtypes.float8_e5m2:
        values[special] = np.inf
    return np.concatenate([values, -values]).astype(np.float32)


@functools.cache
def _positive(dtype: DType) -> Tuple[Any, Any]:
    """Returns the finite numbers from 0 up, and the threshold from each to the next."""
    special = _FORMATS[dtype][2]
    values = _all(dtype)[:special].astype(np.float64)
    step = values[-1] - values[-2]
    return values, np.append((values[1:] + values[:-1]) / 2, values[-1] + step / 2)
