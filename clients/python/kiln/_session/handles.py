"""Values and programs on the device, released with the last reference to them."""

from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Tuple

from kiln._basics.dtypes import DType
from kiln._basics.errors import KilnError

if TYPE_CHECKING:
    from kiln._session.connection import Connection


class Buffer:
    """A value on the device. Released when the last reference to this object goes."""

    __slots__ = ("__weakref__", "connection", "dtype", "error", "handle", "least_most", "shape")

    def __init__(self, connection: "Connection", handle: int, dtype: DType,
                 shape: Tuple[int, ...]) -> None:
        self.connection = connection
        self.handle = handle
        self.dtype = dtype
        self.shape = shape
        # Why its value never came to be, once that is known.
        self.error: Optional[KilnError] = None
        # The least and the most of integers that this process uploaded, so that indices can be
        # checked here.
        self.least_most: Optional[Tuple[int, int]] = None
        connection.stream.releases.watch(self, "handles", handle, self.nbytes)

    @property
    def nbytes(self) -> int:
        """The value's size."""
        size = self.dtype.itemsize
        for dim in self.shape:
            size *= dim
        return size


class Program:
    """A graph the daemon knows by a number."""

    __slots__ = ("__weakref__", "connection", "digest", "error", "number")

    def __init__(self, connection: "Connection", number: int) -> None:
        self.connection = connection
        self.number = number
        self.digest = ""
        self.error: Optional[KilnError] = None
        connection.stream.releases.watch(self, "program", number)

    def defined(self, result: Any, error: Optional[KilnError]) -> None:
        """Takes the daemon's answer to DefineProgram."""
        if error is not None:
            self.error = error
        else:
            self.digest = result.digest


class ProgramInfo(NamedTuple):
    """What the daemon made of a graph."""

    digest: str
    name: str
    device: str
    kernels: int  # in its queue
    distinct_kernels: int
    kernels_from_cache: int
    compile_seconds: float
    runs: int
    arena_bytes: int  # of intermediate results


def info_of(program: Any) -> ProgramInfo:
    """The message as a tuple."""
    return ProgramInfo(*[getattr(program, name) for name in ProgramInfo._fields])
