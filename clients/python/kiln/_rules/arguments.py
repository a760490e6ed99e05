"""Arguments that must be integers, and such that must be bools.

Python counts True as 1 and takes any number for a bool, so that an argument in another's place,
such as the bool of x.sum(True) or the second axis of x.sum(0, 1), would go unnoticed.
"""

import operator
from typing import Any

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln.variables import Dim


# A number may stand for a sequence of equal ones; whole() then refuses a bool.
NUMBER = (int, np.integer, np.bool_)


def whole(value: Any, name: str) -> int:
    """An integer, or what variables make one; a bool is none, nor a float without a fraction.

    `name` is the argument's, for the message.
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
    """A bool; `name` is the argument's, for the message."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise InvalidArgument(f"{name} is {value!r:.80}; it must be True or False")
