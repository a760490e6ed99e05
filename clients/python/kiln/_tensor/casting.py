"""Methods of Tensor that change its dtype or device."""

# Within the class, the methods int, float and bool hide the types of these names.
import builtins
from typing import TYPE_CHECKING, Any

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph import places
from kiln._graph.node import make
from kiln._placement.placement import DeviceInPassing
from kiln._session import connection as _connection
from kiln._tensor.base import wrap
from kiln._tensor.device_transfer import moved
from kiln._tensor.gradients import Gradients

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Casting(Gradients):
    """Casts return new tensors; a cast to the tensor's own dtype returns the tensor itself."""

    __slots__ = ()

    def cast(self, dtype: Any, saturate: builtins.bool = True) -> "Tensor":
        """Returns the same values in another dtype.

        Integers wrap. A float cast to integers loses its fraction; out of range it becomes the
        nearest end of the range, and NaN becomes 0. A cast to bool is true for values other than 0.
        In a float8, values beyond the largest number, including infinities, become that number;
        without `saturate` they become NaN in float8_e4m3 and an infinity in float8_e5m2.

        >>> kiln.tensor([1.7, -2.5]).cast(kiln.int32).tolist()
        [1, -2]
        >>> kiln.tensor([500.0, 1.1]).cast(kiln.float8_e4m3).tolist()
        [448.0, 1.125]
        """
        wanted = dtypes.as_dtype(dtype)
        if wanted is self.dtype:
            return self._tensor
        how = () if saturate else (("saturate", False),)
        return wrap(make("cast", (self._node,), how, wanted))

    def bitcast(self, dtype: Any) -> "Tensor":
        """Returns the same bits as another dtype of the same size.

        >>> hex(kiln.tensor(1.0).bitcast(kiln.int32).item())
        '0x3f800000'
        """
        return wrap(make("bitcast", (self._node,), (), dtypes.as_dtype(dtype)))

    def type(self, dtype: Any) -> "Tensor":
        """Returns the same values in another dtype; see cast.

        >>> kiln.tensor([1.0, 4.0]).type("int8").tolist()
        [1, 4]
        """
        return self.cast(dtype)

    def type_as(self, other: "Tensor") -> "Tensor":
        """Returns the same values in another tensor's dtype.

        >>> kiln.tensor([1.0, 4.0]).type_as(kiln.tensor([[1, 2], [3, 4]])).dtype
        kiln.int64
        """
        return self.cast(other.dtype)

    def astype(self, dtype: Any) -> "Tensor":
        """Returns the same values in another dtype; see cast.

        >>> kiln.tensor([1.0, 4.0]).astype(kiln.int8).tolist()
        [1, 4]
        """
        return self.cast(dtype)

    def to(self, target: Any, *, copy: bool = False) -> "Tensor":
        """Returns the tensor in a dtype, in another tensor's dtype, or on the device of this name.

        If it has the dtype already it is returned itself, unless `copy`. For devices see to_device.

        >>> kiln.tensor([1.0, 4.0]).to("float64").dtype
        kiln.float64
        >>> kiln.tensor([1.0, 4.0]).to("cpu:0").device
        'cpu:0'
        """
        if isinstance(target, str) and target not in dtypes.BY_NAME:
            return self.to_device(target)
        wanted = getattr(target, "dtype", target)
        result = self.cast(wanted)
        return result.__copy__() if copy and result is self else result

    def cpu(self) -> "Tensor":
        """Returns the tensor itself: only numpy() copies its values to this process's memory.

        >>> kiln.tensor([1.0, 4.0]).cpu().tolist()
        [1.0, 4.0]
        """
        return self._tensor

    def float(self) -> "Tensor":
        """Casts to float32.

        >>> kiln.tensor([[1, 2], [3, 4]]).float().dtype
        kiln.float32
        """
        return self.cast(dtypes.float32)

    def double(self) -> "Tensor":
        """Casts to float64.

        >>> kiln.tensor([1.0, 4.0]).double().dtype
        kiln.float64
        """
        return self.cast(dtypes.float64)

    def half(self) -> "Tensor":
        """Casts to float16.

        >>> kiln.tensor([1.0, 4.0]).half().dtype
        kiln.float16
        """
        return self.cast(dtypes.float16)

    def bfloat16(self) -> "Tensor":
        """Casts to bfloat16.

        >>> kiln.tensor([1.0, 4.0]).bfloat16().dtype
        kiln.bfloat16
        """
        return self.cast(dtypes.bfloat16)

    def int(self) -> "Tensor":
        """Casts to int32.

        >>> kiln.tensor([1.0, 4.0]).int().tolist()
        [1, 4]
        """
        return self.cast(dtypes.int32)

    def long(self) -> "Tensor":
        """Casts to int64.

        >>> kiln.tensor([1.0, 4.0]).long().dtype
        kiln.int64
        """
        return self.cast(dtypes.int64)

    def bool(self) -> "Tensor":
        """Casts to bool: whether each element is not 0.

        >>> kiln.tensor([0, 2]).bool().tolist()
        [False, True]
        """
        return self.cast(dtypes.bool_)

    def byte(self) -> "Tensor":
        """Casts to uint8.

        >>> kiln.tensor([[1, 2], [3, 4]]).byte().dtype
        kiln.uint8
        """
        return self.cast(dtypes.uint8)

    def char(self) -> "Tensor":
        """Casts to int8.

        >>> kiln.tensor([[1, 2], [3, 4]]).char().dtype
        kiln.int8
        """
        return self.cast(dtypes.int8)

    def short(self) -> "Tensor":
        """Casts to int16.

        >>> kiln.tensor([[1, 2], [3, 4]]).short().dtype
        kiln.int16
        """
        return self.cast(dtypes.int16)

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
