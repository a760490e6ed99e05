"""Reductions and contractions of Tensor."""

import math
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import numpy_names
from kiln._rules import flag, whole
from kiln._tensor.casting import Casting
from kiln._tensor.contractions import contracted

if TYPE_CHECKING:
    from kiln.tensor import Tensor

Axes = Optional[Union[int, Sequence[int]]]


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


class Reductions(Casting):
    """Reductions take `dim` (None: all; one or several) and `keepdim`, or axis and keepdims."""

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
        return self._tensor.sub(other).norm()

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

    def matmul(self, other: Any) -> "Tensor":
        """Returns the matrix product, as in NumPy; for bools, whether any product is true.

        >>> kiln.tensor([[1, 2], [3, 4]]).matmul(kiln.tensor([[1, 2], [3, 4]])).tolist()
        [[7, 10], [15, 22]]
        """
        return contracted("matmul", (self._tensor, other))

    mm = bmm = matmul

    def dot(self, other: "Tensor") -> "Tensor":
        """Returns the inner product of two vectors. Raises InvalidArgument for other shapes.

        >>> kiln.tensor([1.0, 4.0]).dot(kiln.tensor([1.0, 4.0])).item()
        17.0
        """
        if self.ndim != 1 or other.ndim != 1:
            raise InvalidArgument(
                f"dot of shapes {self.shape} and {other.shape}; both must be vectors")
        return self.matmul(other)
