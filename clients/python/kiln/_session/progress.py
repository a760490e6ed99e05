"""Progress on stderr of the first call of a program that a thread waits for, and of searches.

A program is compiled when it is first called. On a terminal one line is updated until the call
continues, and is then erased; elsewhere lines are written at long intervals. $KILN_PROGRESS=off
turns it off.
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

# Waits of no more than this show nothing.
SILENT_SECONDS = 2.0
# Between two updates: of the line on a terminal, and of lines in a file.
UPDATE_SECONDS = 0.25
LINE_SECONDS = 10.0
# Between two questions to the daemon while the call waits for no program's first call.
IDLE_SECONDS = 5.0

# Returns the first calls in progress: kiln.v1.FirstCall messages. Called on a thread of its own.
Ask = Callable[[], Sequence[Any]]

# Texts for parts of a first call other than compiling; see FirstCall in
# proto/kiln/v1/program.proto.
_WORDS = {
    "wait_for_session": "waiting for earlier work",
    "wait_for_thread": "waiting to be compiled",
    "load": "loading",
    "allocate": "allocating memory",
    "wait_for_device": "waiting for the device",
    "run": "first run",
    "answer": "first run",
}

_telling = threading.Lock()  # held by the thread that writes to stderr


def wait(waiter: Waiter, ask: Optional[Ask]) -> Any:
    """As waiter.wait(); shows progress, if there is an `ask`, once that takes long."""
    if ask is None:
        return waiter.wait()
    if waiter.wait_for(SILENT_SECONDS):
        return waiter.result()
    return tell(waiter, ask, sys.stderr, text_of)


def tell(waiter: Waiter, ask: Ask, file: Any, text: Callable[[Sequence[Any]], str]) -> Any:
    """As waiter.wait(), and shows the text of what `ask` returns meanwhile."""
    if not is_on() or not _telling.acquire(blocking=False):
        return waiter.wait()
    try:
        Teller(ask, file, text=text).until_resolved(waiter)
    finally:
        _telling.release()
    return waiter.result()


def is_on() -> bool:
    """Returns whether progress is shown: with a stderr, unless $KILN_PROGRESS is "off" or "0"."""
    return sys.stderr is not None and os.environ.get("KILN_PROGRESS", "") not in ("off", "0")


def text_of(calls: Sequence[Any]) -> str:
    """Returns a readable text of first calls; "" if there are none.

    >>> from kiln._session.progress import text_of
    >>> from kiln._proto.kiln.v1.program_pb2 import FirstCall
    >>> text_of([FirstCall(name="train", part="compile", kernels=84, kernels_made=31, seconds=9)])
    'kiln: compiling 31 of 84 kernels of train, 9 s'
    >>> text_of([FirstCall(part="run", seconds=3.2)])
    'kiln: first run, 3 s'
    """
    if not calls:
        return ""
    # The oldest one: the others wait for it or are compiled at the same time.
    call = max(calls, key=lambda one: one.seconds)
    doing = _WORDS.get(call.part, "compiling")
    if doing == "compiling" and call.kernels:
        doing = f"compiling {call.kernels_made} of {call.kernels} kernels"
    name = "".join(letter if letter.isprintable() else "?" for letter in call.name)
    return f"kiln: {doing}{' of ' if name else ''}{name}, {call.seconds:.0f} s"


class Teller:
    """Writes progress to a file. Asks on other threads, so that the wait is never longer."""

    def __init__(self, ask: Ask, file: Any, now: Callable[[], float] = time.monotonic,
                 start: Callable[..., Any] = _thread.start_new_thread,
                 text: Callable[[Sequence[Any]], str] = text_of) -> None:
        self._ask = ask
        self._text = text
        self._file = file
        self._now = now
        self._start = start  # starts a thread
        self._is_terminal = _is_terminal(file)
        self._pause = UPDATE_SECONDS if self._is_terminal else LINE_SECONDS
        self._next_question = now()
        self._asking = False
        self._answer: Optional[Sequence[Any]] = None
        self._shown = ""  # the text in the terminal's line

    def until_resolved(self, waiter: Waiter) -> None:
        """Returns when waiter.result() may be called."""
        try:
            while True:
                self.look()
                if waiter.wait_for(UPDATE_SECONDS):
                    return
        finally:
            self._show("")

    def look(self) -> None:
        """Shows the latest answer, and asks again when it is time."""
        answer, self._answer = self._answer, None
        if answer is not None:
            text = self._text(answer)
            self._next_question = self._now() + (self._pause if text else IDLE_SECONDS)
            self._show(text)
            self._asking = False
        if not self._asking and self._now() >= self._next_question:
            self._asking = True
            self._start(self._question, ())

    def _question(self) -> None:
        # An older daemon does not have this call, and one that is away cannot answer.
        answer: Sequence[Any] = ()
        with contextlib.suppress(Exception):
            answer = self._ask()
        self._answer = answer

    def _show(self, text: str) -> None:
        # Work must not fail because its progress cannot be written.
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
