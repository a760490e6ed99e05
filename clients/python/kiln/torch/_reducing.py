"""Reductions, orders and statistics that Kiln lacks or PyTorch defines otherwise."""

import math
from typing import Any, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from kiln._array_api import nan_statistics, samples, sorting, utility
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._rules import normalize_axis
from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _defaults
from kiln.torch._scalars import as_rows
from kiln.torch._tensor import Tensor, ValuesAndIndices, adopt, convert


class AMinMax(NamedTuple):
    """The smallest and the largest elements."""

    min: Any
    max: Any


class Histogram(NamedTuple):
    """Counts, and the edges of what was counted."""

    hist: Any
    bin_edges: Any


def _cast(x: Any, dtype: Any) -> Any:
    return x if dtype is None else x._cast(_defaults.as_dtype(dtype))


def _dims(dim: Any) -> Any:
    """Returns None for no dimensions: PyTorch reduces all of them then."""
    return None if isinstance(dim, (tuple, list)) and not dim else dim


def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,
        axis: Any = None, keepdims: Any = None) -> Any:
    """Returns the sum; integers and bools become int64."""
    return KilnTensor.sum(convert(input), _dims(dim if axis is None else axis),
                          keepdim if keepdims is None else keepdims, dtype)


def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,
         axis: Any = None, keepdims: Any = None) -> Any:
    """Returns the mean of floats."""
    return KilnTensor.mean(_cast(convert(input), dtype), _dims(dim if axis is None else axis),
                           keepdim if keepdims is None else keepdims)


def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Returns the product; integers and bools become int64."""
    return KilnTensor.prod(_cast(convert(input), dtype), dim, keepdim)


def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running sums along `dim`."""
    return KilnTensor.cumsum(_cast(convert(input), dtype), dim)


def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running products along `dim`."""
    return KilnTensor.cumprod(_cast(convert(input), dtype), dim)


def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Returns the sum without NaN."""
    x = _cast(convert(input), dtype)
    return sum(x.where(~x.isnan(), 0), dim, keepdim)


def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Returns the mean without NaN."""
    return nan_statistics.nanmean(_cast(convert(input), dtype), axis=_dims(dim), keepdims=keepdim)


def median(input: Any, dim: Optional[int] = None, keepdim: bool = False) -> Any:
    """Returns the lower of the middle two elements; along a dim also its index."""
    x = convert(input)
    if dim is None and not x.numel() and x.dtype.is_float:
        return convert(math.nan, x.dtype)
    found = KilnTensor.median(x, dim, keepdim)
    return _shared(x, found) if dim is None else found


def _shared(x: Any, found: Any) -> Any:
    """Returns an element that was found in x; those that equal it share its gradient."""
    if not x.requires_grad:
        return found
    same = (x == found) | (x.isnan() & found.isnan())
    return x.where(same, -math.inf).amax()


def nanmedian(input: Any, dim: Optional[int] = None, keepdim: bool = False) -> Any:
    """Returns the median without NaN, the lower of the middle two; along a dim also its index."""
    x = convert(input)
    if dim is None:
        return _shared(x, nanmedian(x.reshape(-1), 0).values)
    axis = normalize_axis(dim, x.ndim)
    count = (~x.isnan()).sum(axis, keepdim=True)
    order = x.argsort(axis)  # NaN comes last
    place = order.gather(axis, ((count - 1).clamp(min=0)) // 2)
    values = x.gather(axis, place)
    if not keepdim:
        return ValuesAndIndices(values.squeeze(axis), place.squeeze(axis))
    return ValuesAndIndices(values, place)


def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Returns the most frequent element along `dim`, the smallest of several, and an index."""
    x = convert(input)
    axis = normalize_axis(dim, x.ndim)
    rows = x.movedim(axis, -1)
    same = rows.unsqueeze(-1) == rows.unsqueeze(-2)
    counts = same.sum(-1)
    most = counts.amax(-1, keepdim=True)
    value = _largest_where(rows, counts == most)
    last = (rows == value).long() * (1 + convert(np.arange(rows.shape[-1])))
    place = last.argmax(-1, keepdim=True)
    values = rows.gather(-1, place).movedim(-1, axis)
    place = place.movedim(-1, axis)
    if keepdim:
        return ValuesAndIndices(values, place)
    return ValuesAndIndices(values.squeeze(axis), place.squeeze(axis))


def _largest_where(rows: Any, chosen: Any) -> Any:
    """Returns the smallest of the chosen elements."""
    return rows.where(chosen, rows.amax(-1, keepdim=True)).amin(-1, keepdim=True)


def msort(input: Any) -> Any:
    """Returns the elements sorted along dimension 0."""
    return convert(input).sort(0).values


def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Returns the elements sorted along `dim`, and their former places."""
    return KilnTensor.sort(convert(input), dim, descending, True)


def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Returns the indices of the sorted elements."""
    return KilnTensor.argsort(convert(input), dim, descending)


def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Returns the k largest (or smallest) elements along `dim` in order, and their indices."""
    return KilnTensor.topk(convert(input), k, dim, largest)


def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Returns the k-th smallest element along `dim`, and its index."""
    return sorting.kthvalue(convert(input), k, dim, keepdims=keepdim)


def aminmax(input: Any, *, dim: Optional[int] = None, keepdim: bool = False) -> Any:
    """Returns the smallest and the largest element."""
    x = convert(input)
    return AMinMax(x.amin(dim, keepdim), x.amax(dim, keepdim))


def quantile(input: Any, q: Any, dim: Optional[int] = None, keepdim: bool = False, *,
             interpolation: str = "linear") -> Any:
    """Returns quantiles along `dim`, or of all elements."""
    x = convert(input)
    return _quantile(x, q, dim, keepdim, interpolation, x.isnan())


def nanquantile(input: Any, q: Any, dim: Optional[int] = None, keepdim: bool = False, *,
                interpolation: str = "linear") -> Any:
    """Returns quantiles without NaN."""
    return _quantile(convert(input), q, dim, keepdim, interpolation, None)


def _quantile(x: Any, q: Any, dim: Optional[int], keepdim: bool, interpolation: str,
              spoiled: Any) -> Any:
    wanted = convert(q, x.dtype)
    rank = x.ndim
    if not rank and dim is not None:
        normalize_axis(dim, 1)
        dim = None
    axis = 0 if dim is None else normalize_axis(dim, rank)
    rows = (x.reshape(-1) if dim is None else x.movedim(axis, -1)).sort(-1).values
    nan = x.isnan().reshape(-1) if dim is None else x.isnan().movedim(axis, -1)
    count = (~nan).sum(-1, keepdim=True)._cast(x.dtype)
    if spoiled is not None:
        count = count * 0 + rows.shape[-1]
    place = wanted.reshape(-1, *[1] * (rows.ndim - 1), 1) * (count - 1).clamp(min=0)
    low, high = place.floor(), place.ceil()
    table = rows.unsqueeze(0).expand(wanted.numel(), *rows.shape)
    below, above = table.gather(-1, low.long()), table.gather(-1, high.long())
    share = place - low
    if interpolation == "linear":
        found = below + (above - below) * share
    elif interpolation in ("lower", "higher", "nearest", "midpoint"):
        found = {"lower": below, "higher": above, "midpoint": (below + above) / 2,
                 "nearest": table.gather(-1, place.round().long())}[interpolation]
    else:
        raise InvalidArgument(f'interpolation {interpolation!r}; it must be "linear", "lower", '
                              '"higher", "nearest" or "midpoint"')
    if spoiled is not None:
        found = found.where(~nan.any(-1, keepdim=True), math.nan)
    found = found.squeeze(-1)
    if keepdim:
        found = found.reshape(-1, *[1] * rank) if dim is None else found.unsqueeze(axis + 1)
    return found.squeeze(0) if wanted.ndim == 0 else found


def _spread(input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    x = convert(input)
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"unbiased={unbiased} and correction={correction}; give one of them")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return x, _dims(dim), correction, keepdim


def std(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None, axis: Any = None) -> Any:
    """Returns the standard deviation, the square root of var()."""
    x, along, less, keep = _spread(input, dim if axis is None else axis, unbiased, keepdim,
                                   correction)
    return KilnTensor.std(x, along, None, keep, correction=less)


def var(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None, axis: Any = None) -> Any:
    """Returns the variance, divided by N - correction, which is 1 by default."""
    x, along, less, keep = _spread(input, dim if axis is None else axis, unbiased, keepdim,
                                   correction)
    return KilnTensor.var(x, along, None, keep, correction=less)


@as_rows
def std_mean(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
             correction: Any = None) -> Tuple[Any, Any]:
    """Returns the standard deviation and the mean."""
    x, along, _, keep = _spread(input, dim, unbiased, keepdim, correction)
    return std(input, dim, unbiased, keepdim, correction=correction), KilnTensor.mean(
        x, along, keep)


@as_rows
def var_mean(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
             correction: Any = None) -> Tuple[Any, Any]:
    """Returns the variance and the mean."""
    x, along, _, keep = _spread(input, dim, unbiased, keepdim, correction)
    return var(input, dim, unbiased, keepdim, correction=correction), KilnTensor.mean(
        x, along, keep)


def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False,
         dtype: Any = None) -> Any:
    """Returns the vector norm of order p (2 for "fro"); "nuc" is the sum of singular values."""
    x = _cast(convert(input), dtype)
    if p == "nuc":
        from_values = np.linalg.norm(x.numpy(), "nuc")
        return adopt(KilnTensor(from_values, x.dtype))
    order = 2.0 if p in ("fro", None) else float(p)
    return KilnTensor.norm(x, order, _dims(dim), keepdim)


def dist(input: Any, other: Any, p: float = 2) -> Any:
    """Returns the p-norm of the difference."""
    return norm(convert(input) - convert(other), p)


def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """Counts the elements in each of `bins` equal parts of [min, max]."""
    return samples.histc(convert(input), bins, min, max)


def histogram(input: Any, bins: Any, *, range: Any = None, weight: Any = None,
              density: bool = False) -> Any:
    """Counts the elements between edges; computed by NumPy."""
    x = convert(input)
    edges = bins.numpy() if isinstance(bins, KilnTensor) else bins
    counts, found = np.histogram(
        x.numpy().reshape(-1), edges, range,
        weights=None if weight is None else convert(weight).numpy().reshape(-1), density=density)
    return Histogram(convert(counts, x.dtype), convert(found, x.dtype))


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Counts each of 0, 1, 2, … in a vector of integers, or adds up their weights."""
    given = None if weights is None else convert(weights)
    if given is not None and given.dtype is not dtypes.float32:
        given = given.double()
    return adopt(samples.bincount(convert(input), given, minlength))


def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Returns the covariances of variables, which are rows."""
    x = convert(input)
    if fweights is None and aweights is None:
        return samples.cov(x, correction=float(correction))
    weights = convert(1.0) if fweights is None else convert(fweights, x.dtype)
    if aweights is not None:
        weights = weights * convert(aweights, x.dtype)
    total = weights.sum()
    rows = x if x.ndim > 1 else x.unsqueeze(0)
    mean_of = (rows * weights).sum(1, keepdim=True) / total
    less = float(correction)
    if aweights is not None:
        less = less * ((weights * convert(aweights, x.dtype)).sum() / total)
    centred = rows - mean_of
    result = (centred * weights) @ centred.t() / (total - less)
    return result if x.ndim > 1 else result.squeeze()


def corrcoef(input: Any) -> Any:
    """Returns the correlations of variables, which are rows."""
    return samples.corrcoef(convert(input))


def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Returns the differences of neighbours along `dim`, n times."""
    return utility.diff(convert(input), axis=dim, n=n, prepend=prepend, append=append)


def trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    """Returns the integral along `dim` by the trapezoidal rule."""
    return _areas(convert(y), x, dx, dim).sum(dim)


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    """Returns the running integral along `dim` by the trapezoidal rule."""
    return _areas(convert(y), x, dx, dim).cumsum(dim)


def _areas(y: Any, x: Any, dx: float, dim: int) -> Any:
    axis = normalize_axis(dim, y.ndim)
    size = y.shape[axis]
    both = (y.narrow(axis, 1, size - 1) + y.narrow(axis, 0, size - 1)) / 2
    if x is None:
        return both * dx
    places = convert(x)
    if places.ndim == 1 and y.ndim > 1:
        places = places.reshape(*[-1 if i == axis else 1 for i in range(y.ndim)])
    return both * (places.narrow(axis if places.ndim == y.ndim else 0, 1, size - 1)
                   - places.narrow(axis if places.ndim == y.ndim else 0, 0, size - 1))


def count_nonzero(input: Any, dim: Any = None) -> Any:
    """Returns how many elements are not 0."""
    return KilnTensor.count_nonzero(convert(input), _dims(dim))


def searchsorted(sorted_sequence: Any, input: Any, *, out_int32: bool = False,
                 right: bool = False, side: Optional[str] = None, sorter: Any = None) -> Any:
    """Returns where elements would be inserted into sorted rows."""
    rows, x = convert(sorted_sequence), convert(input)
    if sorter is not None:
        rows = rows.gather(-1, convert(sorter))
    if rows.ndim > 1:
        below = rows.unsqueeze(-2) <= x.unsqueeze(-1) if right or side == "right" else (
            rows.unsqueeze(-2) < x.unsqueeze(-1))
        found = below.sum(-1)
    else:
        found = sorting.searchsorted(rows, x, side=side or ("right" if right else "left"))
    return found.int() if out_int32 else found


def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """Returns the number of the bucket of each element."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """log(sum(exp(x))), without overflow."""
    return KilnTensor.logsumexp(convert(input), _dims(dim), keepdim)


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False,
         invert: bool = False) -> Any:
    """Returns which elements are among others."""
    x, of = convert(elements), convert(test_elements).reshape(-1)
    found = (x.unsqueeze(-1) == of).any(-1)
    return ~found if invert else found


def equal(input: Any, other: Any) -> bool:
    """Returns whether shapes and all elements are equal."""
    return bool(KilnTensor.equal(convert(input), convert(other)))


def allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8,
             equal_nan: bool = False) -> bool:
    """Returns whether all elements are close."""
    return bool(KilnTensor.allclose(convert(input), convert(other), rtol, atol, equal_nan))


def histogramdd(input: Any, bins: Any, *, range: Any = None, weight: Any = None,
                density: bool = False) -> Any:
    """Counts rows in a grid; computed by NumPy."""
    x = convert(input)
    limits = None if range is None else list(zip(range[::2], range[1::2]))
    edges = [part.numpy() if isinstance(part, KilnTensor) else part for part in bins] if (
        isinstance(bins, Sequence)) else bins
    counts, found = np.histogramdd(
        x.numpy(), edges, limits, weights=None if weight is None else convert(weight).numpy(),
        density=density)
    return Histogram(convert(counts, x.dtype), tuple(convert(edge, x.dtype) for edge in found))


METHODS = (
    sum, mean, prod, cumsum, cumprod, nansum, nanmean, median, nanmedian, mode, msort, sort,
    argsort, topk, kthvalue, aminmax, quantile, nanquantile, std, var, norm, dist, histc,
    histogram, bincount, cov, corrcoef, diff, count_nonzero, logsumexp, equal, allclose,
)  # fmt: skip
FUNCTIONS = (
    std_mean, var_mean, trapezoid, cumulative_trapezoid, searchsorted, bucketize, isin, histogramdd,
)  # fmt: skip

for _function in METHODS:
    setattr(Tensor, _function.__name__, _function)
