"""Placement: where a tensor lies; and where tensors that meet are computed with."""

import itertools
from typing import Any, Dict, Optional, Sequence, Tuple, Union

from kiln._basics.errors import InvalidArgument
from kiln._placement import spec as specs
from kiln._placement.mesh import Mesh
from kiln._placement.spec import Spec

# Whether a tensor has ever been placed: who has one device pays nothing.
in_use = False



class Stages:
    """Where one program in stages runs: on several devices, of which each has whole tensors."""

    __slots__ = ("devices", "inputs", "outputs")

    def __init__(self, devices: Tuple[str, ...], inputs: Tuple["Placement", ...],
                 outputs: Tuple["Placement", ...]) -> None:
        self.devices = devices
        self.inputs = inputs  # where each lies
        self.outputs = outputs


# Where a value is computed: on a mesh, or on the device of a name. None: the session's own device.
Home = Union[Mesh, str, None]
# Where a program runs.
ProgramHome = Union[Home, Stages]


class DeviceInPassing(str):
    """The name of the device on which a value happens to lie that was put nowhere.

    So `y.to(x.device)` puts y nowhere in particular either, and it goes where others are.
    """

    __slots__ = ()


_numbers = itertools.count(1)


class Placement:
    """Where a tensor lies: on one device, or on a mesh as a spec says. Immutable.

    Equal ones are mostly the same object, and so have the same number, which is quick to compare.
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
        """The devices' names; of a mesh row-major."""
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
    """On a mesh by a spec, by default all of it on each device; or on the device of a name."""
    found = _known.get((home, spec))
    if found is None:
        if len(_known) >= _KEPT:
            _known.clear()
        found = _known[home, spec] = Placement(home, spec)
    return found


def on_mesh(mesh: Mesh, spec: Any, shape: Sequence[Any]) -> Placement:
    """On a mesh as a user's spec says; raises InvalidArgument if that does not fit the shape."""
    if not isinstance(mesh, Mesh):
        raise InvalidArgument(
            f"a mesh is wanted, not {type(mesh).__name__}: kiln.Mesh(\"data\", [\"cuda:0\", "
            '"cuda:1"])')
    return placed(mesh, specs.parse(spec, mesh, shape))


def met(one: Home, other: Home) -> Home:
    """Where tensors of two homes are computed with; raises InvalidArgument if that is unclear.

    What lies nowhere in particular goes where others are, and one device's tensor to a mesh.
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
        f"tensors on {described(one)} and on {described(other)} meet; move one of them with "
        "kiln.shard(x, mesh, spec) or x.to(device)")


def described(home: Optional[Union[Mesh, str]]) -> str:
    """A home, for messages."""
    return "the session's device" if home is None else str(home)
