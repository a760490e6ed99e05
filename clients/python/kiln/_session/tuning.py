"""Searches of the daemon for faster kernels of a program, and their progress on stderr."""

import _thread
import sys
import time
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Sequence

import kiln._proto.kiln.v1.program_pb2 as program_pb2
from kiln._basics import errors
from kiln._session import progress
from kiln._session.rpc import through_cuts
from kiln._session.waiter import Waiter, Work, in_thread

if TYPE_CHECKING:
    from kiln._session.connection import Connection

# Seconds between attempts to begin a tuning after the last one was interrupted.
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4)
# Connections whose last tuning was interrupted.
_interrupted: "weakref.WeakSet[Connection]" = weakref.WeakSet()

# Settings that each round of a search starts from.
WIDTH_MAX = 64


class TunedKernel(NamedTuple):
    """The result of a search for one kernel, as `kiln.tune` returns it.

    >>> kiln.TunedKernel("sum", "faster", 2e-3, 1e-3, 0.5, "").seconds_now
    0.001
    """

    kernel: str
    # "faster"; "kept": nothing was faster; "searched": it was searched before; "no_time";
    # "failed": `why`
    state: str
    seconds_before: float  # of one launch with the compiler's own schedule; 0: not known
    seconds_now: float  # with the stored one
    share: float  # of the program's time
    why: str
    # The least time that the device allows for a launch, and what limits it: "compute", "memory" or
    # "launch"; 0 and "": not known
    roofline_seconds: float = 0.0
    roofline_limit: str = ""


def tune(connection: "Connection", digest: str, seconds: int, width: int) -> List[TunedKernel]:
    """Searches the kernels of a program; returns what was found when that is done.

    An interrupt ends the search; what it has stored until then remains.
    """
    # The daemon learns of an interrupt later than this process does.
    for pause in _PAUSES if connection in _interrupted else ():
        try:
            return _tune(connection, digest, seconds, width)
        except errors.Unavailable as error:
            if error.reason != "ALREADY_TUNING":
                raise
        time.sleep(pause)
    return _tune(connection, digest, seconds, width)


def _tune(connection: "Connection", digest: str, seconds: int, width: int) -> List[TunedKernel]:
    request = program_pb2.TuneProgramRequest(digest=digest, seconds=seconds, beam_width=width)
    latest: Dict[int, Any] = {}  # by the kernel's number
    calls: List[Any] = []

    def receive(work: Work) -> None:
        calls.append(connection._session.programs.TuneProgram(request))
        if work.abandoned:
            calls[-1].cancel()
        for message in calls[-1]:
            latest[message.number] = message
            work.went_on = time.monotonic()

    def wait(waiter: Waiter) -> Any:
        if waiter.wait_for(progress.SILENT_SECONDS):
            return waiter.result()
        return progress.tell(waiter, lambda: list(latest.values()), sys.stderr, text_of)

    connection.stream.check()
    try:
        in_thread(lambda work: through_cuts(connection.stream, work, lambda: receive(work)), wait)
    except BaseException:
        for call in calls:
            _thread.start_new_thread(call.cancel, ())
            _interrupted.add(connection)
        raise
    _interrupted.discard(connection)
    return [_tuned(message) for _, message in sorted(latest.items()) if not message.site]


def text_of(kernels: Sequence[Any]) -> str:
    """Returns a readable text of the progress of kernels; "" if there are none.

    >>> from kiln._session.tuning import text_of
    >>> from kiln._proto.kiln.v1.program_pb2 import TuneProgramResponse
    >>> text_of([TuneProgramResponse(kernel="sum", number=2, kernels=9, tried=48,
    ...                              seconds_before=3e-3, seconds_now=2e-3)])
    'kiln: tuning kernel 2 of 9, sum: 48 schedules tried, 1.50 times as fast'
    """
    if not kernels:
        return ""
    last = max(kernels, key=lambda kernel: kernel.number)
    name = "".join(letter if letter.isprintable() else "?" for letter in last.kernel)
    text = (f"kiln: tuning kernel {last.number} of {last.kernels}, {name}: "
            f"{last.tried} schedules tried")
    if last.seconds_before > 0 and last.seconds_now > 0:
        text += f", {last.seconds_before / last.seconds_now:.2f} times as fast"
    return text


def _tuned(message: Any) -> TunedKernel:
    state = message.State.Name(message.state).lower()
    return TunedKernel(message.kernel, state, message.seconds_before, message.seconds_now,
                       message.share, message.why, message.roofline_seconds,
                       message.roofline_limit)


def checked_width(width: Optional[int], name: str) -> int:
    """Returns the width if the daemon accepts it; raises ValueError otherwise. None: 0."""
    if width is None:
        return 0
    if not isinstance(width, int) or isinstance(width, bool) or not 0 <= width <= WIDTH_MAX:
        raise ValueError(f"{name} is {width!r}; it is a number of 0 to {WIDTH_MAX}")
    return width
