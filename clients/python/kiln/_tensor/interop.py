"""Interfaces to other libraries: NumPy, DLPack, the Python array API standard, devices."""

import sys
from typing import TYPE_CHECKING, Any, Optional, Tuple

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln._basics.version import ARRAY_API_VERSIONS
from kiln._graph import places
from kiln._placement.placement import DeviceInPassing
from kiln._session import connection as _connection
from kiln._tensor.base import TensorBase
from kiln._tensor.moving import moved

if TYPE_CHECKING:
    from kiln.tensor import Tensor

_DLPACK_CPU = (1, 0)  # kDLCPU and the device's number


class Interop(TensorBase):
    """The protocols through which other libraries use an array."""

    __slots__ = ()

    if TYPE_CHECKING:

        def numpy(self) -> "np.ndarray[Any, Any]": ...

    def __array_namespace__(self, *, api_version: Optional[str] = None) -> Any:
        """Returns the namespace of the Python array API standard: `kiln` itself."""
        if api_version is not None and api_version not in ARRAY_API_VERSIONS:
            raise InvalidArgument(
                f"unknown array API version {api_version!r}; use one of "
                f"{', '.join(ARRAY_API_VERSIONS)}")
        # Not imported: `kiln` itself imports this module.
        return sys.modules["kiln"]

    @property
    def device(self) -> Any:
        """The name of its device, such as "cpu:0"; on a mesh a tuple of names.

        >>> kiln.tensor([1.0, 4.0]).device
        'cpu:0'
        """
        buffer = self._node.buffer
        placement = places.where(self._node) if buffer is None else buffer.placement
        if placement is not None and not isinstance(placement.home, str):
            return placement.devices
        if placement is not None:
            name = placement.devices[0]
        else:
            connection = _connection.default_connection() if buffer is None else buffer.connection
            name = connection.device
        return DeviceInPassing(name) if self._node.home is None else name

    def to_device(self, device: Any, /, *, stream: Any = None) -> "Tensor":
        """Returns the tensor on the device of this name: itself, if it was placed there, or a copy.

        Computations with it run there. Within kiln.jit, and for a lazy tensor that needs a
        gradient, it is sent within the same program, and gradients flow back. Raises
        InvalidArgument for a name that kiln.devices() does not list.

        >>> kiln.tensor([1.0, 4.0]).to_device(kiln.tensor([1.0, 4.0]).device).tolist()
        [1.0, 4.0]
        """
        if stream is not None:
            raise InvalidArgument("to_device with a stream; Kiln's devices have no streams to "
                                  "choose")
        return moved(self._tensor, device)

    def __array__(self, dtype: Any = None,
                  copy: Optional[bool] = None) -> "np.ndarray[Any, Any]":
        if copy is False:
            raise ValueError("the values of a tensor come from the daemon, so they are always "
                             "copied")
        array = self.numpy()
        if dtype is not None:
            array = array.astype(dtype, copy=False)
        return array

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None,
                   copy: Optional[bool] = None) -> Any:
        """Returns a DLPack capsule of a copy in this process's memory, for any device.

        Raises BufferError for copy=False, for a stream, for other devices than the CPU, and for
        dtypes that NumPy lacks.
        """
        if copy is False:
            raise BufferError("the values of a tensor come from the daemon, so they are always "
                              "copied")
        if stream is not None:
            raise BufferError("a copy on the CPU has no streams; leave stream at None")
        if dl_device is not None and tuple(dl_device) != _DLPACK_CPU:
            raise BufferError(f"DLPack device {dl_device}; a tensor's copy is on the CPU, (1, 0)")
        if self.dtype.numpy is None:
            raise BufferError(f"no DLPack form of {self.dtype.name} here; cast it to float32 first")
        array = self.numpy()
        # NumPy accepts `max_version` from 2.1 on.
        if max_version is None or not _takes_versions():
            return array.__dlpack__()
        return array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> Tuple[int, int]:
        """Returns the target of __dlpack__: the CPU, (1, 0)."""
        return _DLPACK_CPU


def _takes_versions() -> bool:
    return tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 1)
