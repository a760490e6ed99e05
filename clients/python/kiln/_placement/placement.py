"""Placement: the location of a tensor, and of computations with tensors of several locations."""

import itertools
from typing import Any, Dict, Optional, Sequence, Tuple, Union

from kiln._basics.errors import InvalidArgument
from kiln._placement import spec as specs
from kiln._placement.mesh import Mesh
from kiln._placement.spec import Spec

# Whether a tensor was ever placed: programs on one device pay no cost.
in_use = False



class Stages:
    """The devices of one program in stages; each has whole tensors."""

    __slots__ = ("devices", "inputs", "outputs")

    def __init__(self, devices: Tuple[str, ...], inputs: Tuple["Placement", ...],
                 outputs: Tuple["Placement", ...]) -> None:
        self.devices = devices
        self.inputs = inputs  # placements of the program's inputs
        self.outputs = outputs


# The location of a computed value: a mesh, or a device's name. None: the session's own device.
Home = Union[Mesh, str, None]
# The location of a program.
ProgramHome = Union[Home, Stages]


class DeviceInPassing(str):
    """The name of the device of a value that was not placed explicitly.

    So `y.to(x.device)` does not place y explicitly either, and y still moves to where other
    operands are.
    """

    __slots__ = ()


_numbers = itertools.count(1)


class Placement:
    """The location of a tensor: one device, or a mesh with a spec. Immutable.

    Equal placements are usually the same object, with one number, which is fast to compare.
    """

    __slots__ = ("_hash", "home", "number", "spec")

    def __init__(self, home: Union[Mesh, str], spec: Spec = ()) -> None:
        global in_use
        in_use = True
        self.home = home
        self.spec = spec
        self.number = next(_numbers)
        self._hash = hash((home, spec))

    @property
    def devices(self) -> Tuple[str, ...]:
        """Returns the devices' names; of a mesh in row-major order."""
        return (self.home,) if isinstance(self.home, str) else self.home.devices

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Placement) and self._hash == other._hash and (
            self.spec == other.spec and self.home == other.home)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if isinstance(self.home, str):
            return self.home
        return f"{self.home!r} split by {self.spec}" if self.spec else repr(self.home)


# Bounded: a process has few meshes and few ways to split.
_known: Dict[Tuple[Any, Spec], Placement] = {}
_KEPT = 4096


def placed(home: Union[Mesh, str], spec: Spec = ()) -> Placement:
    """Returns the placement on a mesh with a spec (default: whole everywhere), or on a device."""
    found = _known.get((home, spec))
    if found is None:
        if len(_known) >= _KEPT:
            _known.clear()
        found = _known[home, spec] = Placement(home, spec)
    return found


def on_mesh(mesh: Mesh, spec: Any, shape: Sequence[Any]) -> Placement:
    """Returns the placement for a user's spec; raises InvalidArgument if it does not fit."""
    if not isinstance(mesh, Mesh):
        raise InvalidArgument(
            f"a mesh is needed, not {type(mesh).__name__}: kiln.Mesh(\"data\", [\"cuda:0\", "
            '"cuda:1"])')
    return placed(mesh, specs.parse(spec, mesh, shape))


def met(one: Home, other: Home) -> Home:
    """Returns where tensors of two homes are computed with.

    Raises InvalidArgument if that is unclear. A tensor without a home goes to the other's, and one
    device's tensor goes to a mesh.
    """
    if other is None or one is other or one == other:
        return one
    if one is None:
        return other
    if isinstance(one, str) and isinstance(other, Mesh):
        return other
    if isinstance(one, Mesh) and isinstance(other, str):
        return one
    raise InvalidArgument(
        f"tensors on {described(one)} and on {described(other)} are used together; move one of "
        "them with kiln.shard(x, mesh, spec) or x.to(device)")


def described(home: Optional[Union[Mesh, str]]) -> str:
    """Returns a home as text for messages."""
    return "the session's device" if home is None else str(home)
