"""The gradient of a tensor: requests for it, which the daemon computes, and what they leave."""

import weakref
from typing import TYPE_CHECKING, Any, List, Optional, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._graph import node as _node
from kiln._graph.gradient_mode import no_grad
from kiln._graph.node import Node, make, mode
from kiln._tensor.base import wrap
from kiln._tensor.device_transfer import beside
from kiln._tensor.shapes import Shapes

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Gradients(Shapes):
    """Leaves, their gradients, and copies with or without them."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through this tensor.

        >>> (kiln.ones(2, requires_grad=True) * 2).requires_grad
        True
        """
        return self._requires_grad or self._node.tracked

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    @property
    def is_leaf(self) -> bool:
        """Whether backward() sets its grad, or it needs no gradient.

        >>> kiln.ones(2, requires_grad=True).is_leaf
        True
        """
        return self._requires_grad or not self._node.tracked

    @property
    def grad(self) -> Optional["Tensor"]:
        """The gradient that backward() has accumulated; None before that.

        >>> x = kiln.ones(2, requires_grad=True)
        >>> (x * 3).sum().backward()
        >>> x.grad.tolist()
        [3.0, 3.0]
        """
        return self._grad

    @grad.setter
    def grad(self, gradient: Optional["Tensor"]) -> None:
        if mode.trace is not None:
            mode.trace.grad_set(self)
        self._grad = gradient

    def requires_grad_(self, wanted: bool = True) -> "Tensor":
        """Sets whether backward() computes a gradient for this tensor. Returns self.

        Raises InvalidArgument for dtypes other than floats, and for a result through which
        gradients flow.

        >>> kiln.zeros(2).requires_grad_().requires_grad
        True
        """
        if wanted and not self.dtype.is_float:
            raise InvalidArgument(
                f"only floats have gradients; this tensor is {self.dtype.name}")
        if wanted == self._requires_grad:
            return self._tensor
        if not self.is_leaf:
            raise InvalidArgument("this tensor is the result of an operation; detach() it first")
        # Other tensors of this node must not become leaves with it.
        self._node = _node.alias(self._node)
        self._requires_grad = wanted
        self._mark_leaf()
        return self._tensor

    def _mark_leaf(self) -> None:
        if self._requires_grad:
            self._node.leaf = weakref.ref(self._tensor)
            self._node.tracked = True

    def detach(self) -> "Tensor":
        """Returns the same value; no gradient flows through it.

        >>> kiln.zeros(2, requires_grad=True).detach().requires_grad
        False
        """
        return snapshot(self._tensor)

    @property
    def data(self) -> "Tensor":
        """The same value; no gradient flows through it.

        >>> kiln.tensor([1.0, 4.0]).data.requires_grad
        False
        """
        return self.detach()

    def retain_grad(self) -> None:
        """Makes backward() set the grad of this result, too. Has no effect on a leaf.

        Call it before backward(). Raises InvalidArgument if no gradient flows through it.

        >>> x = kiln.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> y.retain_grad()
        >>> (y * y).sum().backward()
        >>> y.grad.tolist()
        [6.0, 6.0]
        """
        if not self.requires_grad:
            raise InvalidArgument(
                "retain_grad() of a tensor that no gradient flows through: nothing under it has "
                "requires_grad")
        node = self._node
        if self._requires_grad or (node.retained and node.retained() is self):
            return
        if node.retained is None:
            _node.stand_apart(node)
        else:  # two tensors of one node
            node = self._node = _node.make("contiguous", (node,))
            node.variable = True
        node.retained = weakref.ref(self._tensor)

    def backward(self, gradient: Optional["Tensor"] = None) -> None:
        """Adds to the grad of every leaf under this tensor. Lazy.

        The tensor is a scalar, or `gradient` is its gradient, of its shape. Raises InvalidArgument
        otherwise, and if no gradient flows through it.

        >>> x = kiln.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [2.0, 4.0]
        """
        backward(self._tensor, gradient)

    # Copies.

    def __copy__(self) -> "Tensor":
        copied = wrap(self._node)
        copied._grad = self._grad
        if self._requires_grad:
            copied = wrap(self._node).detach().requires_grad_()
        return copied

    def __deepcopy__(self, memo: Any) -> "Tensor":
        copied = wrap(self._node).detach().clone()
        if self._requires_grad:
            copied.requires_grad_()
        memo[id(self)] = copied
        return copied


def snapshot(tensor: "Tensor") -> "Tensor":
    """Returns the present value; no gradient flows through it, and no later change of `tensor`
    changes it.
    """
    node = tensor._node
    if node.op == "input" and not node.tracked and node.cut is None:
        return wrap(node)
    return wrap(_node.alias(node))


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
            tensor._grad = gradient if before is None else (
                before._op("add", beside(gradient, before)))
