"""Methods of Tensor that take it apart, repeat, reorder or pad it."""

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from kiln._basics.conversion import is_padding
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import also, numpy_names
from kiln._rules import NUMBER, normalize_axis, whole
from kiln._tensor.arithmetic import Arithmetic
from kiln._tensor.base import construct
from kiln._tensor.constructors import concat, filled, in_dtype
from kiln._tensor.shapes import axes_tuple, sizes
from kiln.variables import Dim

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class Splitting(Arithmetic):
    """Parts along a dimension, and tensors made of parts."""

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
        # A count of 1 is an operation too, so that a loop over counts computes it alike.
        return self.reshape(split)._op("expand", shape=tuple(wide)).reshape(whole)

    def tile(self, *repeats: Any) -> "Tensor":
        """Repeats the tensor, as NumPy's tile.

        >>> kiln.tensor([1, 2]).tile(2).tolist()
        [1, 2, 1, 2]
        """
        counts = sizes(repeats)
        return self.repeat((1,) * (self.ndim - len(counts)) + counts)

    @numpy_names
    def repeat_interleave(self, repeats: Any, dim: Optional[int] = None) -> "Tensor":
        """Repeats each element that many times, along a dimension or in the flattened tensor.

        >>> kiln.tensor([1, 2]).repeat_interleave(2).tolist()
        [1, 1, 2, 2]
        """
        if dim is None:
            return self.flatten().repeat_interleave(repeats, 0)
        place = normalize_axis(dim, self.ndim)
        size, before, after = self.shape[place], self.shape[:place], self.shape[place + 1 :]
        if isinstance(repeats, NUMBER):
            count = whole(repeats, "repeats")
            wide = self.unsqueeze(place + 1)._op("expand", shape=(*before, size, count, *after))
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

    @also(axis="dim")
    def flip(self, *dims: Any, dim: Any = None) -> "Tensor":
        """Reverses the order of elements along dimensions.

        >>> kiln.tensor([[1, 2], [3, 4]]).flip(1).tolist()
        [[2, 1], [4, 3]]
        """
        wanted = dims if dim is None else axes_tuple(dim)
        axes = tuple(sorted(normalize_axis(axis, self.ndim) for axis in sizes(wanted)))
        return self._op("flip", axes=axes) if axes else self._alias()

    @also(axis="dims", shift="shifts")
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
            return self.flatten().roll(amounts, 0).reshape(self.shape)
        axes = axes_tuple(dims)
        if len(amounts) == 1:
            amounts *= len(axes)
        if len(amounts) != len(axes):
            raise InvalidArgument(f"roll by {shifts} along {dims}; give one shift for each axis")
        x = self._tensor
        for amount, place in zip(amounts, axes):
            size = x.shape[normalize_axis(place, x.ndim)]
            left = _rolled_off(amount, size)
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
        return self._padded(tuple(amount for pair in pairs for amount in pair), value)

    def _padded(self, amounts: Sequence[int], value: Any) -> "Tensor":
        # A padding of 0 is an operation too, so that a loop over paddings computes it alike.
        padded = self._op("pad", padding=tuple(amounts))
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
