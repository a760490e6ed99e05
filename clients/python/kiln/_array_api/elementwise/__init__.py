"""Elementwise functions of the Python array API standard, and some more."""

from kiln._array_api.elementwise import (
    arithmetic,
    bits,
    comparison,
    exponential,
    inverse,
    numbers,
    rounding,
    special,
    trigonometry,
)
from kiln._array_api.elementwise.arithmetic import *  # noqa: F403
from kiln._array_api.elementwise.bits import *  # noqa: F403
from kiln._array_api.elementwise.comparison import *  # noqa: F403
from kiln._array_api.elementwise.exponential import *  # noqa: F403
from kiln._array_api.elementwise.inverse import *  # noqa: F403
from kiln._array_api.elementwise.numbers import *  # noqa: F403
from kiln._array_api.elementwise.rounding import *  # noqa: F403
from kiln._array_api.elementwise.special import *  # noqa: F403
from kiln._array_api.elementwise.trigonometry import *  # noqa: F403

__all__ = [
    *arithmetic.__all__,
    *bits.__all__,
    *comparison.__all__,
    *exponential.__all__,
    *inverse.__all__,
    *numbers.__all__,
    *rounding.__all__,
    *special.__all__,
    *trigonometry.__all__,
]
