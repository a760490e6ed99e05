"""Exceptions, one for each canonical gRPC code. Messages are the daemon's or this client's."""

from typing import Dict, Optional, Type

from kiln._basics.source import format_source, user_source


class KilnError(Exception):
    """The base class of all errors of Kiln.

    `reason` is a constant such as "SHAPE_MISMATCH", and `metadata` gives details ("node", …); most
    errors of this client have neither. `source` is the line of the user's program that caused the
    error, such as "train.py:31"; for an error that the daemon finds later, the line that built the
    node.

    >>> try:
    ...     kiln.ones(2) + kiln.ones(3)
    ... except kiln.KilnError as error:
    ...     print(type(error).__name__)
    InvalidArgument
    """

    code = 2
    # Whether errors of this kind name the user's line that is executing. (The threads of this
    # package execute none.)
    _names_line = False

    def __init__(
        self, message: str, reason: str = "", metadata: Optional[Dict[str, str]] = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.metadata = metadata or {}
        # Errors of the daemon always have metadata, maybe empty, and name the line that built the
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
    """The operation was cancelled, for example because its session was closed."""

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
    """The object does not exist: a session that was closed, a handle that was released."""

    code = 5


class AlreadyExists(KilnError):
    """A name or handle was used twice."""

    code = 6


class PermissionDenied(KilnError):
    """The user may not do this."""

    code = 7


class ResourceExhausted(KilnError, MemoryError):
    """Device memory, a quota or a limit is exhausted."""

    code = 8


class FailedPrecondition(KilnError):
    """The system is not in the state that the operation needs."""

    code = 9
    _names_line = True


class Aborted(KilnError):
    """The operation was aborted, for example because the daemon stops."""

    code = 10


class OutOfRange(KilnError, IndexError):
    """A value is outside of its valid range, for example an index."""

    code = 11
    _names_line = True


class Unimplemented(KilnError, NotImplementedError):
    """The daemon or the device cannot do this."""

    code = 12


class Internal(KilnError):
    """A defect of Kiln. Please report it."""

    code = 13


class Unavailable(KilnError, ConnectionError):
    """The daemon cannot be reached, or is draining."""

    code = 14


class DataLoss(KilnError):
    """Data was lost."""

    code = 15


class Unauthenticated(KilnError):
    """The daemon could not identify the caller."""

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

# Makes tracebacks show the name that users import.
for _error in (KilnError, InvalidIndex, TraceError, *BY_CODE.values()):
    _error.__module__ = "kiln"


def make(code: int, message: str, reason: str = "",
         metadata: Optional[Dict[str, str]] = None) -> KilnError:
    """Returns the exception for a canonical code of the daemon."""
    return BY_CODE.get(code, KilnError)(message, reason, metadata or {})
