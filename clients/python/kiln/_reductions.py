"""Reductions and contractions of Tensor."""

from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union

from kiln import _dtypes
from kiln._base import TensorBase
from kiln._errors import InvalidArgument
from kiln._keywords import numpy_names
from kiln._movement import whole
from kiln._rules import normalize_axis

if TYPE_CHECKING:
    from kiln.tensor import Tensor

Axes = Optional[Union[int, Sequence[int]]]


def axes_of(dim: Axes) -> Tuple[int, ...]:
    """The table's form of a `dim` argument: an empty tuple stands for all."""
    if dim is None:
        return ()
    axes = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(whole(axis, "dimension") for axis in axes)


class Reductions(TensorBase):
    """Reductions take `dim` (None: all, an int or several) and `keepdim`, or axis and keepdims."""

    __slots__ = ()

    def _reduce(self, name: str, dim: Axes, keepdim: bool) -> "Tensor":
        return self._op(name, axes=axes_of(dim), keepdims=bool(keepdim))

    def _summable(self, dtype: Any = None) -> "Tensor":
        """In the dtype its sum has: `dtype`, else of bools and integers 64 bits."""
        if dtype is not None:
            return self.cast(dtype)
        if self.dtype.is_float:
            return self._tensor
        return self.cast(_dtypes.int64 if self.dtype.is_signed or self.dtype is _dtypes.bool_
                         else _dtypes.uint64)

    @numpy_names
    def sum(self, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> "Tensor":
        """The sum. Without a dtype, floats keep theirs; integers and bools become 64 bits wide."""
        return self._summable(dtype)._reduce("sum", dim, keepdim)

    @numpy_names
    def prod(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """The product."""
        return self._summable()._reduce("prod", dim, keepdim)

    @numpy_names
    def max(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """The largest element (values alone; argmax gives the place)."""
        return self._reduce("max", dim, keepdim)

    @numpy_names
    def min(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """The smallest element."""
        return self._reduce("min", dim, keepdim)

    amax = max
    amin = min

    @numpy_names
    def mean(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """The mean; of integers, as float32."""
        return self._reduce("mean", dim, keepdim)

    @numpy_names
    def var(self, dim: Axes = None, keepdim: bool = False, correction: float = 1, *,
            unbiased: Optional[bool] = None) -> "Tensor":
        """The variance, divided by N - correction; unbiased stands for a correction of 1, or 0."""
        return self._spread("var", dim, keepdim, correction, unbiased)

    @numpy_names
    def std(self, dim: Axes = None, keepdim: bool = False, correction: float = 1, *,
            unbiased: Optional[bool] = None) -> "Tensor":
        """The standard deviation, the root of var()."""
        return self._spread("std", dim, keepdim, correction, unbiased)

    def _spread(self, name: str, dim: Axes, keepdim: bool, correction: float,
                unbiased: Optional[bool]) -> "Tensor":
        return self._op(
            name, axes=axes_of(dim), keepdims=bool(keepdim),
            correction=float(correction if unbiased is None else unbiased))

    @numpy_names
    def norm(self, p: float = 2, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """The norm of order p over axes; 2 is the Euclidean one."""
        return self._op("vector_norm", axes=axes_of(dim), keepdims=bool(keepdim), ord=float(p))

    @numpy_names
    def any(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """Whether any is true."""
        return self._reduce("any", dim, keepdim)

    @numpy_names
    def all(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """Whether all are true."""
        return self._reduce("all", dim, keepdim)

    @numpy_names
    def argmax(self, dim: Optional[int] = None, keepdim: bool = False) -> "Tensor":
        """The place of the largest element, the first of equals; without `dim`, when flat."""
        return self._place("argmax", dim, keepdim)

    @numpy_names
    def argmin(self, dim: Optional[int] = None, keepdim: bool = False) -> "Tensor":
        """The place of the smallest element, the first of equals."""
        return self._place("argmin", dim, keepdim)

    def _place(self, name: str, dim: Optional[int], keepdim: bool) -> "Tensor":
        size = self._tensor.numel() if dim is None else (
            self.shape[normalize_axis(int(dim), self.ndim)])
        if size == 0:
            raise InvalidArgument(f"{name} of no elements of a tensor of shape {self.shape}")
        x = self.cast(_dtypes.uint8) if self.dtype is _dtypes.bool_ else self._tensor
        if dim is None:
            return x.flatten()._op(name, axes=(0,), keepdims=False)
        return x._op(name, axes=(int(dim),), keepdims=bool(keepdim))

    @numpy_names
    def logsumexp(self, dim: Axes = None, keepdim: bool = False) -> "Tensor":
        """log(sum(exp(self))), without overflow."""
        return self._reduce("logsumexp", dim, keepdim)

    @numpy_names
    def softmax(self, dim: int = -1) -> "Tensor":
        """exp(self), scaled so that it sums to 1 along `dim`."""
        return self._op("softmax", axis=dim)

    @numpy_names
    def log_softmax(self, dim: int = -1) -> "Tensor":
        """The logarithm of softmax."""
        return self._op("log_softmax", axis=dim)

    @numpy_names
    def cumsum(self, dim: int) -> "Tensor":
        """Sums up to each place along `dim`."""
        return self._summable()._op("cumulative_sum", axis=int(dim))

    @numpy_names
    def cumprod(self, dim: int) -> "Tensor":
        """Products up to each place along `dim`."""
        return self._summable()._op("cumulative_prod", axis=int(dim))

    @numpy_names
    def cummax(self, dim: int) -> "Tensor":
        """The largest up to each place along `dim`; NaN from the first one on."""
        return self._op("cumulative_max", axis=int(dim))

    @numpy_names
    def cummin(self, dim: int) -> "Tensor":
        """The smallest up to each place along `dim`; NaN from the first one on."""
        return self._op("cumulative_min", axis=int(dim))

    @numpy_names
    def logcumsumexp(self, dim: int) -> "Tensor":
        """log(sum(exp(self))) up to each place along `dim`, without overflow."""
        return self._op("cumulative_logsumexp", axis=int(dim))

    @numpy_names
    def sort(self, dim: int = -1, descending: bool = False) -> "Tensor":
        """Sorted along `dim` (values alone; argsort gives the places)."""
        return self._op("sort", axis=int(dim), descending=bool(descending))

    @numpy_names
    def argsort(self, dim: int = -1, descending: bool = False) -> "Tensor":
        """The places that the sorted elements come from; equal ones keep their order."""
        return self._op("argsort", axis=int(dim), descending=bool(descending))

    @numpy_names
    def topk(self, k: int, dim: int = -1, largest: bool = True) -> "Tuple[Tensor, Tensor]":
        """The k largest (or smallest) along `dim` in order, and their places."""
        from kiln.sorting import topk

        return topk(self._tensor, k, dim, largest=largest)

    def matmul(self, other: Any) -> "Tensor":
        """The matrix product, as NumPy's."""
        return self._op("matmul", other)

    mm = bmm = matmul

    def dot(self, other: "Tensor") -> "Tensor":
        """The inner product of two vectors."""
        if self.ndim != 1 or other.ndim != 1:
            raise InvalidArgument(
                f"dot of shapes {self.shape} and {other.shape}; both must be vectors")
        return self.matmul(other)
