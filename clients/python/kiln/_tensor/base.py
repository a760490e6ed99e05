"""The first class in the line that ends with Tensor: its node, shape and dtype; and results."""

from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple

import numpy as np

from kiln._basics import conversion, dtypes
from kiln._basics.dtypes import DType
from kiln._graph import live
from kiln._graph import node as _node
from kiln._graph.node import Node, make
from kiln.variables import Dim

if TYPE_CHECKING:
    from kiln.tensor import Tensor

Shape = Tuple[int, ...]


class Size(int):
    """A number of elements. Calling it returns the shape that has them."""

    _shape: Shape

    def __new__(cls, count: int, shape: Shape) -> "Size":
        made = super().__new__(cls, count)
        made._shape = shape
        return made

    def __call__(self, dim: Optional[int] = None) -> Any:
        """Returns the shape, or the size of one dimension."""
        return self._shape if dim is None else self._shape[dim]


class SymbolicSize(Dim):
    """A Size for shapes with variables."""

    __slots__ = ("_shape",)

    def __init__(self, count: Dim, shape: Shape) -> None:
        super().__init__(count._terms)
        self._shape = shape

    def __call__(self, dim: Optional[int] = None) -> Any:
        """Returns the shape, or the size of one dimension."""
        return self._shape if dim is None else self._shape[dim]


class TensorBase:
    """A name for a node: the first in the line of classes that ends with `Tensor`.

    Each has a file of its own and uses only methods of itself and those before it.
    """

    __slots__ = ("__weakref__", "_grad", "_node", "_requires_grad", "_selected")

    _node: Node
    _grad: Optional["Tensor"]
    _requires_grad: bool
    # Whether indexing returned it: a change of it would have no visible effect.
    _selected: bool

    # Properties.

    @property
    def shape(self) -> Shape:
        """Sizes, outermost dimension first.

        >>> kiln.tensor([[1, 2], [3, 4]]).shape
        (2, 2)
        """
        return self._node.shape

    @property
    def dtype(self) -> DType:
        """Element type.

        >>> kiln.tensor([1.0, 4.0]).dtype
        kiln.float32
        """
        return self._node.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions.

        >>> kiln.tensor([[1, 2], [3, 4]]).ndim
        2
        """
        return len(self._node.shape)

    def dim(self) -> int:
        """Number of dimensions.

        >>> kiln.tensor([[1, 2], [3, 4]]).dim()
        2
        """
        return len(self._node.shape)

    def numel(self) -> int:
        """Number of elements.

        >>> kiln.tensor([[1, 2], [3, 4]]).numel()
        4
        """
        count = 1
        for size in self._node.shape:
            count *= size
        return count

    @property
    def size(self) -> Any:
        """Number of elements, as in the array API; when called, the shape or the size of one
        dimension, as in PyTorch.

        >>> x = kiln.zeros(2, 3)
        >>> x.size, x.size(), x.size(1)
        (6, (2, 3), 3)
        """
        count = self.numel()
        if isinstance(count, Dim):
            return SymbolicSize(count, self._node.shape)
        return Size(count, self._node.shape)

    def element_size(self) -> int:
        """Bytes of one element.

        >>> kiln.tensor([1.0, 4.0]).element_size()
        4
        """
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the value.

        >>> kiln.tensor([1.0, 4.0]).nbytes
        8
        """
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Returns whether the dtype is a float.

        >>> kiln.tensor([1.0, 4.0]).is_floating_point()
        True
        """
        return self.dtype.is_float

    def is_complex(self) -> bool:
        """Returns False: there are no complex dtypes.

        >>> kiln.tensor([1.0, 4.0]).is_complex()
        False
        """
        return False

    def is_signed(self) -> bool:
        """Returns whether the dtype has negative numbers.

        >>> kiln.tensor([[1, 2], [3, 4]]).is_signed()
        True
        """
        return self.dtype.is_signed or self.dtype.is_float

    nelement = numel
    ndimension = dim

    # Making further tensors.

    @property
    def _tensor(self) -> "Tensor":
        """Returns self with the type of the full class."""
        return self  # type: ignore[return-value]

    def _alias(self) -> "Tensor":
        """Returns another tensor of the same value; changing one does not change the other."""
        return wrap(self._node)

    def _op(self, name: str, *operands: Any, **attributes: Any) -> "Tensor":
        mine = self._node
        if operands:
            nodes: Tuple[Node, ...] = (
                mine, *[operand_node(operand, mine, name) for operand in operands])
        else:
            nodes = (mine,)
        return wrap(make(name, nodes, tuple(attributes.items())))

    def _reflected(self, name: str, other: Any) -> "Tensor":
        return wrap(make(name, (operand_node(other, self._node, name), self._node)))

    def contiguous(self) -> "Tensor":
        """Returns the same value, computed and stored before it is used.

        >>> kiln.tensor([[1, 2], [3, 4]]).T.contiguous().tolist()
        [[1, 3], [2, 4]]
        """
        return self._op("contiguous")

    def clone(self) -> "Tensor":
        """Returns a copy, through which gradients flow.

        >>> kiln.tensor([1.0, 4.0]).clone().tolist()
        [1.0, 4.0]
        """
        return self._op("contiguous")


# The class of results, set by register_tensor_class, since it derives from this file's class.
_classes: Any = {}


def register_tensor_class(tensor_class: Any) -> None:
    """Sets the class of results. Called once."""
    _classes["tensor"] = tensor_class


def wrap(node: Node) -> "Tensor":
    """Returns a tensor for a node."""
    dialect = node.dialect
    tensor_class = _classes["tensor"] if dialect is None else dialect.tensor_class
    # Without __init__, which takes data.
    tensor: Tensor = tensor_class.__new__(tensor_class)
    tensor._node = node
    tensor._grad = None
    tensor._requires_grad = False
    tensor._selected = False
    live.note_made(tensor)
    return tensor


def construct(data: Any, dtype: Any = None) -> "Tensor":
    """Returns Tensor(data, dtype), for the base classes of Tensor."""
    tensor: Tensor = _classes["tensor"](data, dtype)
    return tensor


def tensor_of(value: Any) -> "Tensor":
    """Returns `value` itself, or as a tensor."""
    return value._tensor if isinstance(value, TensorBase) else construct(value)


def constant(array: np.ndarray) -> "Tensor":
    """Returns a tensor of an array that nothing else references; within kiln.jit, a constant."""
    array = np.asarray(array, order="C")
    node = _node.host_value(array, dtypes.as_dtype(array.dtype))
    if _node.mode.trace is not None:
        _node.mode.trace.created(node)
    return wrap(node)


def weak_or_tensor(value: Any) -> Any:
    """Returns `value` as an operand: a tensor, or a Python number, whose dtype is weak."""
    if isinstance(value, np.generic):
        # NumPy's scalars have weak dtypes like Python's numbers.
        value = value.item()
    return value if isinstance(value, (bool, int, float, Dim)) else tensor_of(value)


def operand_node(value: Any, like: Node, op: str = "") -> Node:
    """Returns `value` as an op's node; a Python number takes the dtype of `like` if that can hold
    it.
    """
    if isinstance(value, TensorBase):
        return value._node
    value = weak_or_tensor(value)
    if isinstance(value, (bool, int, float)):
        dtype = conversion.weak_dtype(value, like.dtype)
        if like.dialect is not None:
            value = like.dialect.number(value, dtype, op)
            dtype = conversion.weak_dtype(value, dtype)
        return _node.scalar(value, dtype)
    if isinstance(value, Dim):
        return _node.scalar(value, conversion.weak_dtype(value.high, like.dtype))
    node: Node = value._node
    return node


def apply(name: str, operands: Sequence[Any], dtype: Optional[DType] = None,
          **attributes: Any) -> "Tensor":
    """Returns the op `name` of operands of which at least one is a tensor.

    A Python number takes the dtype of the first tensor, except a special operand such as the
    condition of `where`.
    """
    op = _node.TABLE[name]
    tensors = [(op.is_special(place), operand) for place, operand in enumerate(operands)
               if isinstance(operand, TensorBase)]
    first = next((tensor for special, tensor in tensors if not special), None)
    if first is None and tensors:
        first = tensors[0][1]
    if first is None:
        made = construct(operands[0])
        first, operands = made, [made, *operands[1:]]
    like = first._node
    nodes = tuple([operand_node(operand, like, name) for operand in operands])
    return wrap(make(name, nodes, tuple(attributes.items()), dtype))
