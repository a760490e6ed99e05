"""The tensor: a name for a node of the lazy graph, or for a value on the device."""

import weakref
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from kiln import _convert, _dtypes, _node, _realize
from kiln._arithmetic import Arithmetic
from kiln._dtypes import DType
from kiln._errors import InvalidArgument, TraceError
from kiln._indexing import index
from kiln._movement import Movement
from kiln._node import Node, make, mode
from kiln._reductions import Reductions

Shape = Tuple[int, ...]
Number = Union[bool, int, float]


class Tensor(Arithmetic, Reductions, Movement):
    """An n-dimensional array that lives on the daemon's device.

    Lazy: an operation makes a node in this process and returns at once; its shape and dtype are
    known, its value is not. `numpy()`, `item()`, `tolist()` and printing a realised tensor read
    values; `realize()` computes and leaves the result on the device.
    """

    __slots__ = ("__weakref__", "_grad", "_node", "_requires_grad")
    # NumPy arrays leave arithmetic with a Tensor to the Tensor.
    __array_ufunc__ = None

    def __init__(self, data: Any, dtype: Any = None, requires_grad: bool = False) -> None:
        self._grad: Optional[Tensor] = None
        self._requires_grad = False
        if isinstance(data, Tensor):
            wanted = data.dtype if dtype is None else _dtypes.as_dtype(dtype)
            self._node = data.detach().cast(wanted)._node
        else:
            array, exact = _convert.to_array(data, dtype)
            self._node = _node.host_value(array, exact)
            _realize.created(self._node, data)
        if requires_grad:
            self.requires_grad_()

    # What it is.

    @property
    def shape(self) -> Shape:
        """Sizes, outermost dimension first."""
        return self._node.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._node.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._node.shape)

    @property
    def is_realized(self) -> bool:
        """Whether its value has been computed, or is being computed without further calls."""
        return self._node.is_value

    def size(self, dim: Optional[int] = None) -> Any:
        """The shape, or the size of one dimension."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """Number of dimensions."""
        return self.ndim

    def numel(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the value."""
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Whether the dtype is a float."""
        return self.dtype.is_float

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a scalar tensor")
        return self.shape[0]

    def __repr__(self) -> str:
        grad = ", requires_grad=True" if self._requires_grad else ""
        if mode.trace is None and self.is_realized:
            with np.printoptions(threshold=60, precision=4):
                values = np.array2string(self.numpy(), separator=", ", prefix="tensor(")
            return f"tensor({values}, dtype={self.dtype.name}{grad})"
        return f"tensor(lazy, shape={self.shape}, dtype={self.dtype.name}{grad})"

    # Values.

    def realize(self) -> "Tensor":
        """Computes the value and leaves it on the device. Does not wait for it."""
        _realize.realize([self])
        return self

    def numpy(self) -> np.ndarray:
        """The value as a NumPy array (bfloat16 and float8 as float32). Waits for it."""
        return _realize.read(self._node, self)

    def item(self) -> Number:
        """The only element, as a Python number."""
        if self.numel() != 1:
            raise InvalidArgument(
                f"item() of a tensor of shape {self.shape}; it must have one element")
        return self.numpy().reshape(()).item()

    def tolist(self) -> Any:
        """The value as nested lists of Python numbers."""
        return self.numpy().tolist()

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.dtype.is_float:
            raise TypeError(f"a tensor of {self.dtype.name} is no index")
        return int(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    # State.

    def assign(self, value: Any) -> "Tensor":
        """This tensor is `value` from here on; what was built from it before keeps the old value.

        In a kiln.jit function the device's buffer is replaced, by the same message that runs the
        function. Shape and dtype stay; a Python number fills.
        """
        if isinstance(value, Tensor):
            node = value._node
        elif np.isscalar(value):
            node = make("expand", (_node.scalar(value, self.dtype),), (("shape", self.shape),))
        else:
            node = Tensor(value, self.dtype)._node
        if node.shape != self.shape or node.dtype is not self.dtype:
            raise InvalidArgument(
                f"cannot assign {node.dtype.name} of shape {node.shape} to {self.dtype.name} of "
                f"shape {self.shape}; reshape or cast it first")
        if node.tracked or self._requires_grad:
            node = _node.alias(node)
        self._node = node
        self._mark_leaf()
        _realize.assigned(self)
        return self

    copy_ = assign

    def zero_(self) -> "Tensor":
        """Fills with zeros."""
        return self.assign(0)

    def fill_(self, value: Number) -> "Tensor":
        """Fills with a number."""
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
            _realize.assigned(self)
            return self
        return self.assign(result)

    # Gradients.

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through this tensor."""
        return self._requires_grad or self._node.tracked

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    @property
    def is_leaf(self) -> bool:
        """Whether backward() sets its grad (or it needs none)."""
        return self._requires_grad or not self._node.tracked

    @property
    def grad(self) -> Optional["Tensor"]:
        """The gradient that backward() added up here; None before."""
        return self._grad

    @grad.setter
    def grad(self, gradient: Optional["Tensor"]) -> None:
        if mode.trace is not None:
            mode.trace.grad_set(self)
        self._grad = gradient

    def requires_grad_(self, wanted: bool = True) -> "Tensor":
        """Makes this a tensor that backward() finds a gradient for."""
        if wanted and not self.dtype.is_float:
            raise InvalidArgument(
                f"only floats have gradients; this tensor is {self.dtype.name}")
        if wanted == self._requires_grad:
            return self
        if not self.is_leaf:
            raise InvalidArgument("this tensor is a result; detach() it first")
        self._node = _node.alias(self._node)
        self._requires_grad = wanted
        self._mark_leaf()
        return self

    def _mark_leaf(self) -> None:
        if self._requires_grad:
            self._node.leaf = weakref.ref(self)
            self._node.tracked = True

    def detach(self) -> "Tensor":
        """The same value; no gradient flows through it."""
        node = self._node
        if node.op == "input" and not node.tracked:
            return wrap(node)
        return wrap(_node.alias(node))

    def backward(self, gradient: Optional["Tensor"] = None) -> None:
        """Adds to the grad of every leaf under this scalar (or weighted by `gradient`). Lazy."""
        from kiln.autograd import backward

        backward(self, gradient)

    def __deepcopy__(self, memo: Any) -> "Tensor":
        copied = self.detach().clone()
        if self._requires_grad:
            copied.requires_grad_()
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> Any:
        return _rebuild, (self.numpy(), self.dtype.name, self._requires_grad)

    # Dtypes and copies.

    def cast(self, dtype: Any) -> "Tensor":
        """The same values in another dtype."""
        wanted = _dtypes.as_dtype(dtype)
        return self if wanted is self.dtype else wrap(make("cast", (self._node,), (), wanted))

    to = type = astype = cast

    def bitcast(self, dtype: Any) -> "Tensor":
        """The same bits as another dtype of the same size."""
        return wrap(make("bitcast", (self._node,), (), _dtypes.as_dtype(dtype)))

    def float(self) -> "Tensor":
        """As float32."""
        return self.cast(_dtypes.float32)

    def double(self) -> "Tensor":
        """As float64."""
        return self.cast(_dtypes.float64)

    def half(self) -> "Tensor":
        """As float16."""
        return self.cast(_dtypes.float16)

    def int(self) -> "Tensor":
        """As int32."""
        return self.cast(_dtypes.int32)

    def long(self) -> "Tensor":
        """As int64."""
        return self.cast(_dtypes.int64)

    def bool(self) -> "Tensor":
        """As bool."""
        return self.cast(_dtypes.bool_)

    def contiguous(self) -> "Tensor":
        """The same value, computed and stored before what uses it."""
        return self._op("contiguous")

    clone = contiguous

    def __getitem__(self, key: Any) -> "Tensor":
        return index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError(
            "tensors have no item assignment; use kiln.where or t.assign with a whole tensor")

    def __iter__(self) -> Any:
        if not self.shape:
            raise TypeError("a scalar tensor cannot be iterated")
        return (self[i] for i in range(self.shape[0]))

    def __hash__(self) -> Any:
        return id(self)

    # For the parts of the class that stand in other files.

    def _op(self, name: str, *operands: Any, **attributes: Any) -> "Tensor":
        mine = self._node
        nodes = (mine, *[operand_node(operand, mine) for operand in operands])
        return wrap(make(name, nodes, tuple(attributes.items())))

    def _reflected(self, name: str, other: Any) -> "Tensor":
        return wrap(make(name, (operand_node(other, self._node), self._node)))


def wrap(node: Node) -> Tensor:
    """A tensor for a node."""
    tensor = Tensor.__new__(Tensor)
    tensor._node = node
    tensor._grad = None
    tensor._requires_grad = False
    return tensor


def operand_node(value: Any, like: Node) -> Node:
    """`value` as a node; a Python number takes the dtype of `like` where that can hold it."""
    if isinstance(value, Tensor):
        return value._node
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return _node.scalar(value, _convert.weak_dtype(value, like.dtype))
    return Tensor(value)._node


def apply(name: str, operands: Sequence[Any], dtype: Optional[DType] = None,
          **attributes: Any) -> Tensor:
    """The op `name` of operands of which at least one is a tensor."""
    first = next((operand for operand in operands if isinstance(operand, Tensor)), None)
    if first is None:
        first = Tensor(operands[0])
        operands = [first, *operands[1:]]
    nodes = tuple([operand_node(operand, first._node) for operand in operands])
    return wrap(make(name, nodes, tuple(attributes.items()), dtype))


def realize(*tensors: Tensor) -> None:
    """Computes tensors in one program and leaves them on the device."""
    _realize.realize(tensors)


def _rebuild(array: np.ndarray, dtype: str, requires_grad: bool) -> Tensor:
    return Tensor(array, dtype, requires_grad)


def find_tensors(structure: Any) -> List[Tensor]:
    """All tensors in nested lists, tuples and dicts."""
    if isinstance(structure, Tensor):
        return [structure]
    if isinstance(structure, dict):
        structure = structure.values()
    elif not isinstance(structure, (list, tuple)):
        return []
    return [tensor for part in structure for tensor in find_tensors(part)]


__all__ = ["Tensor", "TraceError", "apply", "realize", "wrap"]
