"""Checks of indices and other values that only the device knows.

A function that takes indices gives the node of its op *checks*, which are judged after a program
has computed it (`telling.py`). docs/guides/errors.md describes the effects that users see.
"""

import os
from typing import Any, NamedTuple, Optional, Tuple, Union

from kiln._basics import conversion
from kiln._basics.errors import InvalidArgument, OutOfRange
from kiln._graph.node import Node
from kiln.variables import Dim, has_dims

enabled = os.environ.get("KILN_CHECKS", "1") != "0"

# Ops whose result holds exactly the integers of their operand.
_VIEWS = frozenset(("reshape", "permute", "flip", "expand", "contiguous", "detach"))


class Limit(NamedTuple):
    """The integers that an op accepts."""

    op: str  # as the user called it
    size: Any  # None: there is no upper limit
    from_end: bool = False  # negative ones count from the end
    ignored: Optional[int] = None  # always allowed
    what: str = "index"
    of: str = "places"

    @property
    def error(self) -> Any:
        """The class of the error."""
        return OutOfRange

    def lies_within(self, low: int, high: int) -> bool:
        """Returns whether all integers from `low` to `high` are allowed."""
        return bool((-self.size if self.from_end else 0) <= low and (
            self.size is None or high < self.size))

    def message(self, value: int) -> str:
        """Returns the error message for an integer outside the limit."""
        if self.size is None:
            return f"{self.op}: {self.what} {value} is out of range: it must not be negative"
        low = -self.size if self.from_end else 0
        allowed = f"{low}..{self.size - 1}" if self.size != 0 else "none"
        ignored = "" if self.ignored is None else f", and {self.ignored}, which is ignored"
        return (f"{self.op}: {self.what} {value} is out of range for {self.size} {self.of}: "
                f"allowed {allowed}{ignored}")


class Requirement(NamedTuple):
    """A requirement on values: its "index" is 1 where they do not meet it, 0 elsewhere."""

    op: str
    text: str
    size: int = 1
    from_end: bool = False
    ignored: Optional[int] = None

    @property
    def error(self) -> Any:
        """The class of the error."""
        return InvalidArgument

    def message(self, value: int) -> str:
        """Returns the error message."""
        return f"{self.op}: {self.text}"


class Check(NamedTuple):
    """An operand of indices, and its limit."""

    indices: Node
    limit: Union[Limit, Requirement]


class Form(NamedTuple):
    """Determines, with the indices, the number that a program reports."""

    from_end: bool
    ignored: Optional[int]
    is_signed: bool


def check(index: Node, limit: Limit) -> Tuple[Check, ...]:
    """Returns the checks of an operand.

    There are none if its values are known, or if its dtype holds no others. Raises OutOfRange if a
    known value is not allowed.
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


def _known(indices: Node, limit: Limit) -> Optional[Tuple[int, ...]]:
    """Returns the least and the greatest index; () if all possible values are allowed; None if only
    the device knows them."""
    node, is_whole = indices, True
    while node.buffer is None and (node.op in _VIEWS or node.op == "shrink" or _is_wider(node)):
        is_whole = is_whole and node.op != "shrink"
        node = node.operands[0]
    bounds = _bounds(node, limit.ignored)
    if bounds is None or all(limit.lies_within(bound, bound) for bound in bounds):
        return None if bounds is None else ()
    # The elements outside the limit may be those that a slice drops or that are ignored.
    is_there = is_whole and (limit.ignored is None or node.host is not None)
    return bounds if is_there else None


def _is_wider(node: Node) -> bool:
    """Returns whether a node is a cast that preserves all integers."""
    if node.op != "cast" or not (node.dtype.is_integer and node.operands[0].dtype.is_integer):
        return False
    low, high = conversion.integer_range(node.dtype)
    least, most = conversion.integer_range(node.operands[0].dtype)
    return low <= least and most <= high


def _bounds(node: Node, ignored: Optional[int]) -> Optional[Tuple[int, ...]]:
    """Returns the least and the greatest of a node's integers, if this process knows them."""
    if node.buffer is not None:
        return node.buffer.value_range
    if node.host is not None:
        values = node.host if ignored is None else node.host[node.host != ignored]
        return (int(values.min()), int(values.max())) if values.size else ()
    attributes = dict(node.attributes)
    if node.op == "iota":
        last = attributes["shape"][attributes["axis"]] - 1
        return None if isinstance(last, Dim) else (0, last)
    if node.op != "const" or isinstance(attributes["value"], Dim):
        return None
    return (attributes["value"],)


def form_of(found: Check) -> Form:
    """Returns the form of the number that a program reports for a check."""
    is_signed = found.indices.dtype.is_signed
    return Form(found.limit.from_end and is_signed, found.limit.ignored, is_signed)
