"""Derivatives of functions, for torch.func and torch.autograd.functional.

A function is called with variables in place of its arguments, which may be nested. Gradients flow
on through the results if the arguments, or what the function uses, already had some.
"""

from typing import Any, Callable, Dict, List, Sequence, Set, Tuple

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import enable_grad
from kiln._graph.node import Node, make, mode
from kiln._tensor.base import wrap
from kiln.torch import _creation, _shaping
from kiln.torch._flow import End, Flow
from kiln.torch._tensor import Tensor, convert

Build = Callable[[Sequence[Any]], Any]


def flatten(tree: Any) -> Tuple[List[Any], Build]:
    """Returns the leaves of nested dicts, lists and tuples, and what makes a tree of others."""
    if isinstance(tree, dict):
        keys = list(tree)
        leaves, build = flatten([tree[key] for key in keys])
        return leaves, lambda given: type(tree)(zip(keys, build(given)))
    if isinstance(tree, (list, tuple)):
        parts = [flatten(part) for part in tree]
        ends = np.cumsum([0, *[len(leaves) for leaves, _ in parts]])

        def build_all(given: Sequence[Any]) -> Any:
            made = [build(given[begin:end])
                    for (_, build), begin, end in zip(parts, ends, ends[1:])]
            return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)

        return [leaf for leaves, _ in parts for leaf in leaves], build_all
    return [tree], lambda given: given[0]


class Call:
    """A call of a function with variables in place of some arguments."""

    def __init__(self, function: Callable[..., Any], numbers: Sequence[int], args: Sequence[Any],
                 kwargs: Any, has_aux: bool = False) -> None:
        given = list(args)
        self.inputs: List[Any] = []  # the variables
        self.own: Set[Node] = set()
        self._builds: List[Tuple[int, Build]] = []  # how many variables each argument has
        with enable_grad():
            for number in numbers:
                leaves, build = flatten(given[number])
                variables = [self._variable(leaf) for leaf in leaves]
                given[number] = build(variables)
                self._builds.append((len(leaves), build))
            output = function(*given, **kwargs)
        self.aux = None
        if has_aux:
            output, aux = output
            leaves, build = flatten(aux)
            self.aux = build([self.settled(leaf) for leaf in leaves])
        self.outputs, self.build_output = flatten(output)

    def _variable(self, argument: Any) -> Any:
        tensor = convert(argument)
        if not tensor.dtype.is_float:
            raise InvalidArgument(
                f"only floats have gradients; this argument is {tensor.dtype.name}")
        node = make("contiguous" if tensor._node.tracked else "detach", (tensor._node,))
        node.tracked = node.variable = True
        self.own.add(node)
        made: Any = wrap(node)
        self.inputs.append(made)
        return made

    def output(self) -> Any:
        """Returns the function's result."""
        return self.build_output([self.settled(part) for part in self.outputs])

    def arguments(self, parts: Sequence[Any]) -> List[Any]:
        """Returns a tree for each argument, of a part for each variable."""
        found, begin = [], 0
        for count, build in self._builds:
            found.append(build(parts[begin: begin + count]))
            begin += count
        return found

    def slopes(self, seeds: Sequence[Any]) -> List[Any]:
        """Returns the gradients for the variables, given one or None for each output."""
        with enable_grad():
            flow = Flow([End(part._node, seed) for part, seed in zip(self.outputs, seeds)
                         if isinstance(part, Tensor) and part.requires_grad])
            found = [flow.slope(variable._node) for variable in self.inputs]
        return [_creation.zeros_like(variable) if slope is None else slope
                for slope, variable in zip(found, self.inputs)]

    def settled(self, value: Any) -> Any:
        """Returns a result; without gradient, unless it flows to others than the variables."""
        if not isinstance(value, Tensor) or not value._node.tracked:
            return value
        return value if mode.gradients and self._flows_on(value._node) else value.detach()

    def _flows_on(self, root: Node) -> bool:
        stack, seen = [root], {root}
        while stack:
            node = stack.pop()
            if node.leaf is not None or (node.variable and node not in self.own):
                return True
            operands = list(node.operands)
            if node.function is not None:
                operands = [given for given in node.function.inputs if given is not None]
            elif node.op == "detach":
                continue
            new = [operand for operand in operands if operand.tracked and operand not in seen]
            seen.update(new)
            stack += new
        return False


def jacobian(call: Call) -> List[List[Any]]:
    """Returns d output / d variable, of the shape of both, for each output and each variable."""
    found = []
    for place, output in enumerate(call.outputs):
        rows = []
        count = output.numel()
        for i in range(count):
            one_hot = np.zeros(count)
            one_hot[i] = 1
            seeds: List[Any] = [None] * len(call.outputs)
            seeds[place] = convert(one_hot.reshape(tuple(output.shape)), output.dtype)
            chosen = Call.__new__(Call)
            chosen.__dict__.update(call.__dict__, outputs=[output])
            rows.append(chosen.slopes([seeds[place]]))
        found.append([
            _shaping.stack([row[i] for row in rows]).reshape(*output.shape, *variable.shape)
            if count else _creation.zeros(*output.shape, *variable.shape, dtype=output.dtype)
            for i, variable in enumerate(call.inputs)])
    return found


def pushed(call: Call, tangents: Sequence[Any]) -> List[Any]:
    """Returns the derivative of each output along tangents of the variables.

    The product of the Jacobian with a vector is the derivative, by u, of the product of u with the
    Jacobian, with that vector.
    """
    with enable_grad():
        made: Dict[int, Any] = {}
        seeds: List[Any] = []
        for place, output in enumerate(call.outputs):
            node = make("detach", (_creation.zeros_like(output)._node,))
            node.tracked = node.variable = True
            call.own.add(node)
            made[place] = wrap(node)
            seeds.append(made[place])
        total: Any = 0
        for slope, tangent in zip(call.slopes(seeds), tangents):
            total = total + (slope * convert(tangent, slope.dtype)).sum()
        flow = Flow([End(total._node, None)]) if isinstance(total, Tensor) and (
            total.requires_grad) else None
        found = [None if flow is None else flow.slope(made[place]._node)
                 for place in range(len(call.outputs))]
    return [_creation.zeros_like(output) if slope is None else slope
            for slope, output in zip(found, call.outputs)]
