"""Conversion between placements and messages."""

from typing import Any, Optional, Sequence

from kiln._placement.mesh import Mesh
from kiln._placement.placement import Placement, placed
from kiln._placement.spec import Spec
from kiln._proto.kiln.v1 import graph_pb2, session_pb2


def to_wire(placement: Placement) -> Any:
    """Returns the message for a placement."""
    message = session_pb2.Placement(devices=placement.devices)
    if isinstance(placement.home, Mesh):
        _set_mesh(message.mesh, placement.home)
        _set_spec(message.spec, placement.spec, placement.home)
    return message


def from_wire(message: Any, own_device: str) -> Optional[Placement]:
    """Returns the placement of a message; None if all of it is on the session's own device."""
    if not message.HasField("mesh"):
        device = message.devices[0] if message.devices else own_device
        return None if device == own_device else placed(device)
    names = [axis.name for axis in message.mesh.axes]
    devices: Any = list(message.devices)
    for axis in reversed(message.mesh.axes[1:]):
        devices = [devices[i : i + axis.size] for i in range(0, len(devices), axis.size)]
    spec = [tuple(names[number] for number in dim.axes) for dim in message.spec.dims]
    while spec and not spec[-1]:
        spec.pop()
    return placed(Mesh(names, devices), tuple(spec))


def sharding(mesh: Mesh, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> Any:
    """Returns the message for the placements of a graph's inputs and outputs."""
    message = graph_pb2.Sharding()
    _set_mesh(message.mesh, mesh)
    for spec in inputs:
        _set_spec(message.inputs.add(), spec, mesh)
    for spec in outputs:
        _set_spec(message.outputs.add(), spec, mesh)
    return message


def _set_mesh(message: Any, mesh: Mesh) -> None:
    for name, size in zip(mesh.axis_names, mesh.shape):
        message.axes.add(name=name, size=size)


def _set_spec(message: Any, spec: Spec, mesh: Mesh) -> None:
    for names in spec:
        message.dims.add(axes=[mesh.axis_number(name) for name in names])
