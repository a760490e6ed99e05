"""Moves tensors to another device, or to a mesh."""

from typing import TYPE_CHECKING, Any, Optional

from kiln._basics.errors import InvalidArgument, TraceError
from kiln._graph import realize
from kiln._graph.gradient_mode import no_grad
from kiln._graph.node import mode
from kiln._placement.placement import DeviceInPassing, Placement, placed
from kiln._session import connection as connections
from kiln._tensor.base import wrap

if TYPE_CHECKING:
    from kiln.tensor import Tensor


def on_device(device: Any) -> Optional[Placement]:
    """Returns the placement on the device of a name, or None for no particular device. Raises
    InvalidArgument if there is no such device.

    None means the daemon's only device, or the session's device if the name came from a tensor that
    was not placed explicitly.
    """
    if not isinstance(device, str):
        raise InvalidArgument(
            f"{device!r:.80} is not the name of a device; name one device, or use kiln.shard(x, "
            "mesh, spec) for several")
    connection = connections.default_connection()
    if device == connection.device and (
            isinstance(device, DeviceInPassing) or not connection.has_several_devices()):
        return None
    placement = placed(device)
    connection.check_devices(placement)
    return placement


def moved(tensor: "Tensor", device: Any) -> "Tensor":
    """Returns the tensor on the device of a name."""
    node = realize.elsewhere(tensor._node, on_device(device))
    return tensor if node is tensor._node else wrap(node)


def beside(value: "Tensor", other: "Tensor") -> "Tensor":
    """Returns the value on the device of `other`, if both are on single devices."""
    home = other._node.home
    is_elsewhere = isinstance(home, str) and isinstance(value._node.home, str)
    return moved(value, home) if is_elsewhere else value


def place(tensor: "Tensor", placement: Optional[Placement]) -> None:
    """Changes a tensor's placement in place, as others reference it; drops its gradient."""
    if mode.trace is not None:
        raise TraceError(
            "state is placed on devices inside a function that kiln.jit traces; do this before its "
            "first call")
    with no_grad():
        value = tensor.detach()._node
        node = realize.elsewhere(value, placement)
    if node is not value:
        tensor._node = node
        tensor._grad = None
        tensor._mark_leaf()
