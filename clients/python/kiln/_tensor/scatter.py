"""Methods of Tensor that read and write at places given by tensors of integers, as in PyTorch."""

import math
from typing import TYPE_CHECKING, Any, Sequence, Union

from kiln._basics.conversion import integer_range
from kiln._basics.dtypes import DType
from kiln._basics.errors import InvalidArgument
from kiln._rules import flag, normalize_axis
from kiln._tensor.assignment import assigned
from kiln._tensor.base import TensorBase
from kiln._tensor.casting import Casting
from kiln._tensor.selection import combined, one_place

if TYPE_CHECKING:
    from kiln.tensor import Tensor

# PyTorch's names of reductions, as modes of the op.
_MODES = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max",
          "amin": "min"}  # fmt: skip


def _mode_of(reduce: str) -> str:
    if reduce not in _MODES:
        raise InvalidArgument(f'reduce "{reduce}"; it must be one of {", ".join(_MODES)}')
    return _MODES[reduce]


def _neutral(mode: str, dtype: DType) -> float:
    """Returns the identity of the mode."""
    if mode in ("add", "mul"):
        return int(mode == "mul")
    if dtype.is_float:
        return -math.inf if mode == "max" else math.inf
    return integer_range(dtype)[mode == "min"]


def gather_along(tensor: "Tensor", dim: int, places: "Tensor") -> "Tensor":
    """Implements PyTorch's gather."""
    axis = normalize_axis(dim, tensor.ndim)
    source = _beside(tensor, axis, places.shape, "gather of")
    place = one_place(places, source.shape[axis], "gather")
    return place.checked(source._op("gather_elements", place.tensor, axis=axis))


def scatter_along(tensor: "Tensor", dim: int, places: "Tensor", values: Union["Tensor", float],
                  mode: str, op: str) -> "Tensor":
    """Implements PyTorch's scatter, scatter_add and scatter_reduce; errors name `op`."""
    if isinstance(values, (bool, int, float)):
        values = tensor.new_full(places.shape, values)
    axis = normalize_axis(dim, tensor.ndim)
    part = _beside(tensor, axis, places.shape, "scatter into")
    if values.ndim != places.ndim or any(
        size < wanted for size, wanted in zip(values.shape, places.shape)
    ):
        raise InvalidArgument(
            f"scatter of values of shape {values.shape} with an index of shape {places.shape}; "
            "no dimension of the values may be smaller")
    fitting = values[tuple(slice(size) for size in places.shape)]
    place = one_place(places, part.shape[axis], op)
    written = place.checked(
        part._op("scatter_elements", place.tensor, fitting, axis=axis, mode=mode))
    if part.shape == tensor.shape:
        return written
    return assigned(tensor, tuple(slice(size) for size in part.shape), written)


def _beside(tensor: "Tensor", axis: int, places: Sequence[int], what: str) -> "Tensor":
    """Returns the part of a tensor with the index's sizes, except along the axis."""
    fits = len(places) == tensor.ndim and all(
        i == axis or size <= tensor.shape[i] for i, size in enumerate(places))
    if not fits:
        raise InvalidArgument(
            f"{what} shape {tensor.shape} with an index of shape {tuple(places)}; both must have "
            f"the same number of dimensions, and only dimension {axis} of the index may be larger")
    return tensor[tuple(
        slice(None) if i == axis else slice(size) for i, size in enumerate(places))]


def put_along(tensor: "Tensor", dim: int, index: "Tensor", values: "Tensor", mode: str,
              op: str) -> "Tensor":
    """Implements PyTorch's index_add, index_copy and index_reduce; errors name `op`."""
    axis = normalize_axis(dim, tensor.ndim)
    if index.ndim > 1:
        raise InvalidArgument(f"an index of shape {index.shape}; it must have one dimension")
    place = one_place(index.reshape((index.numel(),)), tensor.shape[axis], op)
    return place.checked(tensor._op("scatter", place.tensor, values, axis=axis, mode=mode))


class GatherScatter(Casting):
    """Reading and writing at indices.

    An index that is out of range or negative raises IndexError: at once if its value is known to
    this process, otherwise with the next value that is read. Until then it reads zero and writes
    nothing. In index_put, as in a key, negative indices count from the end."""

    __slots__ = ()

    def gather(self, dim: int, index: "Tensor") -> "Tensor":
        """Returns result[i][j] = self[index[i][j]][j] for dim 0, and so on, as in PyTorch.

        >>> kiln.tensor([[1, 2], [3, 4]]).gather(1, kiln.tensor([[1], [0]])).tolist()
        [[2], [3]]
        """
        return gather_along(self._tensor, dim, index)

    def scatter(self, dim: int, index: "Tensor", src: Union["Tensor", float], *,
                reduce: str = "") -> "Tensor":
        """Returns self with self[index[i][j]][j] = src[i][j] for dim 0, and so on.

        The last one of several values for one element remains. A number as src stands for a tensor
        filled with it. index has as many dimensions as self. `reduce`, a name as in
        scatter_reduce(), combines instead of replacing.

        src may be larger than index, and self, except along dim; the surplus is ignored. Raises
        InvalidArgument for shapes that do not fit.

        >>> kiln.zeros(3).scatter(0, kiln.tensor([2, 0]), kiln.tensor([1.0, 5.0])).tolist()
        [5.0, 0.0, 1.0]
        """
        mode = _mode_of(reduce) if reduce else "set"
        return scatter_along(self._tensor, dim, index, src, mode, "scatter")

    def scatter_add(self, dim: int, index: "Tensor", src: "Tensor") -> "Tensor":
        """Returns self with self[index[i][j]][j] += src[i][j] for dim 0, and so on.

        >>> kiln.zeros(2).scatter_add(0, kiln.tensor([1, 1]), kiln.tensor([1.0, 5.0])).tolist()
        [0.0, 6.0]
        """
        return scatter_along(self._tensor, dim, index, src, "add", "scatter_add")

    def scatter_reduce(self, dim: int, index: "Tensor", src: "Tensor", reduce: str, *,
                       include_self: bool = True) -> "Tensor":
        """As scatter, but combines each element with what it receives: sum, prod, amax or amin.

        Without include_self, elements that receive something do not count themselves.

        >>> x, i = kiln.zeros(2), kiln.tensor([1, 1])
        >>> x.scatter_reduce(0, i, kiln.tensor([3.0, 5.0]), "amax").tolist()
        [0.0, 5.0]
        """
        mode, op, into = _mode_of(reduce), "scatter_reduce", self._tensor
        if not flag(include_self, "include_self"):
            into = scatter_along(into, dim, index, _neutral(mode, self.dtype), "set", op)
        return scatter_along(into, dim, index, src, mode, op)

    def index_put(self, indices: Sequence["Tensor"], values: Any,
                  accumulate: bool = False) -> "Tensor":
        """Returns self after self[indices] = values, or += values with accumulate.

        Repeated indices accumulate as well.

        >>> i = kiln.tensor([1, 1])
        >>> kiln.zeros(2).index_put((i,), kiln.tensor([3.0, 5.0]), accumulate=True).tolist()
        [0.0, 8.0]
        """
        x = self._tensor
        if not flag(accumulate, "accumulate"):
            return assigned(x, tuple(indices), values, "index_put")
        counted, rest = x.shape[: len(indices)], x.shape[len(indices) :]
        found = combined(indices, counted, "index_put")
        places = found.tensor
        given = isinstance(values, TensorBase)
        rows = values.cast(self.dtype) if given else x.new_tensor(values)
        rows = rows.expand((*places.shape, *rest))
        written = found.checked(x.reshape((math.prod(counted), *rest))._op(
            "scatter", places.flatten(), rows.reshape((places.numel(), *rest)), axis=0,
            mode="add"))
        return written.reshape(x.shape)

    def index_add(self, dim: int, index: "Tensor", source: "Tensor") -> "Tensor":
        """Returns self with source's i-th entry along dim added to entry index[i].

        >>> kiln.zeros(2, 2).index_add(0, kiln.tensor([1, 1]), kiln.ones(2, 2)).tolist()
        [[0.0, 0.0], [2.0, 2.0]]
        """
        return put_along(self._tensor, dim, index, source, "add", "index_add")

    def index_copy(self, dim: int, index: "Tensor", source: "Tensor") -> "Tensor":
        """Returns self with entry index[i] along dim replaced by source's i-th entry.

        >>> kiln.zeros(3).index_copy(0, kiln.tensor([2]), kiln.ones(1)).tolist()
        [0.0, 0.0, 1.0]
        """
        return put_along(self._tensor, dim, index, source, "set", "index_copy")

    def index_reduce(self, dim: int, index: "Tensor", source: "Tensor", reduce: str) -> "Tensor":
        """As index_add, but combines by prod, amax, amin or sum.

        >>> kiln.ones(2).index_reduce(0, kiln.tensor([1]), kiln.tensor([3.0]), "prod").tolist()
        [1.0, 3.0]
        """
        return put_along(self._tensor, dim, index, source, _mode_of(reduce), "index_reduce")
