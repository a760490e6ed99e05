"""How gradients flow through Python's functions: torch.autograd.Function, and hooks of results.

The daemon differentiates graphs. A node with a `function` is a variable to it: no gradient flows
from the node to its operands. So a gradient is computed in parts, the last function first: those of
its results, by the daemon; those of its inputs, by its backward; and the inputs become further ends
that gradients flow from.
"""

import weakref
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

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
    takes a gradient or None for each result.
    """

    def __init__(self, name: str, inputs: Sequence[Optional[Node]], count: int,
                 backward: Callable[[List[Any]], Sequence[Any]]) -> None:
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

    def call(slopes: List[Any]) -> Sequence[Any]:
        (slope,) = slopes
        for hook in list(hooks.values()) if slope is not None else ():
            instead = hook(slope)
            slope = slope if instead is None else instead
        return (slope,)

    made = Function("hooks", (before,), 1, call)
    made.hooks = hooks
    node.op = "detach"
    made.own(0, node)
    return hooks


class Flow:
    """The gradients of ends for any nodes under them.

    Runs the backward of all functions under the ends, once.
    """

    def __init__(self, ends: Sequence[End]) -> None:
        self._ends = list(ends)
        self._reached: Dict[Node, Set[Node]] = {}
        # Gradients that hooks have replaced.
        self._replaced: Dict[Node, Any] = {}
        for end in ends:
            check_flow(wrap(end.node))
        for function in _functions([end.node for end in ends]):
            self._run(function)

    def hooked(self, node: Node) -> Any:
        """Returns the gradient for a node, after its hooks; None if no end depends on it."""
        return self._replaced[node] if node in self._replaced else self.slope(node)

    def slope(self, node: Node) -> Any:
        """Returns the gradient for a node; None if no end depends on it."""
        total = None
        for end in self._ends:
            if node not in self._under(end.node):
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
        given = function.backward(slopes)
        if function.hooks is not None:
            self._replaced[results[0]] = given[0]  # type: ignore[index]
        for node, slope in zip(function.inputs, given):
            if node is not None and slope is not None and node.tracked:
                self._ends.append(End(node, slope))

    def _under(self, root: Node) -> Set[Node]:
        found = self._reached.get(root)
        if found is None:
            found = self._reached[root] = set(_walk([root]))
        return found


def _walk(roots: Iterable[Node]) -> Iterable[Node]:
    """Yields the nodes to which gradients flow from roots, up to and with those of functions."""
    stack = list(roots)
    seen = set(stack)
    while stack:
        node = stack.pop()
        yield node
        if node.function is not None or node.leaf is not None or node.op == "detach":
            continue
        for operand in node.operands:
            if operand.tracked and operand not in seen:
                seen.add(operand)
                stack.append(operand)


def _functions(roots: Sequence[Node]) -> List[Function]:
    """Returns the functions under roots, the last one first."""
    found: Dict[Function, None] = {}
    for function, _ in _all(roots):
        if function is not None:
            found[function] = None
    return sorted(found, key=lambda function: -function.order)


def _all(roots: Sequence[Node]) -> Iterable[Tuple[Optional[Function], Node]]:
    """Yields all nodes to which gradients flow, also through functions, with their functions."""
    pending = list(roots)
    seen: Set[Node] = set()
    while pending:
        for node in _walk([pending.pop()]):
            if node in seen:
                continue
            seen.add(node)
            function = node.function
            yield function, node
            if function is not None:
                pending += [given for given in function.inputs
                            if given is not None and given.tracked and given not in seen]


def leaves(roots: Sequence[Node]) -> List[Tuple[Node, Any]]:
    """Returns the leaves under roots that want a gradient, with their tensors; and results after
    retain_grad().
    """
    found = []
    for _, node in _all(roots):
        tensor = node.leaf() if node.leaf is not None else None
        if tensor is not None and tensor._requires_grad:
            found.append((node, tensor))
        tensor = node.retained() if node.retained is not None else None
        if tensor is not None and tensor._node is node:
            found.append((node, tensor))
    found.reverse()
    return found
