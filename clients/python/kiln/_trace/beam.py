"""The tuning of jitted functions when they are first compiled."""

import os
import warnings
from typing import Callable, List, Optional

from kiln._basics import errors
from kiln._session import tuning
from kiln._session.handles import Program
from kiln._session.tuning import TunedKernel

# A search that the daemon does not make is no reason why a function should not run.
_NO_SEARCH = (errors.Unavailable, errors.Unimplemented, errors.FailedPrecondition, errors.NotFound,
              errors.ResourceExhausted, errors.Cancelled)


def width_of(beam: Optional[int]) -> int:
    """Returns the width of the search at a first compilation; 0: none. None: $KILN_BEAM."""
    if beam is not None:
        return tuning.checked_width(beam, "beam")
    text = os.environ.get("KILN_BEAM", "")
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError(f"KILN_BEAM is {text!r}; it is a number of 0 to {tuning.WIDTH_MAX}")
    return tuning.checked_width(int(text or "0"), "KILN_BEAM")


def tuned(program: Program, define: Callable[[], Program], width: int) -> Program:
    """Tunes a program that was just defined; returns it, or one that `define` makes of it."""
    try:
        kernels = tune_program(program, 0, width)
    except _NO_SEARCH as error:
        if program.error is not None:  # its run reports that
            return program
        warnings.warn(f"the program was not tuned: {error}", RuntimeWarning, stacklevel=2)
        return program
    if not any(kernel.state == "faster" for kernel in kernels):
        return program
    program.connection._forget(program)
    return define()


def tune_program(program: Program, seconds: int, width: int) -> List[TunedKernel]:
    """Tunes a program once it is compiled. `seconds`: 0, as long as the daemon chooses."""
    if not program.connection.accepts(program) or not program.digest:
        return []
    return tuning.tune(program.connection, program.digest, seconds, width)
