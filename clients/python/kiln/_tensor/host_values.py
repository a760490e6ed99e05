"""Values of tensors in this process: NumPy arrays, Python numbers, text; other libraries."""

import sys
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union

import numpy as np

from kiln._basics.bindings import checked, merged
from kiln._basics.errors import InvalidArgument
from kiln._basics.version import ARRAY_API_VERSIONS
from kiln._graph import node as _node
from kiln._graph import realize as _realize
from kiln._graph.node import Node, mode
from kiln._rules import normalize_axis
from kiln._tensor import text
from kiln._tensor.base import construct, wrap
from kiln._tensor.casting import Casting
from kiln._tensor.constructors import filled
from kiln._tensor.shapes import sizes
from kiln.variables import Variable

if TYPE_CHECKING:
    from kiln.tensor import Tensor


Number = Union[bool, int, float]

# PyTorch's pairs of values and places, by the op of the values: the method that returns both, and
# the one that returns places.
_PAIRS = {"max": ("max", "argmax"), "min": ("min", "argmin"), "sort": ("sort", "argsort")}

_DLPACK_CPU = (1, 0)  # kDLCPU and the device's number


class HostValues(Casting):
    """Reading: computes lazy tensors, waits, and copies values to this process's memory.

    Also makes tensors of values here, in this tensor's dtype.
    """

    __slots__ = ()

    @property
    def is_realized(self) -> bool:
        """Whether its value is computed, or is being computed without further calls.

        >>> (kiln.tensor([1.0, 4.0]) + 1).is_realized
        False
        """
        return self._node.is_value

    def realize(self) -> "Tensor":
        """Computes the value, and other lazy tensors that are still referenced; returns self.

        Leaves the values on the device and does not wait for them.

        >>> (kiln.tensor([1.0, 4.0]) + 1).realize().tolist()
        [2.0, 5.0]
        """
        _realize.realize([self])
        return self._tensor

    def numpy(self) -> "np.ndarray[Any, Any]":
        """Returns the value as a new NumPy array (bfloat16 and float8 as float32). Waits for it.

        Raises TraceError within kiln.jit, where there are no values.

        >>> (kiln.tensor([1, 2]) + 1).numpy()
        array([2, 3])
        """
        return _realize.read(self._node, self)

    def with_variable(self, dim: int, variable: Variable) -> "Tensor":
        """Returns the same value with a variable as one size, bound to the present size.

        Everything made from it holds for all sizes within the variable's bounds: under kiln.jit
        another size is neither traced nor compiled again. No gradient flows through it. Raises
        InvalidArgument if the size is outside of the bounds.

        >>> n = kiln.Variable("n", 1, 8)
        >>> x = kiln.tensor([1, 2, 3]).with_variable(0, n)
        >>> x.shape, (x + x).tolist()
        ((n,), [2, 4, 6])
        """
        axis = normalize_axis(dim, self.ndim)
        size = checked(variable.symbol, self.shape[axis])
        self.realize()
        shape = (*self.shape[:axis], variable, *self.shape[axis + 1 :])
        node = self._node
        return wrap(_node.value(_realize.buffer_of(node), _node.Reshaped(
            shape, merged(node.bindings, {variable.symbol: size}), node.dialect)))

    def item(self) -> Any:
        """Returns the only element as a Python number.

        Raises InvalidArgument if there are more or none.

        >>> kiln.tensor([[2.5]]).item()
        2.5
        """
        return self._number("item()")

    def _number(self, what: str) -> Any:
        if self.numel() != 1:
            raise InvalidArgument(
                f"{what} of a tensor of shape {self.shape}; it must have one element")
        _realize.refuse_in_trace(what)
        return self.numpy().reshape(()).item()

    def tolist(self) -> Any:
        """Returns the value as nested lists of Python numbers.

        >>> kiln.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return self.numpy().tolist()

    def __bool__(self) -> bool:
        return bool(self._number("bool() (which if, while, and, or and not call)"))

    def __int__(self) -> int:
        return int(self._number("int()"))

    def __float__(self) -> float:
        return float(self._number("float()"))

    def __complex__(self) -> complex:
        return complex(self._number("complex()"))

    def __index__(self) -> int:
        if not self.dtype.is_integer:
            raise TypeError(f"a tensor of {self.dtype.name} is not an index; cast it to an integer")
        return int(self._number("the use as an index"))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    # Otherwise a type checker would accept every name as an attribute.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            advice = _remedy(self._node) if name in ("values", "indices") else ""
            raise AttributeError(
                f"a tensor has no attribute {name!r}{f': {advice}' * bool(advice)}")

    # Text.

    def __repr__(self) -> str:
        return text.safe_representation(self, mode.trace is None and self.is_realized)

    def __str__(self) -> str:
        return text.representation(self, mode.trace is None)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.numpy(), self.dtype.name, self._requires_grad)

    # Other libraries.

    def __array_namespace__(self, *, api_version: Optional[str] = None) -> Any:
        """Returns the namespace of the Python array API standard: `kiln` itself."""
        if api_version is not None and api_version not in ARRAY_API_VERSIONS:
            raise InvalidArgument(
                f"unknown array API version {api_version!r}; use one of "
                f"{', '.join(ARRAY_API_VERSIONS)}")
        # Not imported: `kiln` itself imports this module.
        return sys.modules["kiln"]

    def __array__(self, dtype: Any = None,
                  copy: Optional[bool] = None) -> "np.ndarray[Any, Any]":
        if copy is False:
            raise ValueError("the values of a tensor come from the daemon, so they are always "
                             "copied")
        array = self.numpy()
        if dtype is not None:
            array = array.astype(dtype, copy=False)
        return array

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None,
                   copy: Optional[bool] = None) -> Any:
        """Returns a DLPack capsule of a copy in this process's memory, for any device.

        Raises BufferError for copy=False, for a stream, for other devices than the CPU, and for
        dtypes that NumPy lacks.
        """
        if copy is False:
            raise BufferError("the values of a tensor come from the daemon, so they are always "
                              "copied")
        if stream is not None:
            raise BufferError("a copy on the CPU has no streams; leave stream at None")
        if dl_device is not None and tuple(dl_device) != _DLPACK_CPU:
            raise BufferError(f"DLPack device {dl_device}; a tensor's copy is on the CPU, (1, 0)")
        if self.dtype.numpy is None:
            raise BufferError(f"no DLPack form of {self.dtype.name} here; cast it to float32 first")
        array = self.numpy()
        # NumPy accepts `max_version` from 2.1 on.
        if max_version is None or not _takes_versions():
            return array.__dlpack__()
        return array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> Tuple[int, int]:
        """Returns the target of __dlpack__: the CPU, (1, 0)."""
        return _DLPACK_CPU

    # Further tensors.

    def new_zeros(self, *shape: Any) -> "Tensor":
        """Returns zeros in this tensor's dtype.

        >>> kiln.tensor([7, -7]).new_zeros(2).tolist()
        [0, 0]
        """
        return filled(sizes(shape), 0, self.dtype)

    def new_ones(self, *shape: Any) -> "Tensor":
        """Returns ones in this tensor's dtype.

        >>> kiln.tensor([7, -7]).new_ones(2).tolist()
        [1, 1]
        """
        return filled(sizes(shape), 1, self.dtype)

    def new_full(self, shape: Sequence[int], value: Any) -> "Tensor":
        """Returns a tensor filled with one number, in this tensor's dtype.

        >>> kiln.tensor([7, -7]).new_full((2,), 5).tolist()
        [5, 5]
        """
        return filled(sizes((tuple(shape),)), value, self.dtype)

    def new_tensor(self, data: Any) -> "Tensor":
        """Returns a tensor of data in this tensor's dtype.

        >>> kiln.tensor([7, -7]).new_tensor([1, 2]).dtype
        kiln.int64
        """
        return construct(data, self.dtype)


def _rebuild(kind: Any, array: "np.ndarray[Any, Any]", dtype: str, requires_grad: bool) -> Any:
    tensor = construct(array, dtype)
    if kind is not type(tensor):
        return kind(tensor, requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def _remedy(node: Node) -> str:
    """Returns the replacement for `.values` and `.indices`; "" if no pair is expected."""
    if node.op not in _PAIRS or not node.shape:
        return ""
    both, places = _PAIRS[node.op]
    return f"these are the values alone; x.{both}(dim) gives both, x.{places}(dim) the places"


def _takes_versions() -> bool:
    return tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 1)
