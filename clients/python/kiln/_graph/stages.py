"""Graphs in stages: one program whose parts run on several devices."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._graph import build
from kiln._graph import node as _node
from kiln._graph.node import Node
from kiln._placement.mesh import Mesh
from kiln._placement.placement import Placement, Stages, placed
from kiln._proto.kiln.v1 import graph_pb2

# Whether a value was ever sent within a program: programs without stages pay no cost.
in_use = False

# Numbers of devices for the attributes of nodes, until a program numbers its own devices.
_number_of_device: Dict[str, int] = {}


def sent(node: Node, device: str) -> Node:
    """Returns a node of the same value on another device, in one program. Gradients flow back."""
    global in_use
    in_use = True
    numbers = [_number_of_device.setdefault(name, len(_number_of_device))
               for name in (str(node.home), device)]
    result = _node.make("send", (node,), (("source", numbers[0]), ("target", numbers[1])))
    result.home = device
    return result


def reach_devices(roots: Sequence[Node]) -> bool:
    """Returns whether a program of these nodes sends values from device to device."""
    if not in_use:
        return False
    order = build.topological(roots, build.differentiated(roots))
    return any(node.op == "send" for node in order)


def home_of(built: Any) -> Optional[Stages]:
    """Returns where a graph of several stages runs, from its nodes' homes; None: in one place.

    Replaces the graph by a new one that contains all sends.
    """
    homes = set(built.homes.values())
    if len(homes) < 2:
        return None
    mesh = next((home for home in homes if isinstance(home, Mesh)), None)
    if mesh is not None:
        if any(node.op == "send" for node in built.graph.nodes):
            raise InvalidArgument(
                f"a program sends a tensor from device to device, and uses others on {mesh!r}; a "
                "program can have stages or a mesh, not both. Compute one before the other, in two "
                "programs")
        return None
    if built.graph.variables:
        raise InvalidArgument(
            f'variable "{built.graph.variables[0].name}" is used with a tensor that is sent from '
            "device to device; sizes of a program in stages must be numbers. Compute the part with "
            "variables on one device")
    stager = _Stager(built.graph, built.homes)
    built.graph = stager.graph
    return stager.home


class _Stager:
    """Assigns a device to each node of a graph, and adds sends of what other devices need.

    Nodes without a home go to the device of the first node that uses them.
    """

    def __init__(self, graph: Any, homes: Dict[int, str]) -> None:
        self._old = graph
        self._devices = list(dict.fromkeys(homes[index] for index in sorted(homes)))
        number = {name: place for place, name in enumerate(self._devices)}
        self._at: List[Optional[int]] = [
            number[homes[index]] if index in homes else None for index in range(len(graph.nodes))]
        self._choose()
        self.graph = graph_pb2.Graph()
        self.graph.CopyFrom(graph)
        del self.graph.nodes[:]
        self._is: List[int] = []  # the new number of each old node
        self._sends: Dict[Tuple[int, int], int] = {}
        for index in range(len(graph.nodes)):
            self._write(index)
        self._write_results()

    def _choose(self) -> None:
        nodes, at = self._old.nodes, self._at
        self._choose_state()
        first_user: Dict[int, int] = {}
        for index in reversed(range(len(nodes))):
            device = at[index]
            if device is None:
                device = at[index] = first_user.get(index, 0)
            operands = nodes[index].operands
            if nodes[index].op == "gradient":
                operands = operands[1:2]  # it is on the device of x
            for operand in operands:
                first_user[operand] = device
        # Puts a gradient on the final device of x, whatever the home of y was.
        for index, node in enumerate(nodes):
            if node.op == "gradient":
                at[index] = at[node.operands[1]]

    def _choose_state(self) -> None:
        """Places updated inputs without a home where they are read, else with the new value."""
        at = self._at
        state = {update.input for update in self._old.updates if at[update.input] is None}
        for index, node in enumerate(self._old.nodes):
            if at[index] is not None and node.op != "gradient":
                for operand in state.intersection(node.operands):
                    at[operand] = at[index]
                    state.discard(operand)
        for update in self._old.updates:
            if at[update.input] is None:
                at[update.input] = at[update.value]

    def _device(self, index: int) -> int:
        device = self._at[index]
        assert device is not None
        return device

    def _write(self, index: int) -> None:
        node = self._old.nodes[index]
        copy = graph_pb2.Node()
        copy.CopyFrom(node)
        if node.op == "send":
            operands = [self._is[node.operands[0]]]
            copy.attributes["source"].i = self._device(node.operands[0])
            copy.attributes["target"].i = self._device(index)
        elif node.op == "gradient":
            operands = [self._is[operand] for operand in node.operands[:2]]
            operands += [self._on(operand, self._device(node.operands[0]))
                         for operand in node.operands[2:]]
        else:
            operands = [self._on(operand, self._device(index)) for operand in node.operands]
        copy.operands[:] = operands
        self._is.append(len(self.graph.nodes))
        self.graph.nodes.append(copy)

    def _on(self, index: int, device: int) -> int:
        """Returns the new number of a node's value on a device."""
        source = self._device(index)
        if source == device:
            return self._is[index]
        known = self._sends.get((index, device))
        if known is None:
            send = self.graph.nodes.add(
                op="send", dtype=self._old.nodes[index].dtype, operands=[self._is[index]])
            send.attributes["source"].i = source
            send.attributes["target"].i = device
            known = self._sends[index, device] = len(self.graph.nodes) - 1
        return known

    def _write_results(self) -> None:
        old, graph = self._old, self.graph
        inputs = {node.attributes["index"].i: self._device(index)
                  for index, node in enumerate(old.nodes) if node.op == "input"}
        graph.outputs[:] = [self._is[index] for index in old.outputs]
        del graph.updates[:]
        for update in old.updates:
            graph.updates.add(input=self._is[update.input],
                              value=self._on(update.value, self._device(update.input)))
        stages = graph.sharding.stages
        stages.inputs[:] = [inputs[place] for place in range(len(inputs))]
        stages.outputs[:] = [self._device(index) for index in old.outputs]
        stages.SetInParent()
        graph.sharding.mesh.axes.add(name="stage", size=len(self._devices))
        at = [placed(name) for name in self._devices]
        self.home = Stages(tuple(self._devices), _lie(stages.inputs, at), _lie(stages.outputs, at))


def _lie(devices: Sequence[int], at: Sequence[Placement]) -> Tuple[Placement, ...]:
    return tuple(at[device] for device in devices)
