"""Methods of Tensor that are short for movements, and those that find places."""

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Union

import numpy as np

from kiln import _realize
from kiln._errors import InvalidArgument
from kiln._movement import Movement, sizes
from kiln._rules import normalize_axis

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Places(Movement):
    """All of it in terms of other methods and functions."""

    __slots__ = ()

    # Shapes.

    def ravel(self) -> "Tensor":
        """All in one dimension."""
        return self.reshape(-1) if self.numel() else self.reshape(0)

    def t(self) -> "Tensor":
        """A matrix transposed; a vector or scalar itself."""
        if self.ndim > 2:
            raise InvalidArgument(f"t() of shape {self.shape}; mT turns the last two dimensions")
        return self.T

    def view_as(self, other: "Tensor") -> "Tensor":
        """In another tensor's shape."""
        return self.reshape(other.shape)

    reshape_as = view_as

    def select(self, dim: int, index: int) -> "Tensor":
        """One place along a dimension, without it."""
        axis = normalize_axis(dim, self.ndim)
        return self._tensor[(*[slice(None)] * axis, index)]

    def moveaxis(self, source: Any, destination: Any) -> "Tensor":
        """Dimensions moved to other places."""
        from kiln.manipulation import moveaxis

        return moveaxis(self._tensor, source, destination)

    movedim = moveaxis

    def tile(self, *repeats: Any) -> "Tensor":
        """Copies side by side, as NumPy's tile."""
        from kiln.manipulation import tile

        return tile(self._tensor, sizes(repeats))

    def roll(self, shifts: Any, dims: Any = None) -> "Tensor":
        """Elements moved along dimensions, round the end; without any, of the flat tensor."""
        from kiln.manipulation import roll

        return roll(self._tensor, shifts, axis=dims)

    def repeat_interleave(self, repeats: Any, dim: Optional[int] = None) -> "Tensor":
        """Each element so many times, along a dimension or flat."""
        from kiln.manipulation import repeat

        return repeat(self._tensor, repeats, axis=dim)

    def split_with_sizes(self, parts: Sequence[int], dim: int = 0) -> List["Tensor"]:
        """Parts of the given sizes along a dimension."""
        return self.split(parts, dim)

    def tensor_split(self, parts: Union[int, Sequence[int]], dim: int = 0) -> List["Tensor"]:
        """So many parts, sizes as equal as can be, or parts that end at these places."""
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
        """Windows of `size`, `step` apart, along a dimension; they lie in a new last one."""
        return self._op("window", axis=normalize_axis(dim, self.ndim), size=size, stride=step,
                        dilation=1)

    # Places. Those that give a shape that depends on values read them.

    def nonzero(self, as_tuple: bool = False) -> Any:
        """The places of elements that are not 0: a row for each, or a vector for each dimension.

        How many there are depends on the values, so they are read; a TraceError within kiln.jit.
        """
        _realize.refuse_in_trace("nonzero()")
        from kiln._base import constant

        places = np.nonzero(self._tensor.numpy())
        if as_tuple:
            return tuple(constant(part) for part in places)
        return constant(np.stack(places, 1) if self.ndim else np.zeros((1, 0), np.int64))

    def argwhere(self) -> "Tensor":
        """The places of elements that are not 0, a row for each; see nonzero."""
        found: Tensor = self.nonzero()
        return found

    def masked_select(self, mask: "Tensor") -> "Tensor":
        """The elements where the mask is true, flat; reads the mask."""
        from kiln import _rules

        shape = _rules.broadcast([self.shape, mask.shape])
        return self.expand(shape)[mask.expand(shape)]

    def unique(self, return_inverse: bool = False, return_counts: bool = False) -> Any:
        """The distinct values, sorted, and if asked for which of them each element is and how often
        each occurs; reads the values.
        """
        from kiln.sets import unique_all

        found = unique_all(self._tensor)
        result = [found.values]
        result += [found.inverse_indices] if return_inverse else []
        result += [found.counts] if return_counts else []
        return tuple(result) if len(result) > 1 else result[0]

    def take_along_dim(self, index: "Tensor", dim: int) -> "Tensor":
        """Entries at places along a dimension; the others broadcast."""
        from kiln.searching import take_along_axis

        return take_along_axis(self._tensor, index, axis=dim)
