"""What a call waits for, told on stderr while it waits for long.

A program is compiled when it is first called. On a terminal one line is updated until the call goes
on, and is gone then; elsewhere a line is written now and then. $KILN_PROGRESS=off turns it off.
"""

import _thread
import contextlib
import os
import shutil
import sys
import threading
import time
from typing import Any, Callable, Optional, Sequence

from kiln._session.waiter import Waiter

# Calls of no more than this tell nothing.
SILENT_SECONDS = 2.0
# Between two looks at what goes on: for a line that is updated, and for lines that stay.
UPDATE_SECONDS = 0.25
LINE_SECONDS = 10.0
# Between two questions as long as no program's first call is what the call waits for.
IDLE_SECONDS = 5.0

# What the daemon is at: kiln.v1.FirstCall messages. Called on a thread of its own.
Ask = Callable[[], Sequence[Any]]

# For parts of a first call that are not compiling; see FirstCall in proto/kiln/v1/program.proto.
_WORDS = {
    "wait_for_session": "waiting for earlier work",
    "wait_for_thread": "waiting to be compiled",
    "load": "loading",
    "allocate": "allocating memory",
    "wait_for_device": "waiting for the device",
    "run": "first run",
    "answer": "first run",
}

_telling = threading.Lock()  # by who writes to stderr


def wait(waiter: Waiter, ask: Optional[Ask]) -> Any:
    """waiter.wait(); tells what goes on once that takes long. Without `ask`, nobody knows."""
    if ask is None:
        return waiter.wait()
    if waiter.wait_for(SILENT_SECONDS):
        return waiter.result()
    if not is_on() or not _telling.acquire(blocking=False):
        return waiter.wait()
    try:
        Teller(ask, sys.stderr).until_resolved(waiter)
    finally:
        _telling.release()
    return waiter.result()


def is_on() -> bool:
    """Whether somebody may want to know."""
    return sys.stderr is not None and os.environ.get("KILN_PROGRESS", "") not in ("off", "0")


def text_of(calls: Sequence[Any]) -> str:
    """What the daemon is at, for people; empty if no program's first call goes on.

    >>> from kiln._session.progress import text_of
    >>> from kiln._proto.kiln.v1.program_pb2 import FirstCall
    >>> text_of([FirstCall(name="train", part="compile", kernels=84, kernels_made=31, seconds=9)])
    'kiln: compiling 31 of 84 kernels of train, 9 s'
    >>> text_of([FirstCall(part="run", seconds=3.2)])
    'kiln: first run, 3 s'
    """
    if not calls:
        return ""
    # Of several, the one that came first: the others wait for it, or are compiled beside it.
    call = max(calls, key=lambda one: one.seconds)
    doing = _WORDS.get(call.part, "compiling")
    if doing == "compiling" and call.kernels:
        doing = f"compiling {call.kernels_made} of {call.kernels} kernels"
    name = "".join(letter if letter.isprintable() else "?" for letter in call.name)
    return f"kiln: {doing}{' of ' if name else ''}{name}, {call.seconds:.0f} s"


class Teller:
    """Tells on a file what goes on. Asks on threads of its own, so that nobody waits for it."""

    def __init__(self, ask: Ask, file: Any, now: Callable[[], float] = time.monotonic,
                 start: Callable[..., Any] = _thread.start_new_thread) -> None:
        self._ask = ask
        self._file = file
        self._now = now
        self._start = start  # a thread
        self._is_terminal = _is_terminal(file)
        self._pause = UPDATE_SECONDS if self._is_terminal else LINE_SECONDS
        self._next_question = now()
        self._asking = False
        self._answer: Optional[Sequence[Any]] = None
        self._shown = ""  # on a terminal, what stands in its line

    def until_resolved(self, waiter: Waiter) -> None:
        """Returns when waiter.result() may be asked for."""
        try:
            while True:
                self.look()
                if waiter.wait_for(UPDATE_SECONDS):
                    return
        finally:
            self._show("")

    def look(self) -> None:
        """Tells what is known, and asks again when it is time."""
        answer, self._answer = self._answer, None
        if answer is not None:
            text = text_of(answer)
            self._next_question = self._now() + (self._pause if text else IDLE_SECONDS)
            self._show(text)
            self._asking = False
        if not self._asking and self._now() >= self._next_question:
            self._asking = True
            self._start(self._question, ())

    def _question(self) -> None:
        # An older daemon does not know, and one that is away cannot say.
        answer: Sequence[Any] = ()
        with contextlib.suppress(Exception):
            answer = self._ask()
        self._answer = answer

    def _show(self, text: str) -> None:
        # Nobody's work fails because nobody reads this.
        with contextlib.suppress(OSError, ValueError):
            if self._is_terminal:
                if text or self._shown:
                    columns = shutil.get_terminal_size().columns
                    self._file.write(f"\r\x1b[K{text[:columns - 1]}")
                    self._file.flush()
                self._shown = text
            elif text:
                self._file.write(text + "\n")
                self._file.flush()


def _is_terminal(file: Any) -> bool:
    try:
        return bool(file.isatty())
    except (AttributeError, ValueError):
        return False
