"""The result of kiln.__array_namespace_info__(): capabilities, devices, dtypes."""

from typing import Any, Dict, List, Optional, Tuple, Union

from kiln._array_api.data_types import isdtype
from kiln._basics import dtypes as _dtypes
from kiln._basics.dtypes import DType
from kiln._rules.shapes import RANK_MAX
from kiln._session import connection

Kind = Union[None, str, Tuple[str, ...]]

# The dtypes of the standard; it does not have float16, bfloat16 and float8.
_STANDARD = (
    _dtypes.bool_, _dtypes.int8, _dtypes.int16, _dtypes.int32, _dtypes.int64, _dtypes.uint8,
    _dtypes.uint16, _dtypes.uint32, _dtypes.uint64, _dtypes.float32, _dtypes.float64,
)  # fmt: skip


class NamespaceInfo:
    """The inspection functions of the Python array API standard."""

    def capabilities(self) -> Dict[str, Any]:
        """Returns the capabilities.

        Masks and data-dependent shapes work by reading values, so not in kiln.jit.

        >>> kiln.__array_namespace_info__().capabilities()["max dimensions"]
        32
        """
        return {"boolean indexing": True, "data-dependent shapes": True,
                "max dimensions": RANK_MAX}

    def default_device(self) -> str:
        """Returns the session's device, on which tensors are made by default."""
        return connection.default_connection().device

    def devices(self) -> List[str]:
        """Returns the names of kiln.devices(), the session's first."""
        mine = self.default_device()
        names = [device.name for device in connection.devices()]
        return [mine, *[name for name in names if name != mine]]

    def default_dtypes(self, *, device: Optional[str] = None) -> Dict[str, DType]:
        """Returns float32 and int64. There is no complex dtype.

        >>> kiln.__array_namespace_info__().default_dtypes()["real floating"]
        kiln.float32
        """
        return {"real floating": _dtypes.float32, "integral": _dtypes.int64,
                "indexing": _dtypes.int64}

    def dtypes(self, *, device: Optional[str] = None, kind: Kind = None) -> Dict[str, DType]:
        """Returns the standard's dtypes of a kind (see kiln.isdtype), by name.

        >>> sorted(kiln.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        return {dtype.name: dtype for dtype in _STANDARD
                if kind is None or isdtype(dtype, kind)}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807
    """Returns information about this implementation of the Python array API standard."""
    return NamespaceInfo()
