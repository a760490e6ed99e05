"""Distributions and correlations of samples, and interpolation, with NumPy's names."""

from typing import Optional, Tuple, Union

from kiln._array_api.creation import full, linspace, zeros_like
from kiln._array_api.linear_algebra import diagonal
from kiln._array_api.operands import Operand
from kiln._array_api.sorting import searchsorted
from kiln._array_api.statistical import sum
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._basics.keywords import torch_names
from kiln._graph import realize
from kiln._graph.checks import Limit, check
from kiln._rules import normalize_axis, whole
from kiln._tensor.base import tensor_of
from kiln._tensor.constructors import concat, where
from kiln._tensor.selection import with_checks
from kiln.tensor import Tensor


def bincount(x: Tensor, /, weights: Optional[Tensor] = None, minlength: int = 0, *,
             length: Optional[int] = None) -> Tensor:
    """Counts each of 0, 1, 2, … in a vector of integers, or adds up their weights.

    `length` is the result's; values from `length` on are ignored. Without it the largest value is
    read (a TraceError within kiln.jit), and minlength is the shortest result. A negative value
    raises IndexError: at once if it is known in this process, else with the next value that is
    read. Counts are int64, sums have the dtype of the weights.

    >>> kiln.bincount(kiln.tensor([0, 2, 2]), length=4).tolist()
    [1, 0, 2, 0]
    """
    if x.ndim != 1:
        raise InvalidArgument(f"bincount of shape {x.shape}; it must be a vector")
    minlength = whole(minlength, "minlength")
    if length is None:
        realize.refuse_in_trace("bincount without length")
        largest = int(x.max().item()) if x.numel() else -1
        length = largest + 1 if largest + 1 > minlength else minlength
    return with_checks(_counted(x, weights, whole(length, "length")),
                       check(x._node, Limit("bincount", None, what="value")))


def _counted(places: Tensor, weights: Optional[Tensor], length: int) -> Tensor:
    """Counts each place, or adds up its weights; ignores places outside [0, length)."""
    if weights is None:
        weights = full(places.shape, 1, dtype=dtypes.int64)
    zeros = full((length,), 0, dtype=weights.dtype)
    return zeros._op("scatter_add", places, weights, axis=0)


def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Counts the elements in each of `bins` equal parts of [min, max], in x's dtype.

    If min and max are equal, the smallest and the largest element are used. Elements outside, and
    NaN, are not counted. x is a float; other dtypes, no bins, and max below min raise
    InvalidArgument.

    >>> kiln.histc(kiln.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3).tolist()
    [0.0, 2.0, 1.0, 0.0]
    """
    if not x.dtype.is_float:
        raise InvalidArgument(f"histc of {x.dtype.name}; it must be float, cast it first")
    if whole(bins, "bins") < 1 or max < min:
        raise InvalidArgument(
            f"histc with {bins} bins from {min} to {max}; there must be at least 1 bin, and max "
            "must not be below min")
    values = x.flatten()
    low, high = full((), min, dtype=x.dtype), full((), max, dtype=x.dtype)
    if min == max and values.numel():
        low, high = values.min(), values.max()
        one = (low == high).cast(x.dtype)  # a range of length 2 around a single value
        low, high = low - one, high + one
    place = ((values - low) * bins / (high - low)).floor()
    place = where(values == high, bins - 1.0, place)
    inside = (values >= low) & (values <= high)
    place = where(inside, place.cast(dtypes.int64), bins)
    return _counted(place, None, bins).cast(x.dtype)


def histogram(x: Tensor, bins: Union[int, Tensor] = 10,
              range: Optional[Tuple[float, float]] = None, *,
              weights: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    """Returns the number of elements in each bin (or the sum of weights), and the bins' edges.

    `bins` are edges, or their number over `range`, by default from the smallest to the largest
    element. A bin includes its left edge, the last one both; elements outside are not counted.
    Counts are int64. Raises InvalidArgument for fewer than 1 bin.

    >>> [part.tolist() for part in kiln.histogram(kiln.tensor([1.0, 2.0, 1.0]), 2, (0.0, 2.0))]
    [[0, 3], [0.0, 1.0, 2.0]]
    """
    values = x.flatten() if x.dtype.is_float else x.flatten().cast(dtypes.float32)
    if isinstance(bins, Tensor):
        edges = bins
    elif whole(bins, "bins") < 1:
        raise InvalidArgument(f"histogram with {bins} bins; there must be at least 1")
    elif range is not None:
        edges = linspace(*range, bins + 1, dtype=values.dtype)
    else:
        low, high = values.min(), values.max()
        parts = linspace(0.0, 1.0, bins + 1, dtype=values.dtype)
        edges = low + (high - low) * parts
    count = edges.shape[0] - 1
    place = searchsorted(edges, values, side="right") - 1
    place = where(values.eq(edges[-1]), count - 1, place)
    flat = None if weights is None else weights.flatten()
    return _counted(place, flat, count), edges


def cov(x: Tensor, /, *, correction: float = 1.0) -> Tensor:
    """Returns the covariances of variables (rows) over observations (columns).

    For one variable it is the variance, without dimensions.

    >>> kiln.cov(kiln.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    if x.ndim > 2:
        raise InvalidArgument(f"cov of shape {x.shape}; it must be (variables, observations)")
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    far = rows - rows.mean(1, keepdim=True)
    freedom = (full((), rows.shape[1], dtype=far.dtype) - float(correction)).clamp_min(0)
    result = (far @ far.mT) / freedom
    return result.reshape(()) if rows.shape[0] == 1 else result


def corrcoef(x: Tensor, /) -> Tensor:
    """Returns the correlations of variables (rows) over observations (columns).

    For one variable it is 1, without dimensions.

    >>> kiln.corrcoef(kiln.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    covariance = cov(x)
    if covariance.ndim == 0:
        return covariance / covariance
    deviation = diagonal(covariance).sqrt()
    return (covariance / deviation.unsqueeze(1) / deviation).clip(-1.0, 1.0)


def interp(x: Operand, xp: Tensor, fp: Tensor, /, *, left: Optional[float] = None,
           right: Optional[float] = None) -> Tensor:
    """Interpolates linearly between the points (xp, fp) at x; xp increases.

    Outside of xp the result is left or right, by default the first or last fp. Gradients flow to
    all three. Raises InvalidArgument unless xp and fp are vectors of one size.

    >>> kiln.interp(kiln.tensor([0.5, 3.0]), kiln.tensor([0.0, 1.0]),
    ...             kiln.tensor([10.0, 20.0])).tolist()
    [15.0, 20.0]
    """
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.shape[0]:
        raise InvalidArgument(
            f"interp through points of shapes {xp.shape} and {fp.shape}; they must be vectors of "
            "one size")
    asked = tensor_of(x)
    if xp.shape[0] == 1:
        inside = fp[0] + asked * 0
    else:
        above = searchsorted(xp, asked, side="right").clip(1, xp.shape[0] - 1)
        (x0, x1), (y0, y1) = [
            [points._op("gather", place, axis=0) for place in (above - 1, above)]
            for points in (xp, fp)]
        inside = y0 + (asked - x0) * ((y1 - y0) / (x1 - x0))
    low = fp[0] if left is None else left
    high = fp[-1] if right is None else right
    return where(asked < xp[0], low, where(asked > xp[-1], high, inside))


@torch_names
def trapezoid(y: Tensor, x: Optional[Tensor] = None, *, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Integrates by the trapezoidal rule along an axis, at places x, or dx apart.

    >>> kiln.trapezoid(kiln.tensor([1.0, 2.0, 3.0])).item()
    4.0
    """
    place = normalize_axis(axis, y.ndim)
    length = y.shape[place]
    if length < 2:
        return sum(zeros_like(y), axis=place)
    means = (y.narrow(place, 1, length - 1) + y.narrow(place, 0, length - 1)) * 0.5
    if x is None:
        return sum(means * dx, axis=place)
    steps_axis = place if x.ndim == y.ndim else 0
    count = x.shape[steps_axis] - 1
    steps = x.narrow(steps_axis, 1, count) - x.narrow(steps_axis, 0, count)
    if x.ndim == 1 and y.ndim > 1:
        steps = steps.reshape([-1 if i == place else 1 for i in range(y.ndim)])
    return sum(means * steps, axis=place)


def vander(x: Tensor, /, n: Optional[int] = None, *, increasing: bool = False) -> Tensor:
    """Returns powers of a vector's elements as columns, the highest first unless `increasing`.

    >>> kiln.vander(kiln.tensor([1, 2, 3]), 3).tolist()
    [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    """
    if x.ndim != 1:
        raise InvalidArgument(f"vander of shape {x.shape}; it must be a vector")
    count = x.shape[0] if n is None else n
    ones = full((x.shape[0], 1), 1, dtype=x.dtype)
    if count < 2:
        return ones.narrow(1, 0, count)
    repeated = x.unsqueeze(1).expand((x.shape[0], count - 1))
    powers = concat([ones, repeated._op("cumulative_prod", axis=1)], 1)
    return powers if increasing else powers.flip(1)
