"""The state of a tensor: assignment, and its gradient."""

import sys
import weakref
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln._graph import live, places, realize
from kiln._graph import node as _node
from kiln._graph.node import make, mode
from kiln._placement import placement as placements
from kiln._tensor import temporaries
from kiln._tensor.assignment import assigned
from kiln._tensor.base import TensorBase, construct, wrap
from kiln._tensor.gradients import backward
from kiln._tensor.indexing import index
from kiln._tensor.temporaries import refuses_temporaries

if TYPE_CHECKING:
    from kiln.tensor import Number, Tensor


class State(TensorBase):
    """Items, assignment and gradients. Tensors built from this one before keep the old value."""

    __slots__ = ()

    # Items.

    def __getitem__(self, key: Any) -> "Tensor":
        """tensor[key], as in NumPy, but always a new tensor, never a view.

        A key consists of integers, slices (of any step), `...`, None for a new dimension, and
        tensors, arrays or lists of integers or bools. Index tensors broadcast together; as in
        NumPy, their dimensions come first if something is between them. Negative integers count
        from the end.

        An integer out of range raises IndexError: at once in a key, or in an index array whose
        values came from this process; if only the device knows the values, the next value that is
        read raises it. A mask (a tensor of bools) gives a shape that depends on its values, so they
        are read first; within kiln.jit that raises TraceError: use kiln.where there.

        >>> x = kiln.arange(6).reshape(2, 3)
        >>> x[1, ::-1].tolist(), x[:, [0, 2]].tolist(), x[x > 3].tolist()
        ([5, 4, 3], [[0, 2], [3, 5]], [4, 5])
        """
        result = index(self._tensor, key)
        result._selected = True
        return result

    def __setitem__(self, key: Any, value: Any) -> None:
        """tensor[key] = value, for every key that can be read, with NumPy's broadcasting.

        The value's dtype may widen or narrow within its kind (ints wrap); assigning floats to
        integers raises InvalidArgument. If an element gets several values, the last one remains. A
        mask does not need to be read, and works within kiln.jit, if the values are one number or
        broadcast with it. Gradients flow to the value and to the unchanged part of the tensor.

        Indexing never returns a view, so `x[0][1] = 5` could not change x; it raises
        InvalidArgument. Write `x[0, 1] = 5`.

        >>> x = kiln.zeros(2, 3)
        >>> x[:, 1] = 5
        >>> x[x == 0] = -1
        >>> x.tolist()
        [[-1.0, 5.0, -1.0], [-1.0, 5.0, -1.0]]
        """
        if sys.getrefcount(self) <= temporaries.IN_STATEMENT and temporaries.is_statement(
            sys._getframe(1)
        ):
            raise InvalidArgument(
                "an assignment to an element of a temporary tensor has no effect: indexing returns "
                "new tensors, not views. Use one key, such as x[0, 1] = 5 instead "
                "of x[0][1] = 5")
        self._in_place(assigned(self._tensor, key, value))

    # Assignment.

    def assign(self, value: Any) -> "Tensor":
        """Replaces the tensor's value; tensors built from it before keep the old one. Returns self.

        In a kiln.jit function the device's buffer is replaced, by the same message that runs the
        function. Shape, dtype and placement stay; a Python number fills the tensor. No gradient
        flows through. Raises InvalidArgument if shape or dtype differ.

        >>> x = kiln.zeros(2)
        >>> x.assign([1.0, 2.0]).tolist()
        [1.0, 2.0]
        """
        if isinstance(value, TensorBase):
            node = value._node
        elif np.isscalar(value):
            node = make("expand", (_node.scalar(value, self.dtype),), (("shape", self.shape),))
        else:
            node = construct(value, self.dtype)._node
        if node.shape != self.shape or node.dtype is not self.dtype:
            raise InvalidArgument(
                f"cannot assign {node.dtype.name} of shape {node.shape} to {self.dtype.name} of "
                f"shape {self.shape}; reshape or cast it first")
        # A separate node, since it becomes a leaf or must have no gradient; others may share this
        # one.
        if node.tracked or node.cut is not None or self._requires_grad:
            node = _node.alias(node)
        if placements.in_use and mode.trace is None:
            placement = places.where(self._node)
            if placement is not None:  # the placement stays
                node = realize.elsewhere(node, placement)
        self._node = node
        self._mark_leaf()
        live.note_assigned(self)
        return self._tensor

    @refuses_temporaries
    def copy_(self, value: Any) -> "Tensor":
        """As assign().

        >>> kiln.zeros(2).copy_(kiln.tensor([1.0, 4.0])).tolist()
        [1.0, 4.0]
        """
        return self.assign(value)

    @refuses_temporaries
    def zero_(self) -> "Tensor":
        """Fills the tensor with zeros.

        >>> kiln.ones(2).zero_().tolist()
        [0.0, 0.0]
        """
        return self.assign(0)

    @refuses_temporaries
    def fill_(self, value: "Number") -> "Tensor":
        """Fills the tensor with a number.

        >>> kiln.ones(2).fill_(3).tolist()
        [3.0, 3.0]
        """
        return self.assign(value)

    def _in_place(self, result: "Tensor") -> "Tensor":
        if result.shape != self.shape or result.dtype is not self.dtype:
            raise InvalidArgument(
                f"in place: {result.dtype.name} of shape {result.shape} does not fit into "
                f"{self.dtype.name} of shape {self.shape}")
        if self._requires_grad and mode.gradients:
            raise InvalidArgument(
                "a tensor that requires a gradient cannot change in place; use kiln.no_grad()")
        if not self._requires_grad and result._node.tracked:
            self._node = result._node
            live.note_assigned(self)
            return self._tensor
        return self.assign(result)

    # Gradients.

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
        node = self._node
        if node.op == "input" and not node.tracked and node.cut is None:
            return wrap(node)
        return wrap(_node.alias(node))

    @property
    def data(self) -> "Tensor":
        """The same value; no gradient flows through it.

        >>> kiln.tensor([1.0, 4.0]).data.requires_grad
        False
        """
        return self._tensor.detach()

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
