"""Methods of Tensor that move elements without arithmetic."""

import operator
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple, Union

from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import numpy_names
from kiln._rules import normalize_axis
from kiln._tensor.base import TensorBase
from kiln.variables import Dim

if TYPE_CHECKING:
    from kiln.tensor import Tensor


def sizes(args: Tuple[Any, ...]) -> Tuple[int, ...]:
    """A shape given as one sequence or as several numbers."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    return tuple(whole(size, "size") for size in args)


def whole(value: Any, what: str) -> int:
    """An integer, which a float is not, even without a fraction; or what variables make one."""
    if isinstance(value, Dim):
        return value  # type: ignore[return-value]
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{value!r:.80} is no {what}; it must be an integer") from None


class Movement(TensorBase):
    """Reshaping, reordering, cutting and joining."""

    __slots__ = ()

    def reshape(self, *shape: Any) -> "Tensor":
        """The same elements in another shape; one size may be -1.

        >>> kiln.tensor([[1, 2], [3, 4]]).reshape(-1).tolist()
        [1, 2, 3, 4]
        """
        wanted = sizes(shape)
        if wanted.count(-1) > 1:
            raise InvalidArgument(f"reshape to {wanted}: only one size can be -1")
        if wanted.count(-1) == 1:
            known = 1
            for size in wanted:
                known *= size if size != -1 else 1
            if known == 0 or self.numel() % known:
                raise InvalidArgument(
                    f"cannot reshape {self.shape} ({self.numel()} elements) to {wanted}: "
                    f"{self.numel()} is no multiple of {known}")
            wanted = tuple(self.numel() // known if size == -1 else size for size in wanted)
        return self._alias() if wanted == self.shape else self._op("reshape", shape=wanted)

    view = reshape

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> "Tensor":
        """Dimensions start_dim to end_dim as one.

        >>> kiln.zeros(2, 3, 4).flatten(1).shape
        (2, 12)
        """
        if not self.shape:
            return self.reshape(1)
        start = normalize_axis(start_dim, self.ndim)
        end = normalize_axis(end_dim, self.ndim)
        joined = 1
        for size in self.shape[start : end + 1]:
            joined *= size
        return self.reshape(*self.shape[:start], joined, *self.shape[end + 1 :])

    def unflatten(self, dim: int, shape: Sequence[int]) -> "Tensor":
        """One dimension as several.

        >>> kiln.zeros(2, 6).unflatten(1, (2, 3)).shape
        (2, 2, 3)
        """
        axis = normalize_axis(dim, self.ndim)
        return self.reshape(*self.shape[:axis], *shape, *self.shape[axis + 1 :])

    @numpy_names
    def squeeze(self, dim: Optional[int] = None) -> "Tensor":
        """Without dimensions of size 1, or without that one.

        >>> kiln.zeros(2, 1, 3).squeeze(1).shape
        (2, 3)
        """
        if dim is None:
            return self.reshape(tuple(size for size in self.shape if size != 1))
        axis = normalize_axis(dim, self.ndim)
        if self.shape[axis] != 1:
            return self._alias()
        return self.reshape(self.shape[:axis] + self.shape[axis + 1 :])

    @numpy_names
    def unsqueeze(self, dim: int) -> "Tensor":
        """With a dimension of size 1 at `dim`.

        >>> kiln.zeros(2, 3).unsqueeze(0).shape
        (1, 2, 3)
        """
        axis = normalize_axis(dim, self.ndim + 1)
        return self.reshape((*self.shape[:axis], 1, *self.shape[axis:]))

    def permute(self, *dims: Any) -> "Tensor":
        """Dimensions in another order: the result's dimension i is dims[i].

        >>> kiln.zeros(2, 3, 4).permute(2, 0, 1).shape
        (4, 2, 3)
        """
        axes = tuple(normalize_axis(axis, self.ndim) for axis in sizes(dims))
        return self._alias() if axes == tuple(range(self.ndim)) else self._op("permute", axes=axes)

    def transpose(self, dim0: int, dim1: int) -> "Tensor":
        """Two dimensions exchanged.

        >>> kiln.zeros(2, 3, 4).transpose(0, 2).shape
        (4, 3, 2)
        """
        axes = list(range(self.ndim))
        a, b = normalize_axis(dim0, self.ndim), normalize_axis(dim1, self.ndim)
        axes[a], axes[b] = axes[b], axes[a]
        return self.permute(axes)

    @property
    def T(self) -> "Tensor":  # noqa: N802
        """Dimensions in reverse order.

        >>> kiln.tensor([[1, 2], [3, 4]]).T.tolist()
        [[1, 3], [2, 4]]
        """
        return self.permute(tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> "Tensor":  # noqa: N802
        """The last two dimensions exchanged.

        >>> kiln.tensor([[1, 2], [3, 4]]).mT.tolist()
        [[1, 3], [2, 4]]
        """
        return self.transpose(-2, -1)

    def expand(self, *shape: Any) -> "Tensor":
        """Dimensions of size 1 repeated, without a copy; -1 keeps a size.

        >>> kiln.tensor([[1], [2]]).expand(2, 2).tolist()
        [[1, 1], [2, 2]]
        """
        wanted = list(sizes(shape))
        skipped = len(wanted) - self.ndim
        for i, size in enumerate(wanted):
            if size == -1:
                if i < skipped:
                    raise InvalidArgument(
                        f"cannot expand {self.shape} to {tuple(wanted)}: -1 stands where "
                        f"{self.shape} has no dimension")
                wanted[i] = self.shape[i - skipped]
        target = tuple(wanted)
        return self._alias() if target == self.shape else self._op("expand", shape=target)

    broadcast_to = expand

    def expand_as(self, other: "Tensor") -> "Tensor":
        """Expanded to the shape of `other`.

        >>> kiln.tensor([1, 2]).expand_as(kiln.tensor([[1, 2], [3, 4]])).tolist()
        [[1, 2], [1, 2]]
        """
        return self.expand(other.shape)

    def repeat(self, *repeats: Any) -> "Tensor":
        """Copies side by side: repeats[i] along dimension i.

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

    def flip(self, *dims: Any) -> "Tensor":
        """Reversed along dimensions.

        >>> kiln.tensor([[1, 2], [3, 4]]).flip(1).tolist()
        [[2, 1], [4, 3]]
        """
        axes = tuple(sorted(normalize_axis(axis, self.ndim) for axis in sizes(dims)))
        return self._op("flip", axes=axes) if axes else self._alias()

    def pad(self, padding: Sequence[int], value: Any = 0) -> "Tensor":
        """Padded as PyTorch's: (left, right) of the last dimension, then of the one before, …

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
        if value == 0:
            return padded
        from kiln._array_api.creation import ones_like

        inside = ones_like(self._tensor, "bool")._op("pad", padding=amounts)
        return padded.where(inside, value)

    def narrow(self, dim: int, start: int, length: int) -> "Tensor":
        """`length` elements from `start` on along one dimension.

        >>> kiln.arange(5).narrow(0, 1, 3).tolist()
        [1, 2, 3]
        """
        axis = normalize_axis(dim, self.ndim)
        bounds: List[int] = []
        for i, size in enumerate(self.shape):
            bounds += [start, start + length] if i == axis else [0, size]
        return self._op("shrink", bounds=tuple(bounds))

    @numpy_names
    def chunk(self, chunks: int, dim: int = 0) -> List["Tensor"]:
        """Up to `chunks` parts along a dimension, the last one smaller.

        >>> [part.tolist() for part in kiln.arange(5).chunk(2)]
        [[0, 1, 2], [3, 4]]
        """
        size = self.shape[normalize_axis(dim, self.ndim)]
        if chunks < 1:
            raise InvalidArgument(f"{chunks} chunks; there must be at least one")
        return self.split(max(1, -(-size // chunks)), dim)

    @numpy_names
    def split(self, size: Union[int, Sequence[int]], dim: int = 0) -> List["Tensor"]:
        """Parts of `size` (the last one smaller), or of the given sizes, along a dimension.

        >>> [part.tolist() for part in kiln.arange(5).split(2)]
        [[0, 1], [2, 3], [4]]
        """
        total = self.shape[normalize_axis(dim, self.ndim)]
        if isinstance(size, int) and size < 1:
            raise InvalidArgument(f"split into parts of {size}; it must be 1 or more")
        parts = list(size) if not isinstance(size, int) else (
            [min(size, total - start) for start in range(0, total, size)])
        if sum(parts) != total:
            raise InvalidArgument(
                f"split of dimension {dim} of shape {self.shape} into {parts}: they add up to "
                f"{sum(parts)}, not {total}")
        result, start = [], 0
        for part in parts:
            result.append(self.narrow(dim, start, part))
            start += part
        return result

    @numpy_names
    def unbind(self, dim: int = 0) -> Tuple["Tensor", ...]:
        """The parts along a dimension, without it.

        >>> [part.tolist() for part in kiln.tensor([[1, 2], [3, 4]]).unbind(1)]
        [[1, 3], [2, 4]]
        """
        axis = normalize_axis(dim, self.ndim)
        before, after = self.shape[:axis], self.shape[axis + 1 :]
        return tuple(self.narrow(axis, i, 1).reshape(before + after)
                     for i in range(self.shape[axis]))

    def index_select(self, dim: int, index: "Tensor") -> "Tensor":
        """The places `index` along a dimension; negative ones count from the end.

        A place outside raises IndexError where the index's values are known here, else it reads
        zero.

        >>> kiln.tensor([[1, 2], [3, 4]]).index_select(0, kiln.tensor([1])).tolist()
        [[3, 4]]
        """
        return self._tensor[(*[slice(None)] * normalize_axis(dim, self.ndim), index)]

    def gather(self, dim: int, index: "Tensor") -> "Tensor":
        """As PyTorch's: result[i][j] = self[index[i][j]][j] for dim 0, and so on.

        >>> kiln.tensor([[1, 2], [3, 4]]).gather(1, kiln.tensor([[1], [0]])).tolist()
        [[2], [3]]
        """
        from kiln._tensor.indexing import gather_along

        return gather_along(self._tensor, dim, index)

    def one_hot(self, classes: int) -> "Tensor":
        """1 at the place that each integer names, 0 elsewhere, along a new last dimension.

        >>> kiln.tensor([1, 0]).one_hot(3).tolist()
        [[0, 1, 0], [1, 0, 0]]
        """
        return self._op("one_hot", classes=int(classes))

    def tril(self, diagonal: int = 0) -> "Tensor":
        """The lower triangle of the last two dimensions, zero above.

        >>> kiln.tensor([[1, 2], [3, 4]]).tril().tolist()
        [[1, 0], [3, 4]]
        """
        return self._op("tril", diagonal=int(diagonal))

    def triu(self, diagonal: int = 0) -> "Tensor":
        """The upper triangle of the last two dimensions, zero below.

        >>> kiln.tensor([[1, 2], [3, 4]]).triu().tolist()
        [[1, 2], [0, 4]]
        """
        return self._op("triu", diagonal=int(diagonal))
