"""Reductions of Tensor, and elements by their order, with their places."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Sequence, Tuple, Union, overload

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import numpy_names
from kiln._rules import flag, normalize_axis, whole
from kiln._tensor.base import TensorBase
from kiln._tensor.constructors import iota
from kiln._tensor.splitting import Splitting

if TYPE_CHECKING:
    from kiln.tensor import Tensor


Axes = Optional[Union[int, Sequence[int]]]


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


def axes_of(dim: Axes) -> Tuple[int, ...]:
    """Returns the op table's form of a `dim` argument: an empty tuple for all dimensions."""
    if dim is None:
        return ()
    axes = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(whole(axis, "dim") for axis in axes)


def require_elements(name: str, shape: Sequence[int], axes: Sequence[int]) -> None:
    """Raises InvalidArgument for a reduction without elements that has no value for that case."""
    rank = len(shape)
    if any(shape[place] == 0 for place in axes or range(rank) if -rank <= place < rank):
        raise InvalidArgument(
            f"{name} over no elements of a tensor of shape {tuple(shape)}; that is undefined")


class Reductions(Splitting):
    """Reductions take `dim` (None: all; one or several) and `keepdim`, or axis and keepdims.

    Of the methods that find elements, most return PyTorch's pairs for an int `dim`; the functions
    of `kiln`, and amax and amin, which take several dimensions, return only the values.
    """

    __slots__ = ()

    def _reduce(self, name: str, dim: Axes, keepdim: bool) -> "Tensor":
        return self._op(name, axes=axes_of(dim), keepdims=flag(keepdim, "keepdim"))

    def _summable(self, dtype: Any = None) -> "Tensor":
        """Casts to the dtype of its sum: `dtype`, or 64 bits for bools and integers."""
        if dtype is not None:
            return self.cast(dtype)
        if self.dtype.is_float:
            return self._tensor
        return self.cast(dtypes.int64 if self.dtype.is_signed or self.dtype is dtypes.bool_
                         else dtypes.uint64)

    @numpy_names
    def sum(self, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> "Tensor":
        """Returns the sum.

        Without a dtype, floats keep theirs; integers and bools become 64 bits wide.

        >>> kiln.tensor([[1, 2], [3, 4]]).sum(0).tolist()
        [4, 6]
        """
        return self._summable(dtype)._reduce("sum", dim, keepdim)

    @numpy_names
    def prod(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """Returns the product. Floats keep their dtype; integers and bools become 64 bits wide.

        >>> kiln.tensor([[1, 2], [3, 4]]).prod(1).tolist()
        [2, 12]
        """
        return self._summable()._reduce("prod", dim, keepdim)

    @numpy_names
    def mean(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """Returns the mean; of integers, as float32.

        >>> kiln.tensor([[1.0, 2.0], [3.0, 4.0]]).mean(0).tolist()
        [2.0, 3.0]
        """
        return self._reduce("mean", dim, keepdim)

    @numpy_names
    def var(self, dim: Union[Axes, bool] = None, unbiased: Optional[bool] = None,
            keepdim: bool = False, *, correction: Optional[float] = None) -> "Tensor":
        """Returns the variance, divided by N - correction, which is 1 by default.

        `unbiased` is a correction of 1 (True) or 0 (False); giving both raises InvalidArgument. As
        in PyTorch, x.var(False) is unbiased=False over all dimensions.

        >>> kiln.tensor([1.0, 3.0]).var().item()
        2.0
        >>> kiln.tensor([[1.0, 3.0]]).var(1, False).tolist()
        [1.0]
        """
        return self._spread("var", dim, unbiased, keepdim, correction)

    @numpy_names
    def std(self, dim: Union[Axes, bool] = None, unbiased: Optional[bool] = None,
            keepdim: bool = False, *, correction: Optional[float] = None) -> "Tensor":
        """Returns the standard deviation, the square root of var().

        >>> kiln.tensor([1.0, 4.0, 7.0]).std().item()
        3.0
        """
        return self._spread("std", dim, unbiased, keepdim, correction)

    def _spread(self, name: str, dim: Union[Axes, bool], unbiased: Optional[bool], keepdim: bool,
                correction: Optional[float]) -> "Tensor":
        if isinstance(dim, bool) and unbiased is None:
            dim, unbiased = None, dim
        if unbiased is not None:
            if correction is not None:
                raise InvalidArgument(
                    f"{name} with unbiased={unbiased} and correction={correction}; give one of "
                    "them: unbiased is a correction of 1 or 0")
            correction = flag(unbiased, "unbiased")
        return self._op(name, axes=axes_of(dim), keepdims=flag(keepdim, "keepdim"),
                        correction=1.0 if correction is None else float(correction))

    @numpy_names
    def norm(self, p: float = 2, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """Returns the vector norm of order p over dimensions; the default is Euclidean.

        Raises InvalidArgument for infinite p if there is no element.

        >>> kiln.tensor([3.0, 4.0]).norm().item()
        5.0
        """
        if abs(p) == math.inf:
            require_elements("the norm of order inf", self.shape, axes_of(dim))
        return self._op("vector_norm", axes=axes_of(dim), ord=float(p),
                        keepdims=flag(keepdim, "keepdim"))

    def dist(self, other: "Tensor") -> "Tensor":
        """Returns the Euclidean distance.

        >>> kiln.tensor([0.0, 0.0]).dist(kiln.tensor([3.0, 4.0])).item()
        5.0
        """
        return self.sub(other).norm()

    @numpy_names
    def any(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """Returns whether any element is true (not 0).

        >>> (kiln.tensor([[1, 2], [3, 4]]) > 3).any(1).tolist()
        [False, True]
        """
        return self._reduce("any", dim, keepdim)

    @numpy_names
    def all(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """Returns whether all elements are true (not 0).

        >>> (kiln.tensor([[1, 2], [3, 4]]) > 1).all(1).tolist()
        [False, True]
        """
        return self._reduce("all", dim, keepdim)

    @numpy_names
    def count_nonzero(self, dim: Axes = None) -> "Tensor":
        """Returns how many elements are not 0, as int64.

        >>> kiln.tensor([1, 0, 2]).count_nonzero().item()
        2
        """
        return self.bool().sum(dim)

    @numpy_names
    def logsumexp(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """log(sum(exp(self))), without overflow.

        >>> print(kiln.tensor([1.0, 4.0]).logsumexp())
        tensor(4.0486, dtype=float32)
        """
        return self._reduce("logsumexp", dim, keepdim)

    @numpy_names
    def softmax(self, dim: int = -1) -> "Tensor":
        """exp(self), scaled to sum to 1 along `dim`.

        >>> print(kiln.tensor([1.0, 4.0]).softmax())
        tensor([0.0474, 0.9526], dtype=float32)
        """
        return self._op("softmax", axis=whole(dim, "dim"))

    @numpy_names
    def log_softmax(self, dim: int = -1) -> "Tensor":
        """The logarithm of softmax.

        >>> print(kiln.tensor([1.0, 4.0]).log_softmax())
        tensor([-3.0486, -0.0486], dtype=float32)
        """
        return self._op("log_softmax", axis=whole(dim, "dim"))

    @numpy_names
    def cumsum(self, dim: int) -> "Tensor":
        """Running sums along `dim`.

        >>> kiln.tensor([[1, 2], [3, 4]]).cumsum(1).tolist()
        [[1, 3], [3, 7]]
        """
        return self._summable()._op("cumulative_sum", axis=whole(dim, "dim"))

    @numpy_names
    def cumprod(self, dim: int) -> "Tensor":
        """Running products along `dim`.

        >>> kiln.tensor([[1, 2], [3, 4]]).cumprod(1).tolist()
        [[1, 2], [3, 12]]
        """
        return self._summable()._op("cumulative_prod", axis=whole(dim, "dim"))

    @numpy_names
    def logcumsumexp(self, dim: int) -> "Tensor":
        """Running log(sum(exp(self))) along `dim`, without overflow.

        >>> print(kiln.tensor([1.0, 4.0]).logcumsumexp(0))
        tensor([1.    , 4.0486], dtype=float32)
        """
        return self._op("cumulative_logsumexp", axis=whole(dim, "dim"))

    def __contains__(self, value: Any) -> bool:
        return bool(self.eq(value).any())

    def allclose(self, other: "Tensor", rtol: float = 1e-5, atol: float = 1e-8,
                 equal_nan: bool = False) -> bool:
        """Returns whether all elements are close in the sense of isclose. Reads one value.

        >>> kiln.tensor([1.0, 4.0]).allclose(kiln.tensor([1.0, 4.0]) + 1e-9)
        True
        """
        return bool(self.isclose(other, rtol, atol, equal_nan).all())

    def equal(self, other: "Tensor") -> bool:
        """Returns whether shapes and all elements are equal. Reads one value.

        >>> kiln.tensor([[1, 2], [3, 4]]).equal(kiln.tensor([[1, 2], [3, 4]]) + 0)
        True
        """
        return self.shape == other.shape and bool(self.eq(other).all())

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

    @numpy_names
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
    def max(self, dim: "Union[int, Tensor, None]" = None,
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
    def min(self, dim: "Union[int, Tensor, None]" = None,
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
        found = ValuesAndIndices(self._op("gather_elements", places, axis=along), places)
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
        size = self.numel() if dim is None else (
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
            return self.flatten().median(0).values
        along = self._one_dim("median", dim)
        length = self.shape[along]
        if length == 0:
            raise InvalidArgument(f"median of no elements of a tensor of shape {self.shape}")
        place = self.argsort(along).narrow(along, (length - 1) // 2, 1)
        if self.dtype.is_float:
            nan = self.isnan()
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
            found = self.cast(dtypes.uint8)._extremes_so_far(op, dim)
            return ValuesAndIndices(found.values.cast(dtypes.bool_), found.indices)
        values = self._op(op, axis=along)
        # An element that is the extreme so far has its own place, every other one that of the last
        # such element.
        own = self.eq(values).logical_or(self.isnan())
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
