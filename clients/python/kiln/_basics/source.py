"""The line of the user's program that an operation or an error comes from."""

import contextlib
import os
import sys
import threading
from typing import Dict, Iterator, Optional, Tuple

Source = Tuple[str, int]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


# Whether a file, by name, belongs to this package.
_is_own: Dict[str, bool] = {}
_FILES_KEPT = 4096


class _Known(threading.local):
    source: Optional[Source] = None


_known = _Known()


@contextlib.contextmanager
def one_source() -> Iterator[None]:
    """While it is active, user_source() returns the line that entered it.

    Requires: no user code runs within.
    """
    before = _known.source
    _known.source = user_source()
    try:
        yield
    finally:
        _known.source = before


def user_source() -> Optional[Source]:
    """Returns (file, line) of the innermost frame outside of this package, or None."""
    if _known.source is not None:
        return _known.source
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        own = _is_own.get(filename)
        if own is None:
            if len(_is_own) >= _FILES_KEPT:
                _is_own.clear()
            own = _is_own[filename] = filename.startswith(_PACKAGE)
        if not own:
            return filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


def format_source(source: Optional[Source]) -> str:
    """Returns text such as "train.py:31", or "" for None."""
    return f"{os.path.basename(source[0])}:{source[1]}" if source else ""
