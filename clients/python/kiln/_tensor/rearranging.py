"""Methods of Tensor that repeat, flip, roll and pad elements."""

from typing import TYPE_CHECKING, Any, List, Optional, Sequence

import numpy as np

from kiln._basics.conversion import is_padding
from kiln._basics.errors import InvalidArgument
from kiln._rules import NUMBER, normalize_axis, whole
from kiln._tensor.assignment import in_dtype
from kiln._tensor.base import construct
from kiln._tensor.making import concat, filled
from kiln._tensor.shapes import Shapes, axes_tuple, sizes
from kiln.variables import Dim

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Rearranging(Shapes):
    """Methods that move, repeat or pad elements."""

    __slots__ = ()

    def repeat(self, *repeats: Any) -> "Tensor":
        """Repeats the tensor repeats[i] times along dimension i.

        >>> kiln.tensor([1, 2]).repeat(2, 2).tolist()
        [[1, 2, 1, 2], [1, 2, 1, 2]]
        """
        counts = sizes(repeats)
        if len(counts) < self.ndim:
            raise InvalidArgument(
                f"repeat of shape {self.shape} with {counts}; it needs at least {self.ndim} counts")
        shape = (1,) * (len(counts) - self.ndim) + self.shape
        split: List[int] = []
        wide: List[int] = []
        for count, size in zip(counts, shape):
            split += [1, size]
            wide += [count, size]
        whole = tuple(count * size for count, size in zip(counts, shape))
        return self.reshape(split).expand(wide).reshape(whole)

    def tile(self, *repeats: Any) -> "Tensor":
        """Repeats the tensor, as NumPy's tile.

        >>> kiln.tensor([1, 2]).tile(2).tolist()
        [1, 2, 1, 2]
        """
        counts = sizes(repeats)
        return self.repeat((1,) * (self.ndim - len(counts)) + counts)

    def repeat_interleave(self, repeats: Any, dim: Optional[int] = None) -> "Tensor":
        """Repeats each element that many times, along a dimension or in the flattened tensor.

        >>> kiln.tensor([1, 2]).repeat_interleave(2).tolist()
        [1, 1, 2, 2]
        """
        if dim is None:
            return self._tensor.flatten().repeat_interleave(repeats, 0)
        place = normalize_axis(dim, self.ndim)
        size, before, after = self.shape[place], self.shape[:place], self.shape[place + 1 :]
        if isinstance(repeats, NUMBER):
            count = whole(repeats, "repeats")
            wide = self.unsqueeze(place + 1).expand((*before, size, count, *after))
            return wide.reshape((*before, size * count, *after))
        counts = np.asarray(repeats)
        if counts.size and counts.dtype.kind not in "iu":
            raise InvalidArgument(f"repeats of {counts.dtype}; they must be integers")
        if counts.size and counts.min() < 0:
            raise InvalidArgument(f"repeat {counts.min()} times; counts must be at least 0")
        if counts.shape not in ((), (1,), (size,)):
            raise InvalidArgument(
                f"repeat of axis {place} of shape {self.shape} with counts of shape "
                f"{counts.shape}; there must be {size}")
        index = np.repeat(np.arange(size), counts)
        return self._op("gather", construct(index.tolist(), "int64"), axis=place)

    def flip(self, *dims: Any) -> "Tensor":
        """Reverses the order of elements along dimensions.

        >>> kiln.tensor([[1, 2], [3, 4]]).flip(1).tolist()
        [[2, 1], [4, 3]]
        """
        axes = tuple(sorted(normalize_axis(axis, self.ndim) for axis in sizes(dims)))
        return self._op("flip", axes=axes) if axes else self._alias()

    def roll(self, shifts: Any, dims: Any = None) -> "Tensor":
        """Shifts elements along dimensions, wrapping around; without dims, in the flat tensor.

        >>> kiln.tensor([1, 2, 3]).roll(1).tolist()
        [3, 1, 2]
        """
        amounts = axes_tuple(shifts)
        if dims is None:
            if len(amounts) != 1:
                raise InvalidArgument(
                    f"roll by {shifts} without an axis; give one axis for each shift")
            return self._tensor.flatten().roll(amounts, 0).reshape(self.shape)
        axes = axes_tuple(dims)
        if len(amounts) == 1:
            amounts *= len(axes)
        if len(amounts) != len(axes):
            raise InvalidArgument(f"roll by {shifts} along {dims}; give one shift for each axis")
        x = self._tensor
        for amount, place in zip(amounts, axes):
            size = x.shape[normalize_axis(place, x.ndim)]
            left = _rolled_off(amount, size)
            if left:
                x = concat([x.narrow(place, left, size - left), x.narrow(place, 0, left)], place)
        return x

    def pad(self, padding: Sequence[int], value: Any = 0) -> "Tensor":
        """Pads as PyTorch: (left, right) of the last dimension, then of the one before, …

        The dtype does not change.

        >>> kiln.tensor([1, 2]).pad((1, 2), value=9).tolist()
        [9, 1, 2, 9, 9]
        """
        if len(padding) % 2 or len(padding) > 2 * self.ndim:
            raise InvalidArgument(
                f"padding {tuple(padding)} for shape {self.shape}; it needs a pair for each of "
                f"the last dimensions, at most {self.ndim}")
        pairs = [(whole(padding[i], "padding"), whole(padding[i + 1], "padding"))
                 for i in range(0, len(padding), 2)]
        pairs = [(0, 0)] * (self.ndim - len(pairs)) + pairs[::-1]
        amounts = tuple(amount for pair in pairs for amount in pair)
        if not any(amounts):
            return self._alias()
        padded = self._op("pad", padding=amounts)
        if is_padding(value):
            return padded
        inside = filled(self.shape, True)._op("pad", padding=amounts)
        return padded.where(inside, in_dtype(value, self.dtype))

    def one_hot(self, classes: int) -> "Tensor":
        """Returns 1 at the index given by each integer, else 0, along a new last dimension.

        >>> kiln.tensor([1, 0]).one_hot(3).tolist()
        [[0, 1, 0], [1, 0, 0]]
        """
        return self._op("one_hot", classes=whole(classes, "classes"))

    def tril(self, diagonal: int = 0) -> "Tensor":
        """Returns the lower triangle of the last two dimensions, and zeros above it.

        >>> kiln.tensor([[1, 2], [3, 4]]).tril().tolist()
        [[1, 0], [3, 4]]
        """
        return self._op("tril", diagonal=whole(diagonal, "diagonal"))

    def triu(self, diagonal: int = 0) -> "Tensor":
        """Returns the upper triangle of the last two dimensions, and zeros below it.

        >>> kiln.tensor([[1, 2], [3, 4]]).triu().tolist()
        [[1, 2], [0, 4]]
        """
        return self._op("triu", diagonal=whole(diagonal, "diagonal"))


def _rolled_off(amount: int, size: Any) -> Any:
    """Returns the index of the element that becomes the first when rolled by `amount`."""
    if not isinstance(size, Dim):
        return -amount % size if size else 0
    if abs(amount) >= size.low and amount:
        raise InvalidArgument(
            f"roll by {amount} along a dimension of {size!r} elements, which can be as few as "
            f"{size.low}; roll by less than {size.low}")
    return size - amount if amount > 0 else -amount
