"""Pooling: with sliding windows, and adaptive, with a result of a given size."""

from typing import Any, Optional, Sequence, Tuple, Union

from kiln._array_api.creation import ones_like
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._rules import NUMBER, flag, whole
from kiln.functional._arguments import Sizes, spread
from kiln.tensor import Tensor, apply


def max_pool1d(input: Tensor, kernel_size: Sizes, stride: Optional[Sizes] = None,
               padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False) -> Tensor:
    """Returns the largest element of each window over the last dimension.

    stride defaults to the kernel's size. Padding never wins. The first of equal elements gets the
    gradient, as in PyTorch. With ceil_mode the last window may extend past the end.

    >>> F.max_pool1d(kiln.tensor([1.0, 3.0, 2.0, 5.0, 4.0]), 2).tolist()
    [3.0, 5.0]
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(input: Tensor, kernel_size: Sizes, stride: Optional[Sizes] = None,
               padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False) -> Tensor:
    """Returns the largest element of each window over the last two dimensions; see max_pool1d.

    >>> F.max_pool2d(kiln.arange(16).reshape(4, 4), 2).tolist()
    [[5, 7], [13, 15]]
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(input: Tensor, kernel_size: Sizes, stride: Optional[Sizes] = None,
               padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False) -> Tensor:
    """Returns the largest element of each window over the last three dimensions; see max_pool1d.

    >>> F.max_pool3d(kiln.arange(8).reshape(2, 2, 2), 2).tolist()
    [[[7]]]
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)


def _stride(stride: Optional[Sizes], kernel: Tuple[int, ...]) -> Tuple[int, ...]:
    empty = stride is None or (not isinstance(stride, NUMBER) and len(stride) == 0)
    return kernel if empty else spread(stride, len(kernel), "stride")  # type: ignore[arg-type]


def _pool(name: str, rank: int, x: Tensor, kernel_size: Sizes, stride: Optional[Sizes],
          padding: Sizes, ceil_mode: bool, **attributes: Any) -> Tensor:
    kernel = spread(kernel_size, rank, "kernel_size")
    return apply(f"{name}{rank}d", (x,), kernel=kernel, stride=_stride(stride, kernel),
                 padding=spread(padding, rank, "padding"), ceil_mode=flag(ceil_mode, "ceil_mode"),
                 **attributes)


def _max_pool(rank: int, x: Tensor, kernel_size: Sizes, stride: Optional[Sizes], padding: Sizes,
              dilation: Sizes, ceil_mode: bool) -> Tensor:
    return _pool("max_pool", rank, x, kernel_size, stride, padding, ceil_mode,
                 dilation=spread(dilation, rank, "dilation"))


def avg_pool1d(input: Tensor, kernel_size: Sizes, stride: Optional[Sizes] = None,
               padding: Sizes = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:
    """Returns the mean of each window over the last dimension.

    stride defaults to the kernel's size. Padding counts as zeros unless count_include_pad is False;
    elements added by ceil_mode never count. The dtype is a float, or int64 with means rounded
    towards 0, as in PyTorch; others raise InvalidArgument.

    >>> F.avg_pool1d(kiln.tensor([1.0, 3.0, 2.0, 6.0]), 2).tolist()
    [2.0, 4.0]
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(input: Tensor, kernel_size: Sizes, stride: Optional[Sizes] = None,
               padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: Optional[int] = None) -> Tensor:
    """Returns the mean of each window over the last two dimensions; see avg_pool1d.

    divisor_override divides the sums in place of the count.

    >>> F.avg_pool2d(kiln.ones(2, 2), 2, divisor_override=2).item()
    2.0
    """
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override)


def avg_pool3d(input: Tensor, kernel_size: Sizes, stride: Optional[Sizes] = None,
               padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: Optional[int] = None) -> Tensor:
    """Returns the mean of each window over the last three dimensions; see avg_pool2d.

    >>> F.avg_pool3d(kiln.ones(1, 2, 2, 2), 2).item()
    1.0
    """
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override)


def _avg_pool(rank: int, x: Tensor, kernel_size: Sizes, stride: Optional[Sizes], padding: Sizes,
              ceil_mode: bool, count_include_pad: bool, divisor: Optional[int]) -> Tensor:
    if divisor is not None and whole(divisor, "divisor_override") < 1:
        raise InvalidArgument(f"divisor_override is {divisor}; it must be positive")
    if x.dtype is not dtypes.int64 and not x.dtype.is_float:
        raise InvalidArgument(
            f"avg_pool{rank}d of {x.dtype.name}; it must be of floats or int64, cast it first")

    def pool(of: Tensor, by: Optional[int]) -> Tensor:
        return _pool("avg_pool", rank, of, kernel_size, stride, padding, ceil_mode,
                     count_include_pad=flag(count_include_pad, "count_include_pad"),
                     divisor_override=0 if by is None else by)

    if x.dtype.is_float:
        return pool(x, divisor)
    # float64 holds the sums of either half of the bits exactly.
    high, low = (pool(half.double(), 1).long() for half in (x >> 32, x & 0xFFFFFFFF))
    total = (high << 32) + low
    if divisor is not None:
        return total.div(divisor, rounding_mode="trunc")
    ones = ones_like(x, dtypes.float64)
    counts = (pool(ones, 1) / pool(ones, None)).round().long()
    return total.div(counts, rounding_mode="trunc")


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Sizes,
              stride: Optional[Sizes] = None, ceil_mode: bool = False) -> Tensor:
    """The norm_type-th root of the sum of each window's elements to the power norm_type.

    >>> F.lp_pool1d(kiln.tensor([3.0, 4.0]), 2, 2).tolist()
    [5.0]
    """
    return _pool("lp_pool", 1, input, kernel_size, stride, 0, ceil_mode, norm=float(norm_type))


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Sizes,
              stride: Optional[Sizes] = None, ceil_mode: bool = False) -> Tensor:
    """lp_pool1d over the last two dimensions.

    >>> F.lp_pool2d(kiln.ones(2, 2), 1, 2).item()
    4.0
    """
    return _pool("lp_pool", 2, input, kernel_size, stride, 0, ceil_mode, norm=float(norm_type))


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Sizes,
              stride: Optional[Sizes] = None, ceil_mode: bool = False) -> Tensor:
    """lp_pool1d over the last three dimensions.

    >>> F.lp_pool3d(kiln.ones(2, 2, 2), 1, 2).item()
    8.0
    """
    return _pool("lp_pool", 3, input, kernel_size, stride, 0, ceil_mode, norm=float(norm_type))


# One size for all spatial dimensions or one for each; None keeps a dimension's size.
AdaptiveSizes = Union[int, None, Sequence[Optional[int]]]


def _adaptive(name: str, rank: int, x: Tensor, output_size: AdaptiveSizes) -> Tensor:
    if x.ndim < rank:
        raise InvalidArgument(f"{name}{rank}d of shape {x.shape}; it needs {rank} dimensions")
    each = (output_size,) * rank if output_size is None or isinstance(output_size, NUMBER) else (
        tuple(output_size))
    if len(each) != rank:
        raise InvalidArgument(f"output_size {each} of {name}{rank}d; it needs {rank} entries")
    spatial = x.shape[x.ndim - rank :]
    return x._op(name, size=tuple(
        old if size is None else whole(size, "output_size") for old, size in zip(spatial, each)))


def adaptive_avg_pool1d(input: Tensor, output_size: AdaptiveSizes) -> Tensor:
    """Divides the last dimension into output_size parts and returns their means.

    >>> F.adaptive_avg_pool1d(kiln.arange(6).float(), 3).tolist()
    [0.5, 2.5, 4.5]
    """
    return _adaptive("adaptive_avg_pool", 1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: AdaptiveSizes) -> Tensor:
    """Returns the means of parts of the last two dimensions; None keeps a size.

    >>> F.adaptive_avg_pool2d(kiln.ones(2, 3, 7, 7), 1).shape
    (2, 3, 1, 1)
    """
    return _adaptive("adaptive_avg_pool", 2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: AdaptiveSizes) -> Tensor:
    """Returns the means of parts of the last three dimensions; None keeps a size.

    >>> F.adaptive_avg_pool3d(kiln.ones(2, 4, 5, 6), (2, None, 3)).shape
    (2, 2, 5, 3)
    """
    return _adaptive("adaptive_avg_pool", 3, input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size: AdaptiveSizes) -> Tensor:
    """Divides the last dimension into output_size parts and returns their largest elements.

    >>> F.adaptive_max_pool1d(kiln.arange(6), 3).tolist()
    [1, 3, 5]
    """
    return _adaptive("adaptive_max_pool", 1, input, output_size)


def adaptive_max_pool2d(input: Tensor, output_size: AdaptiveSizes) -> Tensor:
    """Returns the largest elements of parts of the last two dimensions; None keeps a size.

    >>> F.adaptive_max_pool2d(kiln.arange(4).reshape(2, 2), 1).tolist()
    [[3]]
    """
    return _adaptive("adaptive_max_pool", 2, input, output_size)


def adaptive_max_pool3d(input: Tensor, output_size: AdaptiveSizes) -> Tensor:
    """Returns the largest elements of parts of the last three dimensions; None keeps a size.

    >>> F.adaptive_max_pool3d(kiln.arange(8).reshape(2, 2, 2), 1).tolist()
    [[[7]]]
    """
    return _adaptive("adaptive_max_pool", 3, input, output_size)
