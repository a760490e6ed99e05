"""Mesh: devices as a grid with named axes."""

import re
from typing import Any, Dict, Iterator, List, Sequence, Tuple, Union

from kiln._basics.errors import InvalidArgument

# The daemon's limits.
AXES_MAX = 4
DEVICES_MAX = 64

_AXIS = re.compile(r"[A-Za-z0-9_]{1,64}")
_DEVICE = re.compile(r"[a-z][a-z0-9_]*:[0-9]+|[a-z][a-z0-9_]*")


class Mesh:
    """Devices of one daemon as a grid with named axes.

    Args:
      axis_names: a name for each axis; a single name may be given without a tuple.
      devices: devices' names ("cuda:0"), nested as deep as there are axes. See kiln.devices().

    `kiln.shard` places tensors on it. Immutable; meshes are equal if names and devices are equal.
    Raises InvalidArgument for more than 4 axes or 64 devices, names given twice, and lists of
    devices that are not a grid.

    >>> mesh = kiln.Mesh(("data", "model"), [["cpu:0", "cpu:1"], ["cpu:2", "cpu:3"]])
    >>> mesh.shape, mesh.axis_names, mesh.axis_size("model")
    ((2, 2), ('data', 'model'), 2)
    >>> mesh
    Mesh(('data', 'model'), [['cpu:0', 'cpu:1'], ['cpu:2', 'cpu:3']])
    """

    __slots__ = ("__weakref__", "_hash", "_numbers", "axis_names", "devices", "shape")

    # The attributes that functions traced by kiln.jit may read.
    _kiln_watched = ("axis_names", "shape", "devices")

    axis_names: Tuple[str, ...]
    shape: Tuple[int, ...]
    devices: Tuple[str, ...]  # row-major: the last axis varies fastest

    def __init__(self, axis_names: Union[str, Sequence[str]], devices: Any) -> None:
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        _check_axes(names)
        if hasattr(devices, "tolist"):  # an array of names
            devices = devices.tolist()
        shape = _shape(devices, len(names))
        flat = tuple(_flat(devices))
        _check_devices(flat)
        self.axis_names, self.shape, self.devices = names, shape, flat
        self._numbers: Dict[str, int] = {name: i for i, name in enumerate(names)}
        self._hash = hash((names, shape, flat))

    def axis_number(self, name: str) -> int:
        """Returns the number of the axis with this name. Raises InvalidArgument if there is none.

        >>> kiln.Mesh("data", ["cpu:0", "cpu:1"]).axis_number("data")
        0
        """
        number = self._numbers.get(name) if isinstance(name, str) else None
        if number is None:
            raise InvalidArgument(
                f"the mesh has no axis {name!r}; its axes: {', '.join(map(repr, self.axis_names))}")
        return number

    def axis_size(self, name: str) -> int:
        """Returns the number of devices along an axis; raises InvalidArgument if it is unknown.

        >>> kiln.Mesh("data", ["cpu:0", "cpu:1"]).axis_size("data")
        2
        """
        return self.shape[self.axis_number(name)]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Mesh) and (
            self.axis_names, self.shape, self.devices) == (
            other.axis_names, other.shape, other.devices)

    def __hash__(self) -> int:
        return self._hash

    def __len__(self) -> int:
        return len(self.devices)

    def __reduce__(self) -> Any:
        return Mesh, (self.axis_names, _nested(self.devices, self.shape))

    def __repr__(self) -> str:
        return f"Mesh({self.axis_names!r}, {_nested(self.devices, self.shape)!r})"


def _check_axes(names: Tuple[Any, ...]) -> None:
    if not 1 <= len(names) <= AXES_MAX:
        raise InvalidArgument(f"a mesh with {len(names)} axes; it must have 1 to {AXES_MAX}")
    for name in names:
        if not isinstance(name, str) or not _AXIS.fullmatch(name):
            raise InvalidArgument(
                f'an axis named {name!r:.80}; names must have 1 to 64 letters, digits and "_"')
    if len(set(names)) != len(names):
        raise InvalidArgument(f"the axes {names}; each needs its own name")


def _check_devices(names: Tuple[Any, ...]) -> None:
    if len(names) > DEVICES_MAX:
        raise InvalidArgument(f"a mesh of {len(names)} devices; at most {DEVICES_MAX} are allowed")
    for name in names:
        if not isinstance(name, str) or not _DEVICE.fullmatch(name):
            raise InvalidArgument(
                f'{name!r:.80} is not the name of a device; names are like "cuda:0", and '
                "kiln.devices() lists them")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidArgument(f"a mesh with {', '.join(twice)} twice; name each device once")


def _shape(devices: Any, axes: int) -> Tuple[int, ...]:
    """Returns the sizes of nested lists; raises InvalidArgument unless `axes` levels deep."""
    shape: List[int] = []
    level = devices
    for axis in range(axes):
        if not isinstance(level, (list, tuple)) or not level:
            raise InvalidArgument(
                f"devices {devices!r:.80} for {axes} axes; nest lists of names as deep as there "
                f"are axes, here {axis} deep, and leave none empty")
        shape.append(len(level))
        level = level[0]
    if not _is_regular(devices, shape):
        raise InvalidArgument(
            f"devices {devices!r:.80} are not a grid of {axes} axes: their lists differ in length "
            "or depth")
    return tuple(shape)


def _is_regular(devices: Any, shape: Sequence[int]) -> bool:
    if not shape:
        return not isinstance(devices, (list, tuple))
    return isinstance(devices, (list, tuple)) and len(devices) == shape[0] and all(
        _is_regular(part, shape[1:]) for part in devices)


def _flat(devices: Any) -> Iterator[Any]:
    if not isinstance(devices, (list, tuple)):
        yield devices
        return
    for part in devices:
        yield from _flat(part)


def _nested(names: Sequence[str], shape: Sequence[int]) -> List[Any]:
    if len(shape) == 1:
        return list(names)
    part = len(names) // shape[0]
    return [_nested(names[i * part : (i + 1) * part], shape[1:]) for i in range(shape[0])]
