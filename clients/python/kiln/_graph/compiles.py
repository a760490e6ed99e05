"""A warning for loops that compile at each iteration."""

import threading
import warnings
from collections import OrderedDict

from kiln._basics.source import Source, format_source, user_source

# A line with this many new programs in a row is taken for a loop.
_MANY = 32
_LINES_KEPT = 1024

# The number of new programs in a row, by the user's line.
_new: "OrderedDict[Source, int]" = OrderedDict()
_warned: "OrderedDict[Source, int]" = OrderedDict()
_lock = threading.Lock()  # guards both


def note_new() -> None:
    """Records that a new program is about to be compiled; warns after many in a row."""
    source = user_source()
    if source is None:
        return
    with _lock:
        count = _new.pop(source, 0) + 1
        is_many = count >= _MANY
        if source not in _warned:
            (_warned if is_many else _new)[source] = count
        for lines in (_new, _warned):
            if len(lines) > _LINES_KEPT:
                lines.popitem(last=False)
    if is_many:
        warnings.warn_explicit(
            f"{format_source(source)} has computed {count} programs in a row that were all new, "
            "and each is compiled. Numbers and begins of slices may change without that, and most "
            "sizes. What changes here is another thing: how many operations there are, an axis, a "
            "small exponent, or sizes for which the daemon finds no common program (a reshape to a "
            "product of two of them). Make it a tensor, or the same in each iteration",
            RuntimeWarning, *source)


def note_known() -> None:
    """Records that a program is run again."""
    if _new:
        source = user_source()
        if source is not None:
            with _lock:
                _new.pop(source, None)
