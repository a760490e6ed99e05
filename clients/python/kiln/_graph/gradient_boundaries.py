"""Edges of a graph that no gradient flows along, and nodes that equal ones must not stand for.

The daemon differentiates along every edge but those under a "detach", and keeps equal nodes once. A
node here says by `tracked` whether a gradient flows to it: not if it was made in kiln.no_grad(),
and not if its value was detached. And a gradient may be asked for by one of two equal nodes.
"""

from typing import Hashable, Sequence, Set

from kiln._graph.node import Node


class GradientBoundaries:
    """Of the nodes of one graph, operands first."""

    __slots__ = ("_differentiated", "_requests")

    def __init__(self, order: Sequence[Node]) -> None:
        self._requests = [node for node in order if node.op == "gradient"]
        self._differentiated: Set[Node] = set()  # the y of all requests and what is under them
        stack = [node.operands[0] for node in self._requests]
        while stack:
            node = stack.pop()
            if node not in self._differentiated:
                self._differentiated.add(node)
                stack.extend(node.operands)

    def between(self, node: Node, operand: Node, place: int) -> bool:
        """Whether no gradient flows from a node to its operand at a place."""
        if node not in self._differentiated or node.op == "detach":
            return False
        if node.op == "gradient" and place < 2:
            return False  # y and x say what the request is
        if node.tracked:
            return operand.op == "gradient" and not operand.tracked
        return operand.tracked

    def is_apart(self, node: Node) -> bool:
        """Whether a gradient may be asked for by this very node, a copy of its operand."""
        return (node.variable or node.leaf is not None) and node in self._differentiated

    def identity(self, node: Node) -> Hashable:
        """What tells nodes apart that are equal otherwise."""
        if not self._requests:
            return None
        return id(node) if self.is_apart(node) else node.tracked

    def input_identity(self, node: Node) -> Hashable:
        """As identity, of the value of a buffer: a leaf, and the same value detached."""
        return id(node) if self._requests and node.tracked else None
