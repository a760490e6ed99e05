"""bfloat16 and the float8 formats, which NumPy lacks, stored as unsigned integers.

Float8 E4M3 has one NaN of each sign and no infinity; E5M2 follows IEEE.
(Micikevicius et al., 2022.)
"""

import functools
from typing import Any, Tuple

import numpy as np

from kiln._basics import dtypes
from kiln._basics.dtype import DType
from kiln._basics.dtype_table import FORMATS


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
    largest, float_format = len(values) - 1, FORMATS[dtype]
    held = saturate & ~(np.isinf(wide) & float_format.has_infinity)
    bits = np.where(bits > largest, np.where(held, largest, float_format.beyond_bits), bits)
    bits = np.where(np.isnan(wide), float_format.nan_bits, bits)
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


@functools.cache
def _all(dtype: DType) -> Any:
    """Returns the numbers of all 256 bit patterns."""
    float_format = FORMATS[dtype]
    bits = np.arange(128)
    exponent, mantissa = np.divmod(bits, 1 << float_format.mantissa_bits)
    fraction = mantissa / (1 << float_format.mantissa_bits)
    values = np.where(exponent == 0, fraction * 2.0 ** (1 - float_format.bias),
                      (1 + fraction) * 2.0 ** (exponent - float_format.bias))
    values = np.where(bits >= float_format.beyond_bits, np.nan, values)
    if float_format.has_infinity:
        values[float_format.beyond_bits] = np.inf
    return np.concatenate([values, -values]).astype(np.float32)


@functools.cache
def _positive(dtype: DType) -> Tuple[Any, Any]:
    """Returns the finite numbers from 0 up, and the threshold from each to the next."""
    values = _all(dtype)[:FORMATS[dtype].beyond_bits].astype(np.float64)
    step = values[-1] - values[-2]
    return values, np.append((values[1:] + values[:-1]) / 2, values[-1] + step / 2)
