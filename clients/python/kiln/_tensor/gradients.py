"""backward(): requests the gradients of a tensor's leaves, which the daemon computes."""

from typing import TYPE_CHECKING, Any, List, Optional, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import no_grad
from kiln._graph.node import Node, make
from kiln._tensor.base import wrap
from kiln._tensor.moving import beside

if TYPE_CHECKING:
    from kiln.tensor import Tensor


def check_flow(output: "Tensor", since: int = -1) -> None:
    """Raises InvalidArgument if `output` depends on a result of a function traced after `since`.

    Such a result is a value: everything before it would silently get no gradient.
    """
    cut = output._node.cut
    if cut is not None and cut.number > since:
        raise InvalidArgument(
            f"a gradient through a result of {cut.name}, which kiln.jit traced; gradients do not "
            "flow out of a traced function. Call backward() or kiln.grad inside it, or detach() "
            "its result if it needs no gradient")


def check_output(output: "Tensor", upstream: Optional["Tensor"]) -> None:
    """Raises InvalidArgument if no gradient flows from `output`, or an upstream is missing."""
    check_flow(output)
    if not output.requires_grad:
        raise InvalidArgument(
            "backward() of a tensor that no gradient flows through: nothing under it has "
            "requires_grad, or it was made in no_grad() or detached")
    if upstream is None and output.shape:
        raise InvalidArgument(
            f"backward() of a tensor of shape {output.shape}; reduce it to a scalar (sum, mean) or "
            "give backward() a gradient of this shape")


def leaves(root: Node) -> List[Tuple[Node, Any]]:
    """Returns the leaves under a node that want a gradient, with their tensors."""
    found = []
    seen = {root}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.leaf is not None:
            tensor = node.leaf()
            if tensor is not None and tensor._requires_grad:
                found.append((node, tensor))
            continue
        if node.retained is not None:
            tensor = node.retained()
            if tensor is not None and tensor._node is node:
                found.append((node, tensor))
        for operand in node.operands:
            if operand.tracked and operand not in seen:
                seen.add(operand)
                stack.append(operand)
    found.reverse()
    return found


def request(y: Node, x: Node, upstream: Optional["Tensor"]) -> Node:
    """Returns the node of d y / d x, weighted by `upstream`."""
    operands = (y, x) if upstream is None else (y, x, upstream._node)
    return make("gradient", operands)


def backward(output: "Tensor", upstream: Optional["Tensor"] = None) -> None:
    """Adds d output / d leaf to the grad of every leaf. Lazy.

    `upstream` is the gradient of `output`, of its shape. Raises InvalidArgument if it is missing
    and `output` is not a scalar, and if no gradient flows through `output`.

    >>> x = kiln.tensor([1.0, 2.0], requires_grad=True)
    >>> kiln.autograd.backward((x * x).sum())
    >>> x.grad.tolist()
    [2.0, 4.0]
    """
    check_output(output, upstream)
    with no_grad():
        for node, tensor in leaves(output._node):
            gradient = wrap(request(output._node, node, upstream))
            before = tensor._grad
            tensor._grad = gradient if before is None else before + beside(gradient, before)
