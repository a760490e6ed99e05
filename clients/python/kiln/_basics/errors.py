"""Exceptions: one for each canonical gRPC code; messages are the daemon's or this client's."""

from typing import Dict, Optional, Type

from kiln._basics.source import format_source, user_source


class KilnError(Exception):
    """Base of all errors of Kiln.

    `reason` is a constant such as "SHAPE_MISMATCH" and `metadata` names what it is about
    ("node", …), both where the daemon gave them. `source` is the line of the user's own program
    that made it, such as "train.py:31"; for an error that the daemon finds later, the line that
    built the node.

    >>> try:
    ...     kiln.ones(2) + kiln.ones(3)
    ... except kiln.KilnError as error:
    ...     print(type(error).__name__)
    InvalidArgument
    """

    code = 2
    # Whether an error of this kind names the user's line that is running. (Threads of this package
    # run none.)
    _names_line = False

    def __init__(
        self, message: str, reason: str = "", metadata: Optional[Dict[str, str]] = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.metadata = metadata or {}
        # The daemon's errors have metadata, even if it is empty, and name the line that built the
        # node.
        if metadata is None and self._names_line:
            self.source = format_source(user_source())
        else:
            self.source = self.metadata.get("source", "")

    def __str__(self) -> str:
        if not self.source or self.source in self.message:
            return self.message
        return f"{self.message} ({self.source})"


class Cancelled(KilnError):
    """The operation was cancelled, for example since its session was closed."""

    code = 1


class InvalidArgument(KilnError, ValueError):
    """A wrong shape, dtype, axis or value."""

    code = 3
    _names_line = True


class InvalidIndex(InvalidArgument, IndexError):
    """A key that cannot index the tensor: too many indices, a mask of another shape."""


class DeadlineExceeded(KilnError, TimeoutError):
    """The operation took too long."""

    code = 4


class NotFound(KilnError, LookupError):
    """There is no such thing: a session that has ended, a handle that was released."""

    code = 5


class AlreadyExists(KilnError):
    """A name or handle was used twice."""

    code = 6


class PermissionDenied(KilnError):
    """The user may not do this."""

    code = 7


class ResourceExhausted(KilnError, MemoryError):
    """Device memory, a quota or a limit is used up."""

    code = 8


class FailedPrecondition(KilnError):
    """The system is not in the state that the operation needs."""

    code = 9
    _names_line = True


class Aborted(KilnError):
    """The operation was given up, for example since the daemon stops."""

    code = 10


class OutOfRange(KilnError, IndexError):
    """A value is outside of its valid range, for example an index."""

    code = 11
    _names_line = True


class Unimplemented(KilnError, NotImplementedError):
    """The daemon or the device cannot do this."""

    code = 12


class Internal(KilnError):
    """A defect of Kiln's. Please report it."""

    code = 13


class Unavailable(KilnError, ConnectionError):
    """The daemon cannot be reached, or is draining."""

    code = 14


class DataLoss(KilnError):
    """Data was lost."""

    code = 15


class Unauthenticated(KilnError):
    """The daemon does not know who this is."""

    code = 16


class TraceError(KilnError, RuntimeError):
    """A function given to `kiln.jit` does something that cannot be traced.

    >>> try:
    ...     kiln.jit(lambda x: x.item())(kiln.ones(1))
    ... except kiln.TraceError as error:
    ...     print(type(error).__name__)
    TraceError
    """

    code = 9
    _names_line = True


BY_CODE: Dict[int, Type[KilnError]] = {
    error.code: error
    for error in (
        Cancelled, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists, PermissionDenied,
        ResourceExhausted, FailedPrecondition, Aborted, OutOfRange, Unimplemented, Internal,
        Unavailable, DataLoss, Unauthenticated,
    )
}  # fmt: skip

# Tracebacks show the name that users import.
for _error in (KilnError, InvalidIndex, TraceError, *BY_CODE.values()):
    _error.__module__ = "kiln"


def make(code: int, message: str, reason: str = "",
         metadata: Optional[Dict[str, str]] = None) -> KilnError:
    """The exception for a canonical code, as the daemon gave it."""
    return BY_CODE.get(code, KilnError)(message, reason, metadata or {})
