"""Shapes of convolutions, pools and what else slides a window over spatial dimensions."""

from math import prod
from typing import Dict, List, NamedTuple, Sequence, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.shapes import Attributes, Shape, ShapeRule, check_shape
from kiln._rules.windows import window_positions

Ints = Tuple[int, ...]


class _Sliding(NamedTuple):
    """A window over spatial dimensions; every tuple has an entry for each of them."""

    size: Ints
    stride: Ints
    dilation: Ints
    before: Ints
    after: Ints


def spatial_rank(op: Op) -> int:
    """How many spatial dimensions the op has: the length of its default padding."""
    return next(len(a.default) for a in op.attributes if a.name == "padding" and a.default)


def _entries(attributes: Attributes, name: str, rank: int) -> Ints:
    values = tuple(attributes[name])
    if len(values) != rank:
        raise InvalidArgument(
            f'"{name}" has {len(values)} entries; it needs {rank}, one for each spatial dimension')
    return values


def _read_sliding(size: Sequence[int], stride: Ints, attributes: Attributes) -> _Sliding:
    rank = len(size)
    dilation = _entries(attributes, "dilation", rank) if "dilation" in attributes else (1,) * rank
    padding = tuple(attributes["padding"])
    if len(padding) not in (rank, 2 * rank):
        raise InvalidArgument(
            f'"padding" has {len(padding)} entries; it needs {rank}, one for each spatial '
            f"dimension, or {2 * rank}, before and after each")
    if len(padding) == rank:
        return _Sliding(tuple(size), stride, dilation, padding, padding)
    return _Sliding(tuple(size), stride, dilation, padding[::2], padding[1::2])


def _positions(spatial: Sequence[int], sliding: _Sliding) -> List[int]:
    result = []
    for i, length in enumerate(spatial):
        before, after = sliding.before[i], sliding.after[i]
        if before < 0 or after < 0:
            raise InvalidArgument(
                f"a padding of {before} and {after} on a dimension of size {length}; it must not "
                "be negative, nor huge")
        result.append(window_positions(
            length + before + after, sliding.size[i], sliding.stride[i], sliding.dilation[i]))
    return result


def _convolution_sliding(kernel: Sequence[int], attributes: Attributes) -> _Sliding:
    return _read_sliding(kernel, _entries(attributes, "stride", len(kernel)), attributes)


def _check_ranks(op: Op, shapes: Sequence[Shape], rank: int) -> None:
    x, weight = shapes[0], shapes[1]
    if len(x) != rank + 2 or len(weight) != rank + 2:
        raise InvalidArgument(
            f'"{op.name}" of x {x} and weight {weight}; both must have {rank + 2} dimensions: x '
            f"batch, channels and {rank} spatial ones")


def _check_bias(op: Op, shapes: Sequence[Shape], channels: int) -> None:
    if len(shapes) > 2 and shapes[2] != (channels,):
        raise InvalidArgument(
            f'"{op.name}" with a bias of shape {shapes[2]}; it must be {(channels,)}')


def _conv(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    rank, groups = spatial_rank(op), attributes["groups"]
    _check_ranks(op, shapes, rank)
    x, weight = shapes[0], shapes[1]
    if groups < 1 or x[1] % groups or weight[0] % groups:
        raise InvalidArgument(
            f'"{op.name}" in {groups} groups with {x[1]} channels in and {weight[0]} out; groups '
            "must divide both")
    if weight[1] != x[1] // groups:
        raise InvalidArgument(
            f'"{op.name}" of x {x} and weight {weight} in {groups} groups: the weight\'s dimension '
            f"1 must be {x[1] // groups}")
    _check_bias(op, shapes, weight[0])
    sliding = _convolution_sliding(weight[2:], attributes)
    return (x[0], weight[0], *_positions(x[2:], sliding))


def _spread(length: int, i: int, sliding: _Sliding, extra: int) -> int:
    size, stride, dilation = sliding.size[i], sliding.stride[i], sliding.dilation[i]
    if min(size, stride, dilation, length) < 1:
        raise InvalidArgument(
            f"a transposed convolution of a dimension of size {length} with kernel {size}, stride "
            f"{stride} and dilation {dilation}; each must be at least 1")
    if not 0 <= extra < max(stride, dilation):
        raise InvalidArgument(
            f'an "output_padding" of {extra}; it must be less than the stride ({stride}) or the '
            f"dilation ({dilation})")
    covered = (length - 1) * stride + (size - 1) * dilation + 1
    before, after = sliding.before[i], sliding.after[i]
    result = covered - before - after + extra
    if not 0 <= before < covered or not 0 <= after < covered or result < 1:
        raise InvalidArgument(
            f"a transposed convolution of a dimension of size {length} with kernel {size}, stride "
            f"{stride} and dilation {dilation} less a padding of {before} and {after}; at least "
            "one element must be left, and not too many")
    return result


def _conv_transpose(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    rank, groups = spatial_rank(op), attributes["groups"]
    _check_ranks(op, shapes, rank)
    x, weight = shapes[0], shapes[1]
    if weight[0] != x[1] or groups < 1 or x[1] % groups:
        raise InvalidArgument(
            f'"{op.name}" of x {x} and weight {weight} in {groups} groups: the weight\'s dimension '
            f"0 must be x's channels ({x[1]}), and groups divide them")
    channels = weight[1] * groups
    _check_bias(op, shapes, channels)
    sliding = _convolution_sliding(weight[2:], attributes)
    extra = _entries(attributes, "output_padding", rank)
    spatial = [_spread(length, i, sliding, extra[i]) for i, length in enumerate(x[2:])]
    return (x[0], channels, *spatial)


def _hanging(spatial: Sequence[int], sliding: _Sliding, positions: List[int]) -> List[int]:
    """One more window where some length is left over, if it starts before the last padding."""
    result = []
    for i, length in enumerate(spatial):
        following = positions[i] * sliding.stride[i]
        reach = (sliding.size[i] - 1) * sliding.dilation[i]
        covered = following - sliding.stride[i] + reach + 1
        whole = covered == length + sliding.before[i] + sliding.after[i]
        hangs = not whole and following < length + sliding.before[i]
        result.append(positions[i] + hangs)
    return result


def _pool(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x, rank = shapes[0], spatial_rank(op)
    kernel = _entries(attributes, "kernel", rank)
    if len(x) < rank:
        raise InvalidArgument(
            f'"{op.name}" of shape {x}; it needs at least {rank} dimensions, the spatial ones last')
    stride = _entries(attributes, "stride", rank) if attributes["stride"] else kernel
    sliding = _read_sliding(kernel, stride, attributes)
    for i, size in enumerate(kernel):
        most = max(sliding.before[i], sliding.after[i])
        if most > size // 2:
            raise InvalidArgument(
                f"a padding of {most} for a kernel of {size}; at most half the kernel makes sense")
    spatial = x[len(x) - rank :]
    positions = _positions(spatial, sliding)
    if attributes.get("ceil_mode"):
        positions = _hanging(spatial, sliding, positions)
    return (*x[: len(x) - rank], *positions)


def _resize(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x, size = shapes[0], tuple(attributes["size"])
    if not 0 < len(size) <= len(x):
        raise InvalidArgument(
            f'"size" has {len(size)} entries for shape {x}; it needs one for each spatial '
            "dimension, the last ones")
    leading = len(x) - len(size)
    if min(size) < 1 or min(x[leading:]) < 1:
        raise InvalidArgument(
            f"cannot resize {x[leading:]} to {size}; every size must be at least 1")
    return x[:leading] + size


def _unfold(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x, kernel = shapes[0], tuple(attributes["kernel"])
    if not kernel or len(x) != len(kernel) + 2:
        raise InvalidArgument(
            f"unfold of shape {x} with a kernel of {len(kernel)} dimensions; x must be (N, C, and "
            "as many spatial ones)")
    positions = _positions(x[2:], _convolution_sliding(kernel, attributes))
    return (x[0], x[1] * prod(kernel), prod(positions))


def _fold(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x, kernel, size = shapes[0], tuple(attributes["kernel"]), tuple(attributes["size"])
    if len(x) != 3 or not kernel or len(size) != len(kernel):
        raise InvalidArgument(
            f"fold of shape {x} with a kernel of {len(kernel)} and a size of {len(size)} "
            "dimensions; x must be (N, C * taps, windows), the others agree")
    positions = _positions(check_shape(size), _convolution_sliding(kernel, attributes))
    if x[1] % prod(kernel) or x[2] != prod(positions):
        raise InvalidArgument(
            f"fold of shape {x} to {size}: dimension 1 must be a multiple of {prod(kernel)}, the "
            f"kernel's elements, and dimension 2 be {prod(positions)}, the kernel's positions")
    return (x[0], x[1] // prod(kernel), *size)


def _plane(op: Op, x: Shape, factor: int) -> None:
    if len(x) < 3 or not 1 <= factor <= 1 << 20:
        raise InvalidArgument(
            f'"{op.name}" of shape {x} by {factor}; x must be (…, C, H, W) and the factor at '
            "least 1")


def _pixel_shuffle(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x, factor = shapes[0], attributes["factor"]
    _plane(op, x, factor)
    if x[-3] % factor**2:
        raise InvalidArgument(
            f"pixel_shuffle by {factor} of {x[-3]} channels; they must be a multiple of "
            f"{factor**2}")
    return (*x[:-3], x[-3] // factor**2, x[-2] * factor, x[-1] * factor)


def _pixel_unshuffle(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x, factor = shapes[0], attributes["factor"]
    _plane(op, x, factor)
    if x[-2] % factor or x[-1] % factor:
        raise InvalidArgument(
            f"pixel_unshuffle by {factor} of {x[-2]} x {x[-1]} pixels; both must be multiples of "
            "it")
    return (*x[:-3], x[-3] * factor**2, x[-2] // factor, x[-1] // factor)


RULES: Dict[str, ShapeRule] = {
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "pool": _pool,
    "resize": _resize,
    "unfold": _unfold,
    "fold": _fold,
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
}
