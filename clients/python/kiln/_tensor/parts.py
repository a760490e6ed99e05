"""Methods of Tensor that take out parts, or find the places of elements."""

from typing import TYPE_CHECKING, Any, List, Sequence, Tuple, Union

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import numpy_names
from kiln._graph import realize
from kiln._rules import NUMBER, broadcast, normalize_axis, whole
from kiln._tensor.base import constant
from kiln._tensor.selection import combined, one_place
from kiln._tensor.shapes import Shapes

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Parts(Shapes):
    """Methods for parts. For keys such as x[0, 1:] see `state.py`, for gather `scatter.py`."""

    __slots__ = ()

    def narrow(self, dim: int, start: int, length: int) -> "Tensor":
        """Returns `length` elements from `start` on along one dimension.

        >>> kiln.arange(5).narrow(0, 1, 3).tolist()
        [1, 2, 3]
        """
        axis = normalize_axis(dim, self.ndim)
        start, length = whole(start, "start"), whole(length, "length")
        bounds: List[int] = []
        for i, size in enumerate(self.shape):
            bounds += [start, start + length] if i == axis else [0, size]
        return self._op("shrink", bounds=tuple(bounds))

    def select(self, dim: int, index: int) -> "Tensor":
        """Returns the entry at one index of a dimension, without that dimension.

        >>> kiln.tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
        [1, 3]
        """
        axis = normalize_axis(dim, self.ndim)
        return self._tensor[(*[slice(None)] * axis, whole(index, "index"))]

    @numpy_names
    def chunk(self, chunks: int, dim: int = 0) -> List["Tensor"]:
        """Returns up to `chunks` parts along a dimension; the last one may be smaller.

        >>> [part.tolist() for part in kiln.arange(5).chunk(2)]
        [[0, 1, 2], [3, 4]]
        """
        size = self.shape[normalize_axis(dim, self.ndim)]
        if whole(chunks, "chunks") < 1:
            raise InvalidArgument(f"{chunks} chunks; there must be at least one")
        return self.split(max(1, -(-size // chunks)), dim)

    @numpy_names
    def split(self, size: Union[int, Sequence[int]], dim: int = 0) -> List["Tensor"]:
        """Splits a dimension into parts of `size` (the last may be smaller), or of given sizes.

        Raises InvalidArgument if given sizes do not add up to the dimension's.

        >>> [part.tolist() for part in kiln.arange(5).split(2)]
        [[0, 1], [2, 3], [4]]
        """
        total = self.shape[normalize_axis(dim, self.ndim)]
        if isinstance(size, NUMBER):
            each = whole(size, "size")
            if each < 1:
                raise InvalidArgument(f"split into parts of {each}; it must be 1 or more")
            parts = [min(each, total - start) for start in range(0, total, each)]
        else:
            parts = [whole(part, "a size") for part in size]
        if sum(parts) != total:
            raise InvalidArgument(
                f"split of dimension {dim} of shape {self.shape} into {parts}: they add up to "
                f"{sum(parts)}, not {total}")
        result, start = [], 0
        for part in parts:
            result.append(self.narrow(dim, start, part))
            start += part
        return result

    def split_with_sizes(self, parts: Sequence[int], dim: int = 0) -> List["Tensor"]:
        """Returns parts of the given sizes along a dimension.

        >>> [part.shape for part in kiln.zeros(5).split_with_sizes([2, 3])]
        [(2,), (3,)]
        """
        return self.split(parts, dim)

    def tensor_split(self, parts: Union[int, Sequence[int]], dim: int = 0) -> List["Tensor"]:
        """Returns that many parts of nearly equal size, or parts that end at these indices.

        >>> [part.shape for part in kiln.zeros(5).tensor_split(2)]
        [(3,), (2,)]
        """
        size = self.shape[normalize_axis(dim, self.ndim)]
        if isinstance(parts, NUMBER):
            parts = whole(parts, "parts")
            ends = [size * (i + 1) // parts for i in range(parts)]
            extra = size % parts  # the first parts are the larger ones
            ends = [(size // parts) * (i + 1) + min(i + 1, extra) for i in range(parts)]
        else:
            ends = [min(max(end + size if end < 0 else end, 0), size) for end in parts] + [size]
        begins = [0, *ends[:-1]]
        return self.split([max(0, end - begin) for begin, end in zip(begins, ends)], dim)

    @numpy_names
    def unbind(self, dim: int = 0) -> Tuple["Tensor", ...]:
        """Returns the entries along a dimension, each without that dimension.

        >>> [part.tolist() for part in kiln.tensor([[1, 2], [3, 4]]).unbind(1)]
        [[1, 3], [2, 4]]
        """
        axis = normalize_axis(dim, self.ndim)
        before, after = self.shape[:axis], self.shape[axis + 1 :]
        return tuple(self.narrow(axis, i, 1).reshape(before + after)
                     for i in range(self.shape[axis]))

    def unfold(self, dim: int, size: int, step: int) -> "Tensor":
        """Returns windows of `size`, `step` apart, along a dimension, as a new last dimension.

        >>> kiln.arange(5).unfold(0, 3, 2).tolist()
        [[0, 1, 2], [2, 3, 4]]
        """
        return self._op("window", axis=normalize_axis(dim, self.ndim), size=whole(size, "size"),
                        stride=whole(step, "step"), dilation=1)

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> "Tensor":
        """Returns the diagonal of two dimensions as a new last dimension.

        >>> kiln.tensor([[1, 2], [3, 4]]).diagonal().tolist()
        [1, 4]
        """
        return self._op("diagonal", offset=whole(offset, "offset"),
                        axis1=whole(dim1, "dim1"), axis2=whole(dim2, "dim2"))

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
        places = np.nonzero(self._tensor.numpy())
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
