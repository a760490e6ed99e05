"""A warning about loops that compile at each iteration."""

import warnings
from collections import OrderedDict

from kiln._basics.source import Source, format_source, user_source

# So many new programs in a row at one line are a loop's.
_MANY = 32
_LINES_KEPT = 1024

# By the user's line: how many programs in a row were new there.
_new: "OrderedDict[Source, int]" = OrderedDict()
_warned: "OrderedDict[Source, None]" = OrderedDict()


def note_new() -> None:
    """Takes note that a new program is about to be compiled; warns if that goes on and on."""
    source = user_source()
    if source is None or source in _warned:
        return
    count = _new.pop(source, 0) + 1
    _new[source] = count
    if count >= _MANY:
        del _new[source]
        _warned[source] = None
        warnings.warn_explicit(
            f"{format_source(source)} has computed {count} programs in a row that were all new, "
            "and each is compiled. Numbers, begins of slices and sizes may change without that; "
            "what changes here is another thing, such as how many operations there are, an axis "
            "or a small exponent. Make it a tensor, or the same in each iteration",
            RuntimeWarning, *source)
    for lines in (_new, _warned):
        if len(lines) > _LINES_KEPT:
            lines.popitem(last=False)


def note_known() -> None:
    """Takes note that a program is run again."""
    if _new:
        source = user_source()
        if source is not None:
            _new.pop(source, None)
