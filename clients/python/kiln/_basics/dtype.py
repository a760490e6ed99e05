"""The class of element types, and the formats of floats."""

from typing import NamedTuple, Optional

import numpy as np


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


class FloatFormat(NamedTuple):
    """The layout of a float's bits; compiler/ir/dtype.h explains it.

    Without infinities the highest exponent belongs to numbers, and NaN has all bits set.
    """

    mantissa_bits: int
    exponent_bits: int
    has_infinity: bool

    @property
    def bias(self) -> int:
        """The number that is subtracted from the exponent's bits."""
        return int(2 ** (self.exponent_bits - 1)) - 1

    @property
    def largest(self) -> float:
        """The largest finite number."""
        unit: float = 2.0**-self.mantissa_bits
        if self.has_infinity:
            return (2 - unit) * 2.0**self.bias
        return (2 - 2 * unit) * 2.0 ** (self.bias + 1)

    @property
    def beyond_bits(self) -> int:
        """The bits after those of the largest number: of infinity, or NaN if there is none."""
        exponent = (1 << self.exponent_bits) - 1
        mantissa = 0 if self.has_infinity else (1 << self.mantissa_bits) - 1
        return exponent << self.mantissa_bits | mantissa

    @property
    def nan_bits(self) -> int:
        """The bits of NaN."""
        return self.beyond_bits | 1 << (self.mantissa_bits - 1)
