"""Methods of Tensor that find elements by their order, and their places."""

from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Tuple, Union, overload

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import numpy_names
from kiln._rules import flag, normalize_axis, whole
from kiln._tensor.making import iota
from kiln._tensor.base import TensorBase
from kiln._tensor.reductions import Axes, Reductions, axes_of, require_elements

if TYPE_CHECKING:
    from kiln.tensor import Tensor


class ValuesAndIndices(NamedTuple):
    """Elements along a dimension, and their indices in it as int64."""

    values: "Tensor"
    indices: "Tensor"


def without_keepdim(name: str, other: "Tensor", keepdim: bool) -> "Tensor":
    """Returns `other`, the second tensor of max or min; raises InvalidArgument for keepdim."""
    if flag(keepdim, "keepdim"):
        raise InvalidArgument(
            f"{name} of two tensors with keepdim; keepdim needs one tensor and a dim")
    return other


class Ordering(Reductions):
    """With an int `dim`, most of these methods return PyTorch's pairs; the functions of `kiln`, and
    amax and amin, which take several dimensions, return only the values.
    """

    __slots__ = ()

    @numpy_names
    def amax(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """Returns the largest element; NaN if any is NaN.

        Equal elements share the gradient equally. Raises InvalidArgument if there is no element.

        >>> kiln.tensor([[1, 2], [3, 4]]).amax((0, 1)).item()
        4
        """
        require_elements("amax", self.shape, axes_of(dim))
        return self._reduce("max", dim, keepdim)

    @numpy_names
    def amin(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """Returns the smallest element; NaN if any is NaN.

        Equal elements share the gradient equally. Raises InvalidArgument if there is no element.

        >>> kiln.tensor([[1, 2], [3, 4]]).amin(1, keepdim=True).tolist()
        [[1], [3]]
        """
        require_elements("amin", self.shape, axes_of(dim))
        return self._reduce("min", dim, keepdim)

    def aminmax(self, dim: Axes = None, keepdim: bool = False) -> Tuple["Tensor", "Tensor"]:
        """Returns the smallest and the largest element.

        >>> [part.item() for part in kiln.tensor([[1, 2], [3, 4]]).aminmax()]
        [1, 4]
        """
        return self.amin(dim, keepdim), self.amax(dim, keepdim)

    @overload
    def max(self, dim: None = None, keepdim: bool = False) -> "Tensor": ...
    @overload
    def max(self, dim: int, keepdim: bool = False) -> ValuesAndIndices: ...
    @overload
    def max(self, dim: "Tensor", keepdim: bool = False) -> "Tensor": ...
    @numpy_names
    def max(self, dim: "Union[None, int, Tensor]" = None,
            keepdim: bool = False) -> "Union[Tensor, ValuesAndIndices]":
        """Returns the largest element; along a dim also its index, the first of equal ones.

        NaN if any is NaN. With a tensor in place of a dim, returns the larger of the two
        elementwise, as maximum().

        Along a dim the element at the index gets the gradient; otherwise equal elements share it.
        Raises InvalidArgument if there is no element.

        >>> kiln.tensor([[1, 2], [3, 4]]).max().item()
        4
        >>> values, indices = kiln.tensor([[1, 5], [3, 4]]).max(dim=1)
        >>> values.tolist(), indices.tolist()
        ([5, 4], [1, 1])
        """
        if isinstance(dim, TensorBase):
            return self._op("maximum", without_keepdim("max", dim, keepdim))
        if dim is None:
            return self.amax(keepdim=keepdim)
        along = self._one_dim("max", dim, "amax")
        places = self.argmax(along, keepdim=True)
        values = self.amax(along, keepdim)
        if not values.requires_grad:
            return ValuesAndIndices(values, places if keepdim else places.squeeze(along))
        # The element at the index gets the gradient, not the others that equal it.
        return self._found(along, places, keepdim)

    @overload
    def min(self, dim: None = None, keepdim: bool = False) -> "Tensor": ...
    @overload
    def min(self, dim: int, keepdim: bool = False) -> ValuesAndIndices: ...
    @overload
    def min(self, dim: "Tensor", keepdim: bool = False) -> "Tensor": ...
    @numpy_names
    def min(self, dim: "Union[None, int, Tensor]" = None,
            keepdim: bool = False) -> "Union[Tensor, ValuesAndIndices]":
        """Returns the smallest element; along a dim also its index, the first of equal ones.

        NaN if any is NaN. With a tensor in place of a dim, returns the smaller of the two
        elementwise, as minimum().

        Along a dim the element at the index gets the gradient; otherwise equal elements share it.
        Raises InvalidArgument if there is no element.

        >>> [part.tolist() for part in kiln.tensor([[1, 5], [3, 4]]).min(dim=0)]
        [[1, 4], [0, 1]]
        """
        if isinstance(dim, TensorBase):
            return self._op("minimum", without_keepdim("min", dim, keepdim))
        if dim is None:
            return self.amin(keepdim=keepdim)
        along = self._one_dim("min", dim, "amin")
        places = self.argmin(along, keepdim=True)
        values = self.amin(along, keepdim)
        if not values.requires_grad:
            return ValuesAndIndices(values, places if keepdim else places.squeeze(along))
        # The element at the index gets the gradient, not the others that equal it.
        return self._found(along, places, keepdim)

    def _found(self, along: int, places: "Tensor", keepdim: bool) -> ValuesAndIndices:
        """Returns the elements at places along a dimension; without keepdim, squeezes it."""
        found = ValuesAndIndices(self._tensor._op("gather_elements", places, axis=along), places)
        return found if keepdim else ValuesAndIndices(*[part.squeeze(along) for part in found])

    def _one_dim(self, name: str, dim: Any, of_several: str = "") -> int:
        if isinstance(dim, (tuple, list)):
            advice = f", or use {of_several}, which gives values alone" if of_several else ""
            raise InvalidArgument(
                f"{name} along {tuple(dim)}; it returns indices, so name one dimension{advice}")
        return normalize_axis(whole(dim, "dim"), self.ndim)

    @numpy_names
    def argmax(self, dim: Optional[int] = None, keepdim: bool = False) -> "Tensor":
        """Returns the index of the largest element, the first of equal ones, as int64; without
        `dim`, in the flat tensor. Raises InvalidArgument if there is no element.

        >>> kiln.tensor([[1, 2], [3, 4]]).argmax(1).tolist()
        [1, 1]
        """
        return self._place("argmax", dim, keepdim)

    @numpy_names
    def argmin(self, dim: Optional[int] = None, keepdim: bool = False) -> "Tensor":
        """Returns the index of the smallest element, the first of equal ones, as int64; without
        `dim`, in the flat tensor. Raises InvalidArgument if there is no element.

        >>> kiln.tensor([[1, 2], [3, 4]]).argmin().item()
        0
        """
        return self._place("argmin", dim, keepdim)

    def _place(self, name: str, dim: Optional[int], keepdim: bool) -> "Tensor":
        size = self._tensor.numel() if dim is None else (
            self.shape[normalize_axis(whole(dim, "dim"), self.ndim)])
        if size == 0:
            raise InvalidArgument(f"{name} of no elements of a tensor of shape {self.shape}")
        x = self.cast(dtypes.uint8) if self.dtype is dtypes.bool_ else self._tensor
        if dim is None:
            return x.flatten()._op(name, axes=(0,), keepdims=False)
        return x._op(name, axes=(whole(dim, "dim"),), keepdims=flag(keepdim, "keepdim"))

    @overload
    def median(self, dim: None = None, keepdim: bool = False) -> "Tensor": ...
    @overload
    def median(self, dim: int, keepdim: bool = False) -> ValuesAndIndices: ...
    @numpy_names
    def median(self, dim: Optional[int] = None,
               keepdim: bool = False) -> "Union[Tensor, ValuesAndIndices]":
        """Returns the middle of the sorted elements; for an even number, the lower of the two.

        Along a dim it returns the place, too. NaN if any is NaN. kiln.median() returns the mean of
        the middle two. Raises InvalidArgument if there is no element.

        >>> kiln.tensor([3, 1, 2, 10]).median().item()
        2
        >>> [part.tolist() for part in kiln.tensor([[3, 1, 2], [9, 7, 8]]).median(dim=1)]
        [[2, 8], [2, 2]]
        """
        keepdim = flag(keepdim, "keepdim")
        if dim is None:
            return self._tensor.flatten().median(0).values
        along = self._one_dim("median", dim)
        length = self.shape[along]
        if length == 0:
            raise InvalidArgument(f"median of no elements of a tensor of shape {self.shape}")
        place = self.argsort(along)._tensor.narrow(along, (length - 1) // 2, 1)
        if self.dtype.is_float:
            nan = self._tensor.isnan()
            place = nan.argmax(along, keepdim=True).where(nan.any(along, keepdim=True), place)
        return self._found(along, place, keepdim)

    @numpy_names
    def cummax(self, dim: int) -> ValuesAndIndices:
        """Returns the running maximum along `dim` and its place, the last of equal ones, which gets
        the gradient; NaN from the first NaN on.

        >>> [part.tolist() for part in kiln.tensor([1, 3, 2]).cummax(0)]
        [[1, 3, 3], [0, 1, 1]]
        """
        return self._extremes_so_far("cumulative_max", dim)

    @numpy_names
    def cummin(self, dim: int) -> ValuesAndIndices:
        """Returns the running minimum along `dim` and its place, the last of equal ones, which gets
        the gradient; NaN from the first NaN on.

        >>> [part.tolist() for part in kiln.tensor([3, 1, 2]).cummin(0)]
        [[3, 1, 1], [0, 1, 1]]
        """
        return self._extremes_so_far("cumulative_min", dim)

    def _extremes_so_far(self, op: str, dim: int) -> ValuesAndIndices:
        along = self._one_dim(op, dim)
        if self.dtype is dtypes.bool_:
            found = self.cast(dtypes.uint8)._tensor._extremes_so_far(op, dim)
            return ValuesAndIndices(found.values.cast(dtypes.bool_), found.indices)
        values = self._op(op, axis=along)
        # An element that is the extreme so far has its own place, every other one that of the last
        # such element.
        own = self._tensor.eq(values).logical_or(self._tensor.isnan())
        place = iota(self.shape, along).where(own, 0)._op("cumulative_max", axis=along)
        if not values.requires_grad:
            return ValuesAndIndices(values, place)
        # The element at the index gets the gradient, not the others that equal it.
        return self._found(along, place, keepdim=True)

    @numpy_names
    def sort(self, dim: int = -1, descending: bool = False,
             stable: bool = True) -> ValuesAndIndices:
        """Returns the elements sorted along `dim`, and their former places. The sort is stable.

        >>> [part.tolist() for part in kiln.tensor([3, 1, 2]).sort()]
        [[1, 2, 3], [1, 2, 0]]
        """
        how = {"axis": whole(dim, "dim"), "descending": flag(descending, "descending")}
        return ValuesAndIndices(self._op("sort", **how), self._op("argsort", **how))

    @numpy_names
    def argsort(self, dim: int = -1, descending: bool = False) -> "Tensor":
        """Returns the indices of the sorted elements as int64. The sort is stable.

        >>> kiln.tensor([3, 1, 2]).argsort().tolist()
        [1, 2, 0]
        """
        return self._op("argsort", axis=whole(dim, "dim"),
                        descending=flag(descending, "descending"))

    @numpy_names
    def topk(self, k: int, dim: int = -1, largest: bool = True) -> ValuesAndIndices:
        """Returns the k largest (or smallest) elements along `dim` in order, and their indices.

        >>> [part.tolist() for part in kiln.tensor([3, 1, 2]).topk(2)]
        [[3, 2], [0, 2]]
        """
        how = {"k": whole(k, "k"), "axis": whole(dim, "dim"), "largest": flag(largest, "largest")}
        return ValuesAndIndices(self._op("topk", **how), self._op("topk_indices", **how))
