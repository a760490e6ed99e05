"""kiln.tune."""

from typing import List, Union

from kiln._session import tuning
from kiln._session.connection import default_connection
from kiln._session.handles import ProgramInfo
from kiln._session.tuning import TunedKernel
from kiln._trace.beam import tune_program
from kiln._trace.jit import Jit


def tune(what: Union[Jit, ProgramInfo, str], *, seconds: int = 60,
         width: int = 4) -> List[TunedKernel]:
    """Has the daemon search for faster kernels, and returns what it has found for each.

    `what` is a function made by `kiln.jit` that has been called: all its programs are tuned, one
    after another, and its next call uses what was found. Or it is a program (`Jit.programs`), or
    its digest or the beginning of one. Those kernels come first that take the most of a program's
    time; `seconds` are for all kernels of one program together, and at most an hour unless the
    daemon's configuration says otherwise (`tuner.seconds_limit`). `width` settings go on to the
    next round of a kernel's search, at most 64; more find more, and take longer. Kernels that were
    searched with this width before are skipped.

    The daemon stores the settings that it finds, and uses them for all later definitions of
    programs with these kernels, in this process and others. Programs that are defined already keep
    theirs, so that their results stay the same to the last bit; another schedule may round sums
    differently.
    Ctrl-C ends the search and keeps what was stored until then. Progress is shown on stderr if it
    takes longer than two seconds, unless $KILN_PROGRESS is "off".

    Raises Unavailable if another program is being tuned on the device.

    >>> double = kiln.jit(lambda x: x * 2)
    >>> _ = double(kiln.ones(2)).tolist()
    >>> [found.share for found in kiln.tune(double, seconds=1, width=1)]
    [1.0]
    """
    if not isinstance(seconds, int) or seconds < 1:
        raise ValueError(f"seconds is {seconds!r}; it is a number of 1 or more")
    if tuning.checked_width(width, "width") == 0:
        raise ValueError("width is 0; it is at least 1")
    if not isinstance(what, Jit):
        digest = what.digest if isinstance(what, ProgramInfo) else what
        if not isinstance(digest, str) or not digest:
            raise TypeError(
                f"{what!r} cannot be tuned; give a function made by kiln.jit, a program, or the "
                "beginning of a program's digest")
        return tuning.tune(default_connection(), digest, seconds, width)
    found: List[TunedKernel] = []
    programs = what._defined()
    if not programs:
        raise ValueError(f"{what._name} has no program to tune yet; call it first")
    for program in programs:
        kernels = tune_program(program, seconds, width)
        if any(kernel.state == "faster" for kernel in kernels):
            what._forget(program)
        found += kernels
    return found
