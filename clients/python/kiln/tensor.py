"""The tensor: a name for a node of the lazy graph, or for a value on the device."""

import sys
from typing import Any, Callable, List

import numpy as np

from kiln._basics import conversion, dtypes
from kiln._basics.errors import InvalidArgument, TraceError
from kiln._graph import live, places
from kiln._graph import node as _node
from kiln._graph import realize as _realize
from kiln._graph.node import make, mode
from kiln._placement import placement as placements
from kiln._tensor import temporaries
from kiln._tensor.assignment import assigned
from kiln._tensor.attached import AttachedMethods
from kiln._tensor.base import (
    TensorBase,
    apply,
    construct,
    operand_node,
    register_tensor_class,
    wrap,
)
from kiln._tensor.constructors import stack
from kiln._tensor.host_values import Number
from kiln._tensor.temporaries import refuses_temporaries


def _changing(name: str) -> Callable[..., Any]:
    """Returns a method that replaces the tensor's value by the result of the method `name`."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._in_place(getattr(self, name)(*args, **kwargs))

    method.__name__ = name + "_"
    method.__qualname__ = f"Tensor.{name}_"
    method.__doc__ = f"As {name}(), but changes the tensor itself."
    return refuses_temporaries(method)


class Tensor(AttachedMethods):
    """An n-dimensional array on the daemon's device.

    `data` is a number, nested lists (which may contain tensors), a NumPy array, which is copied, or
    a tensor, which is detached. Without a `dtype`, Python floats become float32 and Python ints
    int64.

    Lazy: an operation makes a node in this process and returns at once; its shape and dtype are
    known, its value is not. `numpy()`, `item()`, `tolist()` and printing read values; `realize()`
    computes the value and leaves it on the device.

    >>> x = kiln.Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> print(x @ x.T)
    tensor([[ 5., 11.],
            [11., 25.]], dtype=float32)
    """

    __slots__ = ()
    # NumPy arrays leave arithmetic with a Tensor to the Tensor.
    __array_priority__ = 1000

    def __init__(self, data: Any, dtype: Any = None, requires_grad: bool = False) -> None:
        self._grad = None
        self._requires_grad = False
        self._selected = False
        if _holds_tensors(data):
            data = _stacked(data)
        if isinstance(data, Tensor):
            wanted = data.dtype if dtype is None else dtypes.as_dtype(dtype)
            self._node = data.detach().cast(wanted)._node
        else:
            array, exact = conversion.to_array(data, dtype)
            self._node = _node.host_value(array, exact)
            _realize.created(self._node, data)
        if requires_grad:
            self.requires_grad_()

    def __hash__(self) -> int:
        return id(self)

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
        self._in_place(assigned(self, key, value))

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
                node = _realize.elsewhere(node, placement)
        self._node = node
        self._mark_leaf()
        live.note_assigned(self)
        return self

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
            return self
        return self.assign(result)

    # In place.

    def __iadd__(self, other: Any) -> "Tensor":
        return self._in_place(self + other)

    def __isub__(self, other: Any) -> "Tensor":
        return self._in_place(self - other)

    def __imul__(self, other: Any) -> "Tensor":
        return self._in_place(self * other)

    def __itruediv__(self, other: Any) -> "Tensor":
        return self._in_place(self / other)

    def __ifloordiv__(self, other: Any) -> "Tensor":
        return self._in_place(self // other)

    def __imod__(self, other: Any) -> "Tensor":
        return self._in_place(self % other)

    def __ipow__(self, other: Any) -> "Tensor":
        return self._in_place(self ** other)

    def __iand__(self, other: Any) -> "Tensor":
        return self._in_place(self & other)

    def __ior__(self, other: Any) -> "Tensor":
        return self._in_place(self | other)

    def __ixor__(self, other: Any) -> "Tensor":
        return self._in_place(self ^ other)

    def __ilshift__(self, other: Any) -> "Tensor":
        return self._in_place(self << other)

    def __irshift__(self, other: Any) -> "Tensor":
        return self._in_place(self >> other)

    def __imatmul__(self, other: Any) -> "Tensor":
        return self._in_place(self @ other)

    abs_ = _changing("abs")
    absolute_ = _changing("absolute")
    acos_ = _changing("acos")
    add_ = _changing("add")
    addcdiv_ = _changing("addcdiv")
    addcmul_ = _changing("addcmul")
    addmm_ = _changing("addmm")
    asin_ = _changing("asin")
    atan_ = _changing("atan")
    bitwise_and_ = _changing("bitwise_and")
    bitwise_left_shift_ = _changing("bitwise_left_shift")
    bitwise_not_ = _changing("bitwise_not")
    bitwise_or_ = _changing("bitwise_or")
    bitwise_right_shift_ = _changing("bitwise_right_shift")
    bitwise_xor_ = _changing("bitwise_xor")
    ceil_ = _changing("ceil")
    clamp_ = _changing("clamp")
    clamp_max_ = _changing("clamp_max")
    clamp_min_ = _changing("clamp_min")
    clip_ = _changing("clip")
    copysign_ = _changing("copysign")
    cos_ = _changing("cos")
    cosh_ = _changing("cosh")
    cumprod_ = _changing("cumprod")
    cumsum_ = _changing("cumsum")
    div_ = _changing("div")
    divide_ = _changing("divide")
    erf_ = _changing("erf")
    erfc_ = _changing("erfc")
    exp2_ = _changing("exp2")
    exp_ = _changing("exp")
    expm1_ = _changing("expm1")
    fix_ = _changing("fix")
    floor_ = _changing("floor")
    floor_divide_ = _changing("floor_divide")
    fmod_ = _changing("fmod")
    frac_ = _changing("frac")
    hypot_ = _changing("hypot")
    index_add_ = _changing("index_add")
    index_copy_ = _changing("index_copy")
    index_put_ = _changing("index_put")
    index_reduce_ = _changing("index_reduce")
    lerp_ = _changing("lerp")
    log10_ = _changing("log10")
    log1p_ = _changing("log1p")
    log2_ = _changing("log2")
    log_ = _changing("log")
    logical_and_ = _changing("logical_and")
    logical_not_ = _changing("logical_not")
    logical_or_ = _changing("logical_or")
    logical_xor_ = _changing("logical_xor")
    masked_fill_ = _changing("masked_fill")
    mul_ = _changing("mul")
    multiply_ = _changing("multiply")
    neg_ = _changing("neg")
    negative_ = _changing("negative")
    pow_ = _changing("pow")
    reciprocal_ = _changing("reciprocal")
    relu_ = _changing("relu")
    remainder_ = _changing("remainder")
    round_ = _changing("round")
    rsqrt_ = _changing("rsqrt")
    scatter_ = _changing("scatter")
    scatter_add_ = _changing("scatter_add")
    scatter_reduce_ = _changing("scatter_reduce")
    sigmoid_ = _changing("sigmoid")
    sign_ = _changing("sign")
    sin_ = _changing("sin")
    sinh_ = _changing("sinh")
    sqrt_ = _changing("sqrt")
    square_ = _changing("square")
    sub_ = _changing("sub")
    subtract_ = _changing("subtract")
    tan_ = _changing("tan")
    tanh_ = _changing("tanh")
    tril_ = _changing("tril")
    triu_ = _changing("triu")
    true_divide_ = _changing("true_divide")
    trunc_ = _changing("trunc")


register_tensor_class(Tensor)


def _holds_tensors(data: Any) -> bool:
    """Returns whether data is nested lists that begin with a tensor."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
        if isinstance(data, Tensor):
            return True
    return False


def _stacked(data: Any) -> Tensor:
    """Stacks nested lists of tensors and numbers to one tensor, without reading values."""
    if isinstance(data, (list, tuple)):
        return stack([_stacked(part) for part in data])
    return data if isinstance(data, Tensor) else Tensor(data)


def realize(*tensors: Tensor) -> None:
    """Computes tensors in one program and leaves them on the device. Does not wait.

    >>> x = kiln.ones(3)
    >>> kiln.realize(x + 1, x * 2)
    """
    _realize.realize(tensors)


def find_tensors(structure: Any) -> List[Tensor]:
    """Returns all tensors in nested lists, tuples and dicts."""
    if isinstance(structure, Tensor):
        return [structure]
    if isinstance(structure, dict):
        structure = structure.values()
    elif not isinstance(structure, (list, tuple)):
        return []
    return [tensor for part in structure for tensor in find_tensors(part)]


__all__ = ["Number", "Tensor", "TraceError", "apply", "operand_node", "realize", "wrap"]
