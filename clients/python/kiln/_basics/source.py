"""Where in the user's program something was asked for."""

import os
import sys
from typing import Optional, Tuple

Source = Tuple[str, int]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_source() -> Optional[Source]:
    """Where the innermost frame outside of this package stands: (file, line)."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(_PACKAGE):
            return filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


def format_source(source: Optional[Source]) -> str:
    """"train.py:31", or nothing."""
    return f"{os.path.basename(source[0])}:{source[1]}" if source else ""
