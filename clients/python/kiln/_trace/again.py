"""Compares two traces of a function. If they differ, it reads something that is not watched."""

from typing import TYPE_CHECKING, Any, Optional

from kiln._basics.source import format_source

if TYPE_CHECKING:
    from kiln._trace.trace import Trace

_UNKNOWN = "a line of a library"


def difference(first: "Trace", second: "Trace") -> Optional[str]:
    """Returns the difference between two traces of one kind of call, with its line; None: none."""
    if repr(first.structure) != repr(second.structure):
        return f"it returned {first.structure!r}, then {second.structure!r}"
    if (first.graph is None) != (second.graph is None):
        return "it computed something in one of them alone"
    found = _of_graphs(first.graph, second.graph) or _of_inputs(first, second)
    if found is None and _effects(first) != _effects(second):
        return "it changed other tensors"
    return found


def _effects(trace: "Trace") -> Any:
    return trace.updated, [(i, gradient is None) for i, gradient in trace.grad_effects]


def _of_graphs(first: Any, second: Any) -> Optional[str]:
    if first is None:
        return None
    for number, (old, new) in enumerate(zip(first.nodes, second.nodes)):
        if _meaning(old) != _meaning(new):
            return f"at {_line(second, number)}, {_text(old)}, then {_text(new)}"
    longer = max(first, second, key=lambda graph: len(graph.nodes))
    number = min(len(first.nodes), len(second.nodes))
    if number < len(longer.nodes):
        return f"at {_line(longer, number)}, {_text(longer.nodes[number])} in one of them alone"
    if (list(first.outputs), _updates(first)) != (list(second.outputs), _updates(second)):
        return "it returned or assigned other values"
    return None


def _line(graph: Any, number: int) -> str:
    """Returns the line that made a node, or the first one that used it: constants have none."""
    users = {number}
    for i in range(number, len(graph.nodes)):
        node = graph.nodes[i]
        if i in users or not users.isdisjoint(node.operands):
            if node.source:
                return str(node.source)
            users.add(i)
    return _UNKNOWN


def _meaning(node: Any) -> bytes:
    """Returns a node without the line that made it, as bytes that are equal for equal nodes."""
    copy = type(node)()
    copy.CopyFrom(node)
    copy.ClearField("source")
    encoded: bytes = copy.SerializeToString(deterministic=True)
    return encoded


def _updates(graph: Any) -> Any:
    return [(update.input, update.value) for update in graph.updates]


def _text(node: Any) -> str:
    """Returns an op with its attributes, as text."""
    attributes = [f"{name}={_value(node.attributes[name])}" for name in sorted(node.attributes)]
    return f"{node.op}({', '.join(attributes)})"


def _value(attribute: Any) -> str:
    kind = attribute.WhichOneof("value")
    return " ".join(str(getattr(attribute, kind)).split()) if kind else "?"


def _of_inputs(first: "Trace", second: "Trace") -> Optional[str]:
    read = [[what for kind, what in trace.inputs if kind != "constant"]
            for trace in (first, second)]  # fmt: skip
    if read[0] != read[1] or len(first.constants) != len(second.constants):
        return "it read other tensors"
    for old, new in zip(first.constants, second.constants):
        if old.numbers != new.numbers:
            line = format_source(new.source) or _UNKNOWN
            return f"at {line}, a tensor was made of other numbers"
    return None
