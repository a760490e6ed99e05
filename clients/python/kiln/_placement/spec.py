"""Specs: the axes of a mesh that split each dimension of a tensor."""

from typing import Any, List, Sequence, Set, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._placement.mesh import Mesh
from kiln.variables import Dim

# By dimension, the names of the axes that split it, the slowest-varying one first. Trailing
# dimensions that are not split are left out, so that equal specs are equal.
Spec = Tuple[Tuple[str, ...], ...]


def parse(given: Any, mesh: Mesh, shape: Sequence[Any]) -> Spec:
    """Parses a user's spec; raises InvalidArgument if it does not fit the mesh and shape."""
    if given is None:
        return ()
    entries = (given,) if isinstance(given, str) else given
    if not isinstance(entries, (list, tuple)):
        raise InvalidArgument(
            f"a spec of {type(given).__name__}; it must have an entry for each dimension: None, an "
            "axis' "
            'name, or a tuple of names, as in ("data", None)')
    if len(entries) > len(shape):
        raise InvalidArgument(
            f"the spec {given!r} has {len(entries)} entries, but a tensor of shape {tuple(shape)} "
            f"has {len(shape)} dimensions")
    spec = [_names(entry, given) for entry in entries]
    _check_once(spec, given, mesh)
    for axis, names in enumerate(spec):
        if names:
            _check_fixed(axis, names, mesh, shape)
    while spec and not spec[-1]:
        spec.pop()
    return tuple(spec)


def _names(entry: Any, given: Any) -> Tuple[str, ...]:
    if entry is None:
        return ()
    names = (entry,) if isinstance(entry, str) else entry
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise InvalidArgument(
            f"the spec {given!r}: {entry!r} is neither None, nor an axis' name, nor a tuple of "
            "names")
    return tuple(names)


def _check_once(spec: Sequence[Tuple[str, ...]], given: Any, mesh: Mesh) -> None:
    seen: Set[str] = set()
    for names in spec:
        for name in names:
            mesh.axis_number(name)
            if name in seen:
                raise InvalidArgument(
                    f"the spec {given!r} has the axis {name!r} twice; an axis can split only one "
                    "dimension")
            seen.add(name)


def _check_fixed(axis: int, names: Sequence[str], mesh: Mesh, shape: Sequence[Any]) -> None:
    if isinstance(shape[axis], Dim):
        along = " and ".join(map(repr, names))
        raise InvalidArgument(
            f"dimension {axis} of shape {tuple(shape)} depends on a variable, but {along} of "
            f"{mesh!r} would split it; only fixed sizes can be split. Leave the dimension whole, "
            "or use a fixed size")


def first_that_divides(name: str, mesh: Mesh, shape: Sequence[Any]) -> Spec:
    """Returns the spec that splits the first evenly divisible dimension by one axis, or ()."""
    count = mesh.axis_size(name)
    for axis, size in enumerate(shape):
        if not isinstance(size, Dim) and size and size % count == 0:
            return (*[()] * axis, (name,))
    return ()


def to_ints(spec: Spec, mesh: Mesh, rank: int) -> Tuple[int, ...]:
    """Returns the attribute of "shard": per dimension the number of axes, then these by number."""
    result: List[int] = []
    for names in (*spec, *[()] * (rank - len(spec))):
        result += [len(names), *map(mesh.axis_number, names)]
    return tuple(result)


def from_ints(ints: Sequence[int], mesh: Mesh) -> Spec:
    """Inverts to_ints."""
    spec: List[Tuple[str, ...]] = []
    place = 0
    while place < len(ints):
        end = place + 1 + ints[place]
        spec.append(tuple(mesh.axis_names[number] for number in ints[place + 1 : end]))
        place = end
    while spec and not spec[-1]:
        spec.pop()
    return tuple(spec)
