"""Methods of Tensor that change its shape or the order of its dimensions."""

from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union

from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import numpy_names
from kiln._rules import normalize_axis, whole
from kiln._tensor.base import TensorBase

if TYPE_CHECKING:
    from kiln.tensor import Tensor

Axes = Union[int, Sequence[int]]


def sizes(args: Tuple[Any, ...]) -> Tuple[int, ...]:
    """Returns a shape that was given as one sequence or as several numbers."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    return tuple(whole(size, "a size") for size in args)


def axes_tuple(axis: Axes) -> Tuple[int, ...]:
    """Returns one axis or several as a tuple."""
    axes = axis if isinstance(axis, (tuple, list, range)) else (axis,)
    return tuple(whole(place, "the axis") for place in axes)


class Shapes(TensorBase):
    """Methods that compute, copy and remove no element."""

    __slots__ = ()

    def reshape(self, *shape: Any) -> "Tensor":
        """Returns the same elements in another shape; one size may be -1.

        Raises InvalidArgument if the number of elements differs.

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
                    f"{self.numel()} is not a multiple of {known}")
            wanted = tuple(self.numel() // known if size == -1 else size for size in wanted)
        return self._alias() if wanted == self.shape else self._op("reshape", shape=wanted)

    view = reshape

    def view_as(self, other: "Tensor") -> "Tensor":
        """Returns the elements in another tensor's shape.

        >>> kiln.tensor([[1, 2], [3, 4]]).view_as(kiln.zeros(4)).tolist()
        [1, 2, 3, 4]
        """
        return self.reshape(other.shape)

    reshape_as = view_as

    def ravel(self) -> "Tensor":
        """Returns all elements in one dimension.

        >>> kiln.tensor([[1, 2], [3, 4]]).ravel().tolist()
        [1, 2, 3, 4]
        """
        # Without elements -1 could be any size.
        return self.reshape(-1) if self.numel() else self.reshape(0)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> "Tensor":
        """Merges dimensions start_dim to end_dim into one.

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
        """Splits one dimension into several.

        >>> kiln.zeros(2, 6).unflatten(1, (2, 3)).shape
        (2, 2, 3)
        """
        axis = normalize_axis(dim, self.ndim)
        return self.reshape(*self.shape[:axis], *shape, *self.shape[axis + 1 :])

    @numpy_names
    def squeeze(self, dim: Optional[int] = None) -> "Tensor":
        """Removes the dimensions of size 1, or the given one if its size is 1.

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
        """Adds a dimension of size 1 at `dim`.

        >>> kiln.zeros(2, 3).unsqueeze(0).shape
        (1, 2, 3)
        """
        axis = normalize_axis(dim, self.ndim + 1)
        return self.reshape((*self.shape[:axis], 1, *self.shape[axis:]))

    def permute(self, *dims: Any) -> "Tensor":
        """Reorders dimensions: the result's dimension i is dims[i].

        >>> kiln.zeros(2, 3, 4).permute(2, 0, 1).shape
        (4, 2, 3)
        """
        axes = tuple(normalize_axis(axis, self.ndim) for axis in sizes(dims))
        return self._alias() if axes == tuple(range(self.ndim)) else self._op("permute", axes=axes)

    def transpose(self, dim0: int, dim1: int) -> "Tensor":
        """Exchanges two dimensions.

        >>> kiln.zeros(2, 3, 4).transpose(0, 2).shape
        (4, 3, 2)
        """
        axes = list(range(self.ndim))
        a, b = normalize_axis(dim0, self.ndim), normalize_axis(dim1, self.ndim)
        axes[a], axes[b] = axes[b], axes[a]
        return self.permute(axes)

    swapaxes = transpose
    swapdims = transpose

    def moveaxis(self, source: Any, destination: Any) -> "Tensor":
        """Moves dimensions to other positions.

        >>> kiln.zeros(2, 3, 4).moveaxis(0, -1).shape
        (3, 4, 2)
        """
        sources = [normalize_axis(axis, self.ndim) for axis in axes_tuple(source)]
        places = [normalize_axis(axis, self.ndim) for axis in axes_tuple(destination)]
        if len(sources) != len(places) or len({*sources}) < len(sources) or (
            len({*places}) < len(places)
        ):
            raise InvalidArgument(
                f"moveaxis from {source} to {destination}; both must name the same number of "
                "different axes")
        order = [axis for axis in range(self.ndim) if axis not in sources]
        for place, axis in sorted(zip(places, sources)):
            order.insert(place, axis)
        return self.permute(order)

    movedim = moveaxis

    @property
    def T(self) -> "Tensor":  # noqa: N802
        """The tensor with its dimensions in reverse order.

        >>> kiln.tensor([[1, 2], [3, 4]]).T.tolist()
        [[1, 3], [2, 4]]
        """
        return self.permute(tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> "Tensor":  # noqa: N802
        """The tensor with its last two dimensions exchanged.

        >>> kiln.tensor([[1, 2], [3, 4]]).mT.tolist()
        [[1, 3], [2, 4]]
        """
        return self.transpose(-2, -1)

    def t(self) -> "Tensor":
        """Transposes a matrix; returns a vector or scalar unchanged.

        Raises InvalidArgument for more than two dimensions.

        >>> kiln.tensor([[1, 2], [3, 4]]).t().tolist()
        [[1, 3], [2, 4]]
        """
        if self.ndim > 2:
            raise InvalidArgument(f"t() of shape {self.shape}; mT swaps the last two dimensions")
        return self.T

    def expand(self, *shape: Any) -> "Tensor":
        """Repeats dimensions of size 1 and adds leading ones, without a copy; -1 keeps a size.

        >>> kiln.tensor([[1], [2]]).expand(2, 2).tolist()
        [[1, 1], [2, 2]]
        """
        wanted = list(sizes(shape))
        skipped = len(wanted) - self.ndim
        for i, size in enumerate(wanted):
            if size == -1:
                if i < skipped:
                    raise InvalidArgument(
                        f"cannot expand {self.shape} to {tuple(wanted)}: -1 is used where "
                        f"{self.shape} has no dimension")
                wanted[i] = self.shape[i - skipped]
        target = tuple(wanted)
        return self._alias() if target == self.shape else self._op("expand", shape=target)

    broadcast_to = expand

    def expand_as(self, other: "Tensor") -> "Tensor":
        """Expands to the shape of `other`.

        >>> kiln.tensor([1, 2]).expand_as(kiln.tensor([[1, 2], [3, 4]])).tolist()
        [[1, 2], [1, 2]]
        """
        return self.expand(other.shape)
