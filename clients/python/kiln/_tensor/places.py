"""Methods of Tensor that are short for movements, and those that find places."""

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Union

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln._graph import realize
from kiln._rules import normalize_axis
from kiln._tensor.movement import Movement, sizes

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Places(Movement):
    """All of it in terms of other methods and functions."""

    __slots__ = ()

    # Shapes.

    def ravel(self) -> "Tensor":
        """All in one dimension.

        >>> kiln.tensor([[1, 2], [3, 4]]).ravel().tolist()
        [1, 2, 3, 4]
        """
        return self.reshape(-1) if self.numel() else self.reshape(0)

    def t(self) -> "Tensor":
        """A matrix transposed; a vector or scalar itself.

        >>> kiln.tensor([[1, 2], [3, 4]]).t().tolist()
        [[1, 3], [2, 4]]
        """
        if self.ndim > 2:
            raise InvalidArgument(f"t() of shape {self.shape}; mT turns the last two dimensions")
        return self.T

    def view_as(self, other: "Tensor") -> "Tensor":
        """In another tensor's shape.

        >>> kiln.tensor([[1, 2], [3, 4]]).view_as(kiln.zeros(4)).tolist()
        [1, 2, 3, 4]
        """
        return self.reshape(other.shape)

    reshape_as = view_as

    def select(self, dim: int, index: int) -> "Tensor":
        """One place along a dimension, without it.

        >>> kiln.tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
        [1, 3]
        """
        axis = normalize_axis(dim, self.ndim)
        return self._tensor[(*[slice(None)] * axis, index)]

    def moveaxis(self, source: Any, destination: Any) -> "Tensor":
        """Dimensions moved to other places.

        >>> kiln.zeros(2, 3, 4).moveaxis(0, -1).shape
        (3, 4, 2)
        """
        from kiln._array_api.manipulation import moveaxis

        return moveaxis(self._tensor, source, destination)

    movedim = moveaxis

    def tile(self, *repeats: Any) -> "Tensor":
        """Copies side by side, as NumPy's tile.

        >>> kiln.tensor([1, 2]).tile(2).tolist()
        [1, 2, 1, 2]
        """
        from kiln._array_api.manipulation import tile

        return tile(self._tensor, sizes(repeats))

    def roll(self, shifts: Any, dims: Any = None) -> "Tensor":
        """Elements moved along dimensions, round the end; without any, of the flat tensor.

        >>> kiln.tensor([1, 2, 3]).roll(1).tolist()
        [3, 1, 2]
        """
        from kiln._array_api.manipulation import roll

        return roll(self._tensor, shifts, axis=dims)

    def repeat_interleave(self, repeats: Any, dim: Optional[int] = None) -> "Tensor":
        """Each element so many times, along a dimension or flat.

        >>> kiln.tensor([1, 2]).repeat_interleave(2).tolist()
        [1, 1, 2, 2]
        """
        from kiln._array_api.manipulation import repeat

        return repeat(self._tensor, repeats, axis=dim)

    def split_with_sizes(self, parts: Sequence[int], dim: int = 0) -> List["Tensor"]:
        """Parts of the given sizes along a dimension.

        >>> [part.shape for part in kiln.zeros(5).split_with_sizes([2, 3])]
        [(2,), (3,)]
        """
        return self.split(parts, dim)

    def tensor_split(self, parts: Union[int, Sequence[int]], dim: int = 0) -> List["Tensor"]:
        """So many parts, sizes as equal as can be, or parts that end at these places.

        >>> [part.shape for part in kiln.zeros(5).tensor_split(2)]
        [(3,), (2,)]
        """
        size = self.shape[normalize_axis(dim, self.ndim)]
        if isinstance(parts, int):
            ends = [size * (i + 1) // parts for i in range(parts)]
            extra = size % parts  # the first ones are the larger ones
            ends = [(size // parts) * (i + 1) + min(i + 1, extra) for i in range(parts)]
        else:
            ends = [min(max(end + size if end < 0 else end, 0), size) for end in parts] + [size]
        begins = [0, *ends[:-1]]
        return self.split([max(0, end - begin) for begin, end in zip(begins, ends)], dim)

    def unfold(self, dim: int, size: int, step: int) -> "Tensor":
        """Windows of `size`, `step` apart, along a dimension; they lie in a new last one.

        >>> kiln.arange(5).unfold(0, 3, 2).tolist()
        [[0, 1, 2], [2, 3, 4]]
        """
        return self._op("window", axis=normalize_axis(dim, self.ndim), size=size, stride=step,
                        dilation=1)

    # Places. Those that give a shape that depends on values read them.

    def nonzero(self, as_tuple: bool = False) -> Any:
        """The places of elements that are not 0: a row for each, or a vector for each dimension.

        How many there are depends on the values, so they are read; a TraceError within kiln.jit.

        >>> kiln.tensor([[0, 1], [1, 1]]).nonzero().tolist()
        [[0, 1], [1, 0], [1, 1]]
        """
        realize.refuse_in_trace("nonzero()")
        from kiln._tensor.base import constant

        places = np.nonzero(self._tensor.numpy())
        if as_tuple:
            return tuple(constant(part) for part in places)
        return constant(np.stack(places, 1) if self.ndim else np.zeros((1, 0), np.int64))

    def argwhere(self) -> "Tensor":
        """The places of elements that are not 0, a row for each; see nonzero.

        >>> kiln.tensor([0, 1, 1]).argwhere().tolist()
        [[1], [2]]
        """
        found: Tensor = self.nonzero()
        return found

    def masked_select(self, mask: "Tensor") -> "Tensor":
        """The elements where the mask is true, flat; reads the mask.

        >>> kiln.tensor([[1, 2], [3, 4]]).masked_select(kiln.tensor([[1, 2], [3, 4]]) > 2).tolist()
        [3, 4]
        """
        from kiln import _rules

        shape = _rules.broadcast([self.shape, mask.shape])
        return self.expand(shape)[mask.expand(shape)]

    def unique(self, return_inverse: bool = False, return_counts: bool = False) -> Any:
        """The distinct values, sorted, and if asked for which of them each element is and how often
        each occurs; reads the values.

        >>> kiln.tensor([2, 1, 2]).unique().tolist()
        [1, 2]
        """
        from kiln._array_api.sets import unique_all

        found = unique_all(self._tensor)
        result = [found.values]
        result += [found.inverse_indices] if return_inverse else []
        result += [found.counts] if return_counts else []
        return tuple(result) if len(result) > 1 else result[0]

    def take_along_dim(self, index: "Tensor", dim: int) -> "Tensor":
        """Entries at places along a dimension; the others broadcast.

        >>> kiln.tensor([[1, 2], [3, 4]]).take_along_dim(kiln.tensor([[1], [0]]), 1).tolist()
        [[2], [3]]
        """
        from kiln._array_api.searching import take_along_axis

        return take_along_axis(self._tensor, index, axis=dim)
