"""How gradients flow through Python's functions: torch.autograd.Function, and hooks of results.

The daemon differentiates graphs. A node with a `function` is a variable to it: no gradient flows
from the node to its operands. So a gradient is computed in parts, the last function first: those of
its results, by the daemon; those of its inputs, by its backward; and the inputs become further ends
that gradients flow from.
"""

import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from kiln._graph import node as _nodes
from kiln._graph.node import Node, make
from kiln._tensor.base import wrap
from kiln._tensor.gradients import check_flow, request
from kiln.torch._dialect import TORCH


class End(NamedTuple):
    """A result that gradients flow from, and its gradient; None for 1."""

    node: Node
    upstream: Any


class Function:
    """A call of a function with a backward of its own.

    `inputs` are the nodes whose gradients backward returns, None for other arguments. `backward`
    takes this function, and a gradient or None for each result; it does not hold the function, nor
    its results, so that they go with the last tensor.
    """

    def __init__(self, name: str, inputs: Sequence[Optional[Node]], count: int,
                 backward: Callable[["Function", List[Any]], Sequence[Any]]) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.backward = backward
        # Weak: results hold their function.
        self.results: List[Optional[weakref.ref[Node]]] = [None] * count
        # Larger than those of the functions before it.
        self.order = 0.0
        # The hooks, if it is the function of a tensor's hooks.
        self.hooks: Optional[Dict[int, Callable[[Any], Any]]] = None

    def result(self, place: int, value: Node) -> Node:
        """Returns the node of a result whose value is `value`."""
        node = make("detach", (value,))
        node.dialect = TORCH
        self.own(place, node)
        return node

    def own(self, place: int, node: Node) -> None:
        """Makes a node, from which no gradient flows to its operands, one of the results."""
        node.tracked = node.variable = True
        node.function = self
        self.results[place] = weakref.ref(node)
        self.order = max(self.order, node.number)


def hooks_of(node: Node) -> Dict[int, Callable[[Any], Any]]:
    """Returns the hooks of a result's gradient, which take it and may return another one."""
    function = node.function
    if isinstance(function, Function) and function.hooks is not None:
        return function.hooks
    # The node becomes a function of its former self, also for those that have used it.
    _nodes.stand_apart(node)
    before, = node.operands
    before.function = function
    if isinstance(function, Function):
        place = next(i for i, ref in enumerate(function.results) if ref and ref() is node)
        function.results[place] = weakref.ref(before)
    hooks: Dict[int, Callable[[Any], Any]] = {}

    def call(_: Function, slopes: List[Any]) -> Sequence[Any]:
        (slope,) = slopes
        for hook in list(hooks.values()) if slope is not None else ():
            instead = hook(slope)
            slope = slope if instead is None else instead
        return (slope,)

    made = Function("hooks", (before,), 1, call)
    made.hooks = hooks
    node.op = "detach"
    made.own(0, node)
    if isinstance(function, Function):
        # Another result of the function may have a larger number, and the hooks run before it.
        made.order = max(made.order, function.order + 2.0**-20)
    return hooks


class Flow:
    """The gradients of ends for any nodes under them.

    Runs the backward of all functions under the ends, once.
    """

    def __init__(self, ends: Sequence[End]) -> None:
        self._ends = list(ends)
        self._reached: Dict[Node, _Reached] = {}
        # Gradients that hooks have replaced.
        self._replaced: Dict[Node, Any] = {}
        for end in ends:
            check_flow(wrap(end.node))
        functions: Dict[Function, None] = {}
        pending = [end.node for end in ends]
        while pending:
            root = pending.pop()
            if root in self._reached:
                continue
            found = self._reached[root] = _reached(root)
            functions.update(dict.fromkeys(found.functions))
            pending += [given for function in found.functions for given in function.inputs
                        if given is not None and given.tracked]
        for function in sorted(functions, key=lambda function: -function.order):
            self._run(function)

    def leaves(self) -> List[Tuple[Node, Any]]:
        """Returns the leaves under the ends that want a gradient, with their tensors; and results
        after retain_grad().
        """
        found: List[Tuple[Node, Any]] = []
        nodes = dict.fromkeys([node for part in self._reached.values() for node in part.wanted])
        for node in nodes:
            tensor = node.leaf() if node.leaf is not None else None
            if tensor is not None and tensor._requires_grad:
                found.append((node, tensor))
            tensor = node.retained() if node.retained is not None else None
            if tensor is not None and tensor._node is node:
                found.append((node, tensor))
        found.reverse()
        return found

    def hooked(self, node: Node) -> Any:
        """Returns the gradient for a node, after its hooks; None if no end depends on it."""
        return self._replaced[node] if node in self._replaced else self.slope(node)

    def slope(self, node: Node) -> Any:
        """Returns the gradient for a node; None if no end depends on it."""
        total = None
        for end in self._ends:
            if node not in self._reached[end.node].nodes:
                continue
            if node is end.node and end.upstream is not None:
                part = end.upstream
            else:
                part = wrap(request(end.node, node, end.upstream))
            total = part if total is None else total + part
        return total

    def _run(self, function: Function) -> None:
        results = [None if ref is None else ref() for ref in function.results]
        slopes = [None if node is None else self.slope(node) for node in results]
        if all(slope is None for slope in slopes):
            return
        given = function.backward(function, slopes)
        if function.hooks is not None:
            self._replaced[results[0]] = given[0]  # type: ignore[index]
        for node, slope in zip(function.inputs, given):
            if node is not None and slope is not None and node.tracked:
                self._ends.append(End(node, slope))


class _Reached(NamedTuple):
    """The nodes to which gradients flow from a root, up to and with those of functions."""

    nodes: Set[Node]
    functions: List[Function]
    wanted: List[Node]  # leaves, and nodes whose gradient is retained


def _reached(root: Node) -> _Reached:
    found = _Reached({root}, [], [])
    nodes, functions, wanted = found
    stack = [root]
    while stack:
        node = stack.pop()
        if node.leaf is not None or node.retained is not None:
            wanted.append(node)
        if node.function is not None:
            functions.append(node.function)
            continue
        if node.leaf is not None or node.op == "detach":
            continue
        for operand in node.operands:
            if operand.tracked and operand not in nodes:
                nodes.add(operand)
                stack.append(operand)
    return found
