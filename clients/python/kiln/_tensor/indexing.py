"""tensor[key], as in NumPy, and reading and writing at indices."""

import math
from typing import TYPE_CHECKING, Any, Iterator, List, Sequence, Union

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln._graph import realize
from kiln._rules import broadcast, flag, normalize_axis, whole
from kiln._tensor.assignment import assigned
from kiln._tensor.base import TensorBase, constant
from kiln._tensor.index_parser import is_mask, parse, without_masks
from kiln._tensor.reductions import Reductions
from kiln._tensor.scatter import gather_along, mode_of, neutral, put_along, scatter_along
from kiln._tensor.selection import Selection, combined, one_place

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Indexing(Reductions):
    """Items, and entries at indices.

    An index that is out of range or negative raises IndexError: at once if its value is known to
    this process, otherwise with the next value that is read. Until then it reads zero and writes
    nothing. In keys and in index_put negative indices count from the end.
    """

    __slots__ = ()

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

    def __iter__(self) -> "Iterator[Tensor]":
        if not self.shape:
            raise TypeError("a tensor without dimensions cannot be iterated")
        # Not `yield`, which would delay the TypeError until the first element is asked for.
        return (self[i] for i in range(self.shape[0]))

    def select(self, dim: int, index: int) -> "Tensor":
        """Returns the entry at one index of a dimension, without that dimension.

        >>> kiln.tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
        [1, 3]
        """
        axis = normalize_axis(dim, self.ndim)
        return self[(*[slice(None)] * axis, whole(index, "index"))]

    def index_select(self, dim: int, index: "Tensor") -> "Tensor":
        """Returns the entries at `index`, a vector of integers, along a dimension.

        An index that is out of range or negative raises IndexError: at once if its value is known
        in this process, otherwise with the next value that is read.

        >>> kiln.tensor([[1, 2], [3, 4]]).index_select(0, kiln.tensor([1])).tolist()
        [[3, 4]]
        """
        axis = normalize_axis(dim, self.ndim)
        if index.ndim > 1:
            raise InvalidArgument(
                f"index_select with an index of shape {index.shape}; it must have one dimension")
        place = one_place(index.reshape((index.numel(),)), self.shape[axis], "index_select")
        return place.checked(self._op("gather", place.tensor, axis=axis))

    def take_along_dim(self, index: "Tensor", dim: int) -> "Tensor":
        """Returns the entries at indices along a dimension; the other dimensions broadcast.
        Negative indices count from the end.

        >>> kiln.tensor([[1, 2], [3, 4]]).take_along_dim(kiln.tensor([[1], [0]]), 1).tolist()
        [[2], [3]]
        """
        axis = normalize_axis(dim, self.ndim)
        if index.ndim != self.ndim:
            raise InvalidArgument(
                f"take_along_axis of shapes {self.shape} and {index.shape}; both must have the "
                "same number of dimensions")
        wide = list(index.shape)
        for i, size in enumerate(self.shape):
            if i != axis and wide[i] == 1:
                wide[i] = size
        full = [size if i == axis else wide[i] for i, size in enumerate(self.shape)]
        place = combined([index.expand(wide)], [full[axis]], "take_along_dim")
        return place.checked(self.expand(full)._op("gather_elements", place.tensor, axis=axis))

    def masked_select(self, mask: "Tensor") -> "Tensor":
        """Returns the elements where the mask is true, as a vector; reads the mask.

        >>> kiln.tensor([[1, 2], [3, 4]]).masked_select(kiln.tensor([[1, 2], [3, 4]]) > 2).tolist()
        [3, 4]
        """
        shape = broadcast([self.shape, mask.shape])
        return self.expand(shape)[mask.expand(shape)]

    # These read the values, which determine the result's shape.

    def nonzero(self, as_tuple: bool = False) -> Any:
        """Returns the indices of elements that are not 0: rows, or a vector for each dimension.

        Their number depends on the values, which are read; so it raises TraceError within kiln.jit.

        >>> kiln.tensor([[0, 1], [1, 1]]).nonzero().tolist()
        [[0, 1], [1, 0], [1, 1]]
        """
        realize.refuse_in_trace("nonzero()")
        places = np.nonzero(self.numpy())
        if as_tuple:
            return tuple(constant(part) for part in places)
        return constant(np.stack(places, 1) if self.ndim else np.zeros((1, 0), np.int64))

    def argwhere(self) -> "Tensor":
        """Returns the indices of elements that are not 0, a row for each; see nonzero.

        >>> kiln.tensor([0, 1, 1]).argwhere().tolist()
        [[1], [2]]
        """
        found: Tensor = self.nonzero()
        return found

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
        mode = mode_of(reduce) if reduce else "set"
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
        mode, op, into = mode_of(reduce), "scatter_reduce", self._tensor
        if not flag(include_self, "include_self"):
            into = scatter_along(into, dim, index, neutral(mode, self.dtype), "set", op)
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
        return put_along(self._tensor, dim, index, source, mode_of(reduce), "index_reduce")


def index(tensor: "Tensor", key: Any, op: str = "tensor[...]") -> "Tensor":
    """Returns tensor[key]; see Tensor.__getitem__. Errors name `op`."""
    parts, apart = parse(tensor.shape, key)
    new: List[int] = []
    if any(is_mask(part) for part in parts):
        parts, new = without_masks(parts)
    return read(tensor, Selection(tensor.shape, parts, new, apart), op)


def read(tensor: "Tensor", selection: Selection, op: str) -> "Tensor":
    """Returns the selected elements of a tensor."""
    source = selection.source(tensor)
    if not selection.indices:
        return source
    places = selection.places(op)
    result = places.checked(source._op("gather", places.tensor, axis=selection.axis))
    return result.reshape(selection.shape)
