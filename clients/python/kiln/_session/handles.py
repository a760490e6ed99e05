"""Values and programs on the device, released with the last reference to them."""

from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional, Tuple

from kiln._basics.dtypes import DType
from kiln._basics.errors import KilnError
from kiln._placement.placement import Placement

if TYPE_CHECKING:
    from kiln._session.connection import Connection


class Buffer:
    """A value on the device. Released when the last reference to this object goes."""

    __slots__ = ("__weakref__", "along", "connection", "copies", "dtype", "error", "handle",
                 "is_chosen", "placement", "shape", "value_range")  # fmt: skip

    def __init__(self, connection: "Connection", handle: int, dtype: DType,
                 shape: Tuple[int, ...], placement: Optional[Placement] = None,
                 is_chosen: bool = False) -> None:
        self.connection = connection
        self.handle = handle
        self.dtype = dtype
        self.shape = shape
        # The placement; None: all of it on the session's device. It is chosen if the user said so
        # or computed it there; otherwise it is copied to where the other inputs of a program are.
        self.placement = placement
        self.is_chosen = is_chosen
        # Copies made for programs that run elsewhere, by their placements.
        self.copies: Optional[Dict[Optional[Placement], Buffer]] = None
        # The reason why it has no value, once that is known.
        self.error: Optional[KilnError] = None
        # The bounds of integers that this process uploaded, so that indices can be checked here.
        self.value_range: Optional[Tuple[int, int]] = None
        # For a scalar: the reporting output of its run that also contains it, and its element
        # there, so that one read gives both.
        self.along: Optional[Tuple[Buffer, int]] = None
        connection.stream.releases.watch(self, "handles", handle, self.nbytes)

    def has_changed(self) -> None:
        """Forgets what was known of the value."""
        self.copies = self.value_range = self.along = None

    @property
    def nbytes(self) -> int:
        """Returns the value's size in bytes."""
        size = self.dtype.itemsize
        for dim in self.shape:
            size *= dim
        return size


class Program:
    """A graph that the daemon knows by a number."""

    __slots__ = ("__weakref__", "connection", "digest", "error", "number")

    def __init__(self, connection: "Connection", number: int) -> None:
        self.connection = connection
        self.number = number
        self.digest = ""
        self.error: Optional[KilnError] = None
        connection.stream.releases.watch(self, "program", number)

    def defined(self, result: Any, error: Optional[KilnError]) -> None:
        """Handles the daemon's answer to DefineProgram."""
        if error is not None:
            self.error = error
        else:
            self.digest = result.digest


class ProgramInfo(NamedTuple):
    """A program that the daemon made of a graph."""

    digest: str
    name: str
    device: str
    kernels: int  # in its queue
    distinct_kernels: int
    kernels_from_cache: int
    compile_seconds: float
    runs: int
    arena_bytes: int  # size of intermediate results


def info_of(program: Any) -> ProgramInfo:
    """Returns the message as a tuple."""
    return ProgramInfo(*[getattr(program, name) for name in ProgramInfo._fields])


class Device(NamedTuple):
    """A device of the daemon's machine, as `kiln.devices()` lists it.

    >>> kiln.devices()[0].name
    'cpu:0'
    """

    name: str
    model: str  # the vendor's name
    memory: int  # bytes
    memory_used: int
    health: str  # "healthy", "draining" or "failed"


def device_of(message: Any) -> Device:
    """Returns the message as a tuple."""
    health = message.Health.Name(message.health).lower()
    return Device(message.name, message.model, message.memory_total_bytes,
                  message.memory_used_bytes, health)
