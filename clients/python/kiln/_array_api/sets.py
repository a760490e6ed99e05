"""Distinct values. Their number depends on the values, which are read: not possible in kiln.jit."""

from typing import Any, NamedTuple

import numpy as np

from kiln._array_api.operands import Operand
from kiln._basics import conversion
from kiln._graph import realize
from kiln._tensor.base import tensor_of
from kiln.tensor import Tensor


class UniqueAll(NamedTuple):
    """The result of unique_all()."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of unique_counts()."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of unique_inverse()."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """Returns the sorted distinct values, the first index of each, the inverse and the counts.

    The inverse, of x's shape, says which of the values each element is. Every NaN is distinct. All
    except the values are int64. Raises TraceError within kiln.jit.

    >>> [part.tolist() for part in kiln.unique_all(kiln.tensor([2, 1, 2]))]
    [[1, 2], [1, 0], [1, 0, 1], [1, 2]]
    """
    realize.refuse_in_trace("unique_…")
    values, indices, inverse, counts = np.unique(
        x.numpy(), return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    places = [Tensor(part.astype(np.int64)) for part in (indices, inverse, counts)]
    # NumPy's versions differ in the shape of the inverse.
    return UniqueAll(
        Tensor(values, x.dtype), places[0], places[1].reshape(x.shape), places[2])


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Returns the sorted distinct values, and how often each occurs; see unique_all.

    >>> [part.tolist() for part in kiln.unique_counts(kiln.tensor([2, 1, 2]))]
    [[1, 2], [1, 2]]
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Returns the sorted distinct values, and which of them each element is; see unique_all.

    >>> [part.tolist() for part in kiln.unique_inverse(kiln.tensor([2, 1, 2]))]
    [[1, 2], [1, 0, 1]]
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """Returns the sorted distinct values; see unique_all.

    >>> kiln.unique_values(kiln.tensor([2, 1, 2])).tolist()
    [1, 2]
    """
    return unique_all(x).values


def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> Tensor:
    """Returns whether each element of x1 is in x2 (or, with invert, is not).

    The result has x1's shape and is bool.

    >>> kiln.isin(kiln.tensor([1, 2, 3]), kiln.tensor([2, 4])).tolist()
    [False, True, False]
    """
    elements = tensor_of(x1) if isinstance(x1, Tensor) else Tensor(
        x1, conversion.weak_dtype(x1, x2.dtype) if isinstance(x2, Tensor) else None)
    found = elements.unsqueeze(-1).eq(tensor_of(x2).flatten()).any(-1)
    return found.logical_not() if invert else found


def unique(x: Tensor, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """Returns the sorted distinct values and, on request, inverse and counts; see unique_all.

    >>> kiln.tensor([2, 1, 2]).unique().tolist()
    [1, 2]
    """
    found = unique_all(x)
    result = [found.values]
    result += [found.inverse_indices] if return_inverse else []
    result += [found.counts] if return_counts else []
    return tuple(result) if len(result) > 1 else result[0]
