"""Windows that slide over dimensions, as in convolutions, pools and unfold."""

from typing import List, NamedTuple, Sequence, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.shapes import Attributes

Ints = Tuple[int, ...]


class _Sliding(NamedTuple):
    """A window over spatial dimensions; every tuple has an entry for each of them."""

    size: Ints
    stride: Ints
    dilation: Ints
    before: Ints
    after: Ints


def window_positions(length: int, size: int, stride: int, dilation: int) -> int:
    """Returns the number of positions of a window of `size` elements, `dilation` apart."""
    if size < 1 or stride < 1 or dilation < 1:
        raise InvalidArgument(
            f"a window of size {size}, stride {stride} and dilation {dilation}; each must be at "
            "least 1")
    reach = (size - 1) * dilation
    if reach >= length:
        raise InvalidArgument(
            f"a window of size {size} and dilation {dilation} does not fit into a dimension of "
            f"size {length}")
    return (length - reach - 1) // stride + 1


def spatial_rank(op: Op) -> int:
    """Returns how many spatial dimensions the op has: the length of its default padding."""
    return next(len(a.default) for a in op.attributes if a.name == "padding" and a.default)


def convolution_positions(spatial: Ints, kernel: Ints, attributes: Attributes) -> Ints:
    """Returns the spatial sizes of the result for a kernel of these sizes."""
    stride = _entries(attributes, "stride", len(kernel))
    return _positions(spatial, _read_sliding(kernel, stride, attributes))


def pool_positions(spatial: Ints, attributes: Attributes) -> Ints:
    """Returns the spatial sizes of a pool; with "ceil_mode" the last one may pass the end."""
    kernel: Ints = attributes["kernel"]
    given = attributes["stride"]
    stride = _entries(attributes, "stride", len(kernel)) if given else kernel
    sliding = _read_sliding(kernel, stride, attributes)
    for i, size in enumerate(kernel):
        largest = max(sliding.before[i], sliding.after[i])
        if largest > size // 2:
            raise InvalidArgument(
                f"a padding of {largest} for a kernel of {size}; it must be at most half the "
                "kernel")
    positions = _positions(spatial, sliding)
    return _hanging(spatial, sliding, positions) if attributes.get("ceil_mode") else positions


def transposed_sizes(spatial: Ints, kernel: Ints, attributes: Attributes) -> Ints:
    """Returns the spatial sizes of a transposed convolution's result."""
    sliding = _read_sliding(kernel, _entries(attributes, "stride", len(kernel)), attributes)
    extra = _entries(attributes, "output_padding", len(kernel))
    return tuple(_spread(length, i, sliding, extra[i]) for i, length in enumerate(spatial))


def _entries(attributes: Attributes, name: str, rank: int) -> Ints:
    values: Ints = attributes[name]
    if len(values) != rank:
        raise InvalidArgument(
            f'"{name}" has {len(values)} entries; it needs {rank}, one for each spatial dimension')
    return values


def _read_sliding(size: Ints, stride: Ints, attributes: Attributes) -> _Sliding:
    rank = len(size)
    dilation = _entries(attributes, "dilation", rank) if "dilation" in attributes else (1,) * rank
    padding: Ints = attributes["padding"]
    if len(padding) not in (rank, 2 * rank):
        raise InvalidArgument(
            f'"padding" has {len(padding)} entries; it needs {rank}, one for each spatial '
            f"dimension, or {2 * rank}, before and after each")
    if len(padding) == rank:
        return _Sliding(size, stride, dilation, padding, padding)
    return _Sliding(size, stride, dilation, padding[::2], padding[1::2])


def _positions(spatial: Sequence[int], sliding: _Sliding) -> Ints:
    result: List[int] = []
    for i, length in enumerate(spatial):
        before, after = sliding.before[i], sliding.after[i]
        if before < 0 or after < 0:
            raise InvalidArgument(
                f"a padding of {before} and {after} on a dimension of size {length}; it must be at "
                "least 0 and not huge")
        result.append(window_positions(
            length + before + after, sliding.size[i], sliding.stride[i], sliding.dilation[i]))
    return tuple(result)


def _hanging(spatial: Ints, sliding: _Sliding, positions: Ints) -> Ints:
    """Adds a window if some length is left over and the window starts before the last padding."""
    result: List[int] = []
    for i, length in enumerate(spatial):
        following = positions[i] * sliding.stride[i]
        reach = (sliding.size[i] - 1) * sliding.dilation[i]
        covered = following - sliding.stride[i] + reach + 1
        whole = covered == length + sliding.before[i] + sliding.after[i]
        hangs = not whole and following < length + sliding.before[i]
        result.append(positions[i] + hangs)
    return tuple(result)


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
            f"{stride} and dilation {dilation} less a padding of {before} and {after}; the result "
            "must have at least one element, and not too many")
    return result
