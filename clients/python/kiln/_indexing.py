"""tensor[key]: integers, slices, None, ellipsis and tensors of integers."""

from typing import TYPE_CHECKING, Any, List, Tuple

import numpy as np

from kiln import _dtypes
from kiln._errors import InvalidArgument, OutOfRange
from kiln._rules import broadcast, normalize_axis

if TYPE_CHECKING:
    from kiln.tensor import Tensor


def index(tensor: "Tensor", key: Any) -> "Tensor":
    """tensor[key], as NumPy's, but for assignments and masks."""
    parts = _complete(tensor, key if isinstance(key, tuple) else (key,))
    tensor = _cut(tensor, [part for part in parts if part is not None])
    # Now the integers' dimensions have size 1 and go; None adds some; tensors are left.
    shape: List[int] = []
    tensors: List[Tuple[int, Any]] = []
    axis = 0
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        if not isinstance(part, (int, slice)):
            tensors.append((len(shape), part))
        if not isinstance(part, int):
            shape.append(tensor.shape[axis])
        axis += 1
    tensor = tensor.reshape(tuple(shape))
    return _take(tensor, tensors) if tensors else tensor


def _complete(tensor: "Tensor", key: Tuple[Any, ...]) -> List[Any]:
    """One part for each dimension, and None for each new one."""
    from kiln.tensor import Tensor

    parts: List[Any] = []
    for part in key:
        if isinstance(part, (bool, np.bool_)):
            raise InvalidArgument("a bool is no index; use kiln.where")
        if isinstance(part, (list, np.ndarray)):
            part = Tensor(part)
        if isinstance(part, Tensor) and part.dtype is _dtypes.bool_:
            raise InvalidArgument(
                "a mask would give a result whose shape depends on values; use kiln.where")
        if isinstance(part, Tensor) and part.dtype.is_float:
            raise InvalidArgument(f"an index of {part.dtype.name}; it must be an integer")
        if not (part is None or part is Ellipsis or isinstance(part, (slice, Tensor))):
            part = part.__index__()
        parts.append(part)
    used = sum(1 for part in parts if part is not None and part is not Ellipsis)
    if used > tensor.ndim:
        raise InvalidArgument(f"{used} indices for a tensor of shape {tensor.shape}")
    rest = [slice(None)] * (tensor.ndim - used)
    places = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(places) > 1:
        raise InvalidArgument("an index can have one ellipsis (...)")
    if places:
        return parts[: places[0]] + rest + parts[places[0] + 1 :]
    return parts + rest


def _cut(tensor: "Tensor", parts: List[Any]) -> "Tensor":
    bounds: List[int] = []
    flips: List[int] = []
    steps: List[int] = []
    for axis, (part, size) in enumerate(zip(parts, tensor.shape)):
        step = 1
        begin, end = 0, size
        if isinstance(part, int):
            if not -size <= part < size:
                raise OutOfRange(
                    f"index {part} of dimension {axis} of shape {tensor.shape}; it must be in "
                    f"[{-size}, {size})")
            begin = part % size
            end = begin + 1
        elif isinstance(part, slice):
            places = range(*part.indices(size))
            step = abs(places.step)
            begin = end = 0
            if len(places):
                begin, end = min(places[0], places[-1]), max(places[0], places[-1]) + 1
            if places.step < 0:
                flips.append(axis)
        bounds += [begin, end]
        steps.append(step)
    if any(
        (bounds[2 * i], bounds[2 * i + 1]) != (0, size) for i, size in enumerate(tensor.shape)
    ):
        tensor = tensor._op("shrink", bounds=tuple(bounds))
    tensor = tensor.flip(*flips)
    return _stride(tensor, steps) if any(step > 1 for step in steps) else tensor


def _stride(tensor: "Tensor", steps: List[int]) -> "Tensor":
    """Every steps[i]-th element: rows of `step` elements, of which the first one is kept."""
    counts = [-(-size // step) for size, step in zip(tensor.shape, steps)]
    pads: List[int] = []
    split: List[int] = []
    bounds: List[int] = []
    for size, step, count in zip(tensor.shape, steps, counts):
        pads += [0, count * step - size]
        split += [count, step]
        bounds += [0, count, 0, 1 if count else min(step, 1)]
    if any(pads):
        tensor = tensor._op("pad", padding=tuple(pads))
    return tensor.reshape(tuple(split))._op("shrink", bounds=tuple(bounds)).reshape(tuple(counts))


def _take(tensor: "Tensor", tensors: List[Tuple[int, Any]]) -> "Tensor":
    """Advanced indexing: the indexed dimensions become one, read at one combined place."""
    axes = [axis for axis, _ in tensors]
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    if not adjacent:  # NumPy puts the result's dimensions first
        others = [axis for axis in range(tensor.ndim) if axis not in axes]
        tensor = tensor.permute(axes + others)
        axes = list(range(len(axes)))
    shape = broadcast([part.shape for _, part in tensors])
    place = None
    for axis, (_, part) in zip(axes, tensors):
        size = tensor.shape[axis]
        wrapped = _wrapped(part, size)
        place = wrapped if place is None else place * size + wrapped
    first, last = axes[0], axes[-1]
    joined = tensor.flatten(first, last) if last > first else tensor
    return joined._op("gather", place.expand(shape), axis=first)


def _wrapped(part: "Tensor", size: int) -> "Tensor":
    """Negative places count from the end."""
    if not part.dtype.is_signed:
        return part
    if part._node.host is not None and part._node.host.size <= 4096:
        from kiln.tensor import Tensor

        host = part._node.host
        if host.size and not (-size <= host.min() and host.max() < size):
            raise OutOfRange(f"an index outside [{-size}, {size})")
        return part if not (host < 0).any() else Tensor(np.where(host < 0, host + size, host))
    return (part + size).where(part < 0, part)


def gather_along(tensor: "Tensor", dim: int, places: "Tensor") -> "Tensor":
    """PyTorch's gather."""
    from kiln.creation import arange

    axis = normalize_axis(dim, tensor.ndim)
    if places.ndim != tensor.ndim:
        raise InvalidArgument(
            f"gather of shape {tensor.shape} with an index of shape {places.shape}; both must "
            "have the same number of dimensions")
    parts: List[Any] = []
    for i, size in enumerate(places.shape):
        ones = [1] * tensor.ndim
        ones[i] = size
        parts.append((i, places if i == axis else arange(size).reshape(tuple(ones))))
    return _take(tensor, parts)
