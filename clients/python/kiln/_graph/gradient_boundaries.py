"""Edges that no gradient flows along, and nodes that equal ones must not replace.

The daemon differentiates along every edge except those under a "detach", and keeps equal nodes
once. In this client, `tracked` says whether a gradient flows to a node: not if it was made in
kiln.no_grad(), and not if its value was detached. A gradient may also be requested for only one of
two equal nodes.
"""

from typing import Hashable, Sequence, Set

from kiln._graph.node import Node


class GradientBoundaries:
    """The boundaries in one graph. `order` has its nodes, operands first."""

    __slots__ = ("_differentiated", "_requests")

    def __init__(self, order: Sequence[Node]) -> None:
        self._requests = [node for node in order if node.op == "gradient"]
        self._differentiated: Set[Node] = set()  # the y of all requests and the nodes under them
        stack = [node.operands[0] for node in self._requests]
        while stack:
            node = stack.pop()
            if node not in self._differentiated:
                self._differentiated.add(node)
                stack.extend(node.operands)

    def between(self, node: Node, operand: Node, place: int) -> bool:
        """Returns whether no gradient flows from a node to its operand number `place`."""
        if node not in self._differentiated or node.op == "detach":
            return False
        if node.op == "gradient" and place < 2:
            return False  # y and x only describe the request
        if node.tracked:
            return operand.op == "gradient" and not operand.tracked
        return operand.tracked

    def is_apart(self, node: Node) -> bool:
        """Returns whether a gradient may be requested for this very node, a copy of its operand."""
        return (node.variable or node.leaf is not None) and node in self._differentiated

    def identity(self, node: Node) -> Hashable:
        """Returns a key that distinguishes nodes that are otherwise equal."""
        if not self._requests:
            return None
        return id(node) if self.is_apart(node) else node.tracked

    def input_identity(self, node: Node) -> Hashable:
        """Returns a key that distinguishes a leaf from the same buffer's value detached."""
        return id(node) if self._requests and node.tracked else None
