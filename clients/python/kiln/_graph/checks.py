"""Indices that only the device knows: what they must be.

A function that takes indices gives the node of its op *checks*, which are judged once a program has
computed it (`telling.py`). README.md says what a user sees of that.
"""

import os
from typing import Any, NamedTuple, Optional, Tuple

from kiln._basics import conversion
from kiln._basics.errors import OutOfRange
from kiln._graph.node import Node
from kiln.variables import Dim, has_dims

enabled = os.environ.get("KILN_CHECKS", "1") != "0"

class Form(NamedTuple):
    """On what, besides the index, the number depends that a program tells."""

    from_end: bool
    ignored: Optional[int]
    is_signed: bool


class Limit(NamedTuple):
    """Which integers an op takes."""

    op: str  # as the user has called it
    size: Any  # None: there is no limit above
    from_end: bool = False  # negative ones count from the end
    ignored: Optional[int] = None  # allowed, wherever it is
    what: str = "index"
    of: str = "places"

    def lies_within(self, least: int, most: int) -> bool:
        """Whether all of these are allowed."""
        return bool((-self.size if self.from_end else 0) <= least and (
            self.size is None or most < self.size))

    def message(self, value: int) -> str:
        """What is wrong with an integer that is not allowed."""
        if self.size is None:
            return f"{self.op}: {self.what} {value} is out of range: it must not be negative"
        low = -self.size if self.from_end else 0
        allowed = f"{low}..{self.size - 1}" if self.size != 0 else "none"
        ignored = "" if self.ignored is None else f", and {self.ignored}, which is ignored"
        return (f"{self.op}: {self.what} {value} is out of range for {self.size} {self.of}: "
                f"allowed {allowed}{ignored}")


class Check(NamedTuple):
    """An operand of integers, and its limit."""

    indices: Node
    limit: Limit


def check(index: Node, limit: Limit) -> Tuple[Check, ...]:
    """The checks of an operand: none where its values are known, or all that its dtype has fit.

    Raises OutOfRange if they are known and one is not allowed.
    """
    if not index.dtype.is_integer or 0 in index.shape:
        return ()
    known = _known(index, limit)
    if known is not None:
        for value in known:
            if not limit.lies_within(value, value):
                raise OutOfRange(limit.message(value))
        return ()
    if not enabled or (limit.size is not None and has_dims((limit.size,))) or (
            limit.lies_within(*conversion.integer_range(index.dtype))):
        return ()
    return (Check(index, limit),)


def _known(index: Node, limit: Limit) -> Optional[Tuple[int, ...]]:
    """The least and the most of what is not ignored, if this process knows them."""
    if index.op == "const":
        value = index.attributes[0][1]
        return None if isinstance(value, Dim) else () if value == limit.ignored else (value,)
    if index.host is not None:
        values = index.host
        if limit.ignored is not None:
            values = values[values != limit.ignored]
        return (int(values.min()), int(values.max())) if values.size else ()
    if index.buffer is None or index.buffer.least_most is None:
        return None
    least, most = index.buffer.least_most
    # What is ignored may be one of them.
    return (least, most) if limit.ignored is None or limit.lies_within(least, most) else None


def form_of(found: Check) -> Form:
    """The form of the number that a program tells."""
    is_signed = found.indices.dtype.is_signed
    return Form(found.limit.from_end and is_signed, found.limit.ignored, is_signed)
