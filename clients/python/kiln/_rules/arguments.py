"""Checks arguments that must be integers, and those that must be bools.

Python counts True as 1 and accepts any number as a bool, so a misplaced argument, such as the bool
of x.sum(True) or the second axis of x.sum(0, 1), would go unnoticed.
"""

import operator
from typing import Any

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln.variables import Dim

# A number may stand for a sequence of equal ones; whole() then rejects a bool.
NUMBER = (int, np.integer, np.bool_)


def whole(value: Any, name: str) -> int:
    """Returns an integer, which may depend on variables; rejects bools and all floats.

    `name` is the argument's, for the message. Raises InvalidArgument.
    """
    if isinstance(value, Dim):
        return value  # type: ignore[return-value]
    if not isinstance(value, (bool, np.bool_)):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise InvalidArgument(f"{name} is {value!r:.80}; it must be an integer")


def flag(value: Any, name: str) -> bool:
    """Returns a bool, or raises InvalidArgument; `name` is the argument's, for the message."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise InvalidArgument(f"{name} is {value!r:.80}; it must be True or False")
