"""Placements of nodes: where a node is, and how it is put elsewhere."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._graph import node as _node
from kiln._graph.node import Node, mode
from kiln._placement import placement as placements
from kiln._placement import spec as specs
from kiln._placement.mesh import Mesh
from kiln._placement.placement import Home, Placement, ProgramHome, met, placed
from kiln._session.placements import sharding

# Ops whose result is placed like an operand, by the operand's number. Results of other ops are
# whole on each device of a mesh when they are results of a program.
_AS_OPERAND = {"cast": 0, "contiguous": 0, "detach": 0, "gradient": 1}


def where(node: Node) -> Optional[Placement]:
    """Returns the placement that a node has or will have once computed; None: no particular one."""
    if node.buffer is not None:
        return node.buffer.placement if node.buffer.is_chosen else None
    if node.home is None or node.placement is not None:
        return node.placement
    if node.op == "shard" and isinstance(node.home, Mesh):
        return placed(node.home, specs.from_ints(dict(node.attributes)["spec"], node.home))
    if node.op in _AS_OPERAND:
        found = where(node.operands[_AS_OPERAND[node.op]])
        if found is not None and found.home == node.home:
            return found
    return placed(node.home)


def home_of(nodes: Sequence[Node]) -> Home:
    """Returns where a program of these nodes runs; raises InvalidArgument for two meshes."""
    home: Home = None
    for node in nodes:
        home = met(home, node.home)
    return home


def lazily_placed(node: Node, placement: Placement) -> Node:
    """Returns a node of the same value that a program computes there. Gradients flow through it.

    Requires: the home of `node` is the placement's, or one that its program may take inputs from.
    """
    home = placement.home
    if isinstance(home, Mesh):
        ints = specs.to_ints(placement.spec, home, len(node.shape))
        result = _node.make("shard", (node,), (("spec", ints),))
    else:
        result = _node.make("contiguous", (node,))
    result.home = home
    return result


def is_on_device(node: Node, placement: Placement) -> bool:
    """Returns whether the node is, or will be, whole on the one device of a placement."""
    return isinstance(placement.home, str) and node.home == placement.home


def takes(home: Home, other: Home) -> bool:
    """Returns whether a program at `home` accepts inputs that are at `other`."""
    return other is None or other == home or (isinstance(home, Mesh) and isinstance(other, str))


def groups(roots: Sequence[Node]) -> List[Tuple[Home, List[Node]]]:
    """Groups roots by where they are computed; groups that others may need come first.

    Roots that may be computed anywhere join the others if those have one home.
    """
    found: Dict[Home, List[Node]] = {}
    for root in roots:
        found.setdefault(root.home, []).append(root)
    if len(found) == 2 and None in found:
        home = next(home for home in found if home is not None)
        return [(home, list(roots))]
    order = (type(None), str, Mesh)
    return sorted(found.items(), key=lambda pair: [
        isinstance(pair[0], kind) for kind in order].index(True))


def like(node: Node, result: Node) -> Node:
    """Returns `result` with the placement of the state `node`.

    Within kiln.jit the daemon decides, and `result` is returned as it is.
    """
    if not placements.in_use or mode.trace is not None:
        return result
    is_state = node.is_value or node.op in ("shard", *_AS_OPERAND)
    placement = where(node) if is_state else None
    return result if placement is None else lazily_placed(result, placement)


def as_given(buffers: Sequence[Any], home: ProgramHome) -> Any:
    """Returns the numbers of the placements of a program's inputs; None off a mesh."""
    if not isinstance(home, Mesh):
        return None
    return tuple([buffer.placement.number for buffer in buffers])


def devices_of(home: ProgramHome) -> Tuple[str, ...]:
    """Returns the devices that a program at `home` runs on; none: the session's device."""
    if home is None:
        return ()
    return (home,) if isinstance(home, str) else home.devices


def with_sharding(graph: Any, home: ProgramHome, inputs: Sequence[Optional[Placement]],
                  outputs: Sequence[Optional[Placement]]) -> Any:
    """Returns a graph with the placements of inputs and outputs; off a mesh, the graph itself."""
    if not isinstance(home, Mesh):
        return graph
    if graph.variables:
        raise InvalidArgument(
            f'variable "{graph.variables[0].name}" is used with tensors on {home!r}; sizes of '
            "tensors on a mesh must be numbers. Compute the part with variables on one device, "
            "x.to(device)")
    sharded = type(graph)()
    sharded.CopyFrom(graph)
    sharded.sharding.CopyFrom(sharding(home, _specs(inputs), _specs(outputs)))
    return sharded


def _specs(placements: Sequence[Optional[Placement]]) -> List[specs.Spec]:
    return [placement.spec if placement is not None else () for placement in placements]
