"""Padding and interpolation."""

from typing import Any, Optional, Sequence, Tuple, Union

from kiln._basics.errors import InvalidArgument
from kiln._rules import flag, whole
from kiln.functional._arguments import Sizes, spread
from kiln.functional.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from kiln.tensor import Tensor

_BORDERS = ("reflect", "replicate", "circular")


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = 0) -> Tensor:
    """Pads as PyTorch: pad is (before, after) of the last dimension, of the one before, …

    Mode "constant" fills with value, "reflect" mirrors without repeating the edge, "replicate"
    repeats the edge, "circular" continues with the other end. Negative amounts crop.

    >>> F.pad(kiln.tensor([1, 2, 3]), (1, 2)).tolist()
    [0, 1, 2, 3, 0, 0]
    >>> F.pad(kiln.tensor([1, 2, 3]), (1, 2), mode="reflect").tolist()
    [2, 1, 2, 3, 2, 1]
    """
    amounts = _amounts(input, pad)
    cut = [(max(0, -before), size - max(0, -after))
           for (before, after), size in zip(amounts, input.shape)]
    if any(begin > end for begin, end in cut):
        raise InvalidArgument(f"pad {tuple(pad)} cuts off more than shape {input.shape} has")
    if any((begin, end) != (0, size) for (begin, end), size in zip(cut, input.shape)):
        input = input._op("shrink", bounds=tuple(part for ends in cut for part in ends))
    padding = tuple(max(0, part) for ends in amounts for part in ends)
    if mode == "constant":
        return input._padded(padding, value)
    if mode not in _BORDERS:
        raise InvalidArgument(
            f'pad: mode is "{mode}"; it must be "constant", "reflect", "replicate" or "circular"')
    _check_border(input, padding, mode)
    return input._op(f"pad_{mode}", padding=padding)


def _amounts(x: Tensor, padding: Sequence[int]) -> Tuple[Tuple[int, int], ...]:
    if len(padding) % 2 or len(padding) > 2 * x.ndim:
        raise InvalidArgument(
            f"pad {tuple(padding)} of a tensor with {x.ndim} dimensions; it must be pairs, for at "
            "most as many dimensions, the last one first")
    pairs = [(whole(padding[i], "pad"), whole(padding[i + 1], "pad"))
             for i in range(0, len(padding), 2)]
    return ((0, 0),) * (x.ndim - len(pairs)) + tuple(reversed(pairs))


def _check_border(x: Tensor, padding: Tuple[int, ...], mode: str) -> None:
    for i, size in enumerate(x.shape):
        wanted = max(padding[2 * i : 2 * i + 2])
        elements_max = {"reflect": size - 1, "circular": size}.get(mode, wanted if size else 0)
        if wanted > elements_max:
            raise InvalidArgument(
                f"pad: {wanted} elements beyond dimension {i} of shape {x.shape}; mode "
                f'"{mode}" can repeat {max(elements_max, 0)}')


# PyTorch's modes: the op's mode and the number of spatial dimensions; 0: any number.
_MODES = {
    "nearest": ("nearest", 0), "nearest-exact": ("nearest-exact", 0), "linear": ("linear", 1),
    "bilinear": ("linear", 2), "trilinear": ("linear", 3), "bicubic": ("cubic", 2),
    "area": ("area", 0),
}  # fmt: skip


def interpolate(input: Tensor, size: Optional[Sizes] = None,
                scale_factor: Union[float, Sequence[float], None] = None, mode: str = "nearest",
                align_corners: Optional[bool] = None,
                recompute_scale_factor: Optional[bool] = None) -> Tensor:
    """Resamples the spatial dimensions of input (N, C, spatial…) to a size or by a factor.

    mode: "nearest", "nearest-exact", "linear" (3 dimensions), "bilinear" and "bicubic" (4),
    "trilinear" (5) or "area". align_corners aligns the first and last samples of input and
    result. With a scale_factor, samples are 1 / scale_factor apart, unless
    recompute_scale_factor. Integers stay integers, rounded to the nearest.

    >>> F.interpolate(kiln.tensor([[[1.0, 3.0]]]), size=4, mode="linear").tolist()
    [[[1.0, 1.5, 2.5, 3.0]]]
    """
    rank = input.ndim - 2
    kind = _checked_mode(input, mode, align_corners)
    if (size is None) == (scale_factor is None):
        raise InvalidArgument("interpolate needs a size or a scale_factor, not both")
    if size is not None:
        wanted, scales = spread(size, rank, "size"), (0.0,) * rank
    else:
        scales = _scales(scale_factor, rank)
        wanted = tuple(int(old * by) for old, by in zip(input.shape[2:], scales))
        if recompute_scale_factor:
            scales = (0.0,) * rank
    if kind == "area":
        pools = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)
        result = pools[rank - 1](input, wanted)
        return result if input.dtype.is_float else result.round().cast(input.dtype)
    corners = align_corners is not None and flag(align_corners, "align_corners")
    return _resample(input, wanted, scales, kind, corners)


def _checked_mode(x: Tensor, mode: str, align_corners: Optional[bool]) -> str:
    if mode not in _MODES:
        raise InvalidArgument(
            f'interpolate: mode is "{mode}"; it must be one of {", ".join(_MODES)}')
    kind, rank = _MODES[mode]
    if not 3 <= x.ndim <= 5 or rank not in (0, x.ndim - 2):
        wanted = f"{rank + 2} dimensions" if rank else "3 to 5 dimensions"
        raise InvalidArgument(
            f'interpolate of shape {x.shape} in mode "{mode}"; it must have {wanted}, batch and '
            "channels first")
    if align_corners is not None and kind not in ("linear", "cubic"):
        raise InvalidArgument(f'interpolate: align_corners has no meaning in mode "{mode}"')
    return kind


def _scales(scale_factor: Any, rank: int) -> Tuple[float, ...]:
    one = isinstance(scale_factor, (int, float))
    scales = (float(scale_factor),) * rank if one else tuple(float(by) for by in scale_factor)
    if len(scales) != rank or min(scales) <= 0:
        raise InvalidArgument(
            f"scale_factor {scale_factor} for {rank} spatial dimensions; it must be positive, one "
            "number or one for each")
    return scales


def _resample(x: Tensor, size: Tuple[int, ...], scales: Tuple[float, ...], kind: str,
              align_corners: bool) -> Tensor:
    if len(set(scales)) == 1:
        return x._op("interpolate", size=size, mode=kind, align_corners=align_corners,
                     scale=scales[0])
    # The op has one scale for all dimensions, so each dimension is resampled separately.
    for i, scale in enumerate(scales):
        axis = 2 + i
        last = x.transpose(axis, -1)
        resized = last._op("interpolate", size=(size[i],), mode=kind,
                           align_corners=align_corners, scale=scale)
        x = resized.transpose(axis, -1)
    return x
