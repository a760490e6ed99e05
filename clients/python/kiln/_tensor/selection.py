"""The selection of a key: reads it, and writes values back for an assignment."""

from math import prod
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from kiln._basics import dtypes
from kiln._basics.errors import InvalidIndex
from kiln._graph.checks import Check, Limit, Requirement, check, enabled
from kiln._rules import broadcast
from kiln._tensor.base import constant
from kiln._tensor.constructors import filled
from kiln._tensor.index_parser import Part, Span, is_range
from kiln.variables import Dim, has_dims

if TYPE_CHECKING:
    from kiln.tensor import Tensor

Shape = Tuple[int, ...]


class Places(NamedTuple):
    """The places to read or write along one dimension, and their checks."""

    tensor: "Tensor"
    checks: Tuple[Check, ...]

    def checked(self, result: "Tensor") -> "Tensor":
        """Attaches the checks to `result`, which one op has made from the places; returns it."""
        return with_checks(result, self.checks)


def with_checks(result: "Tensor", checks: Tuple[Check, ...]) -> "Tensor":
    """Attaches checks to the node of `result`; returns it."""
    if checks:
        result._node.checks = checks
    return result


def required(result: "Tensor", refused: "Tensor", op: str, text: str) -> "Tensor":
    """Returns `result`, or NaN (0 for integers) if any element of `refused` is true.

    The next value that is read raises InvalidArgument then.
    """
    if not enabled:
        return result
    found = refused.any()
    node = found._node
    instead = float("nan") if result.dtype.is_float else 0
    return with_checks(result.masked_fill(found, instead), (
        Check(node, Requirement(op, text)),))


def _ends(part: Part, size: Any) -> Tuple[Any, Any]:
    """Returns the begin and end of a part of step 1."""
    if isinstance(part, Span):
        return part
    if isinstance(part, (int, Dim)):
        return part, part + 1
    return (part.start, part.stop) if isinstance(part, range) else (0, size)


def _count(part: Part, size: Any) -> Any:
    """Returns how many places a part selects in a dimension."""
    if isinstance(part, (int, Dim)):
        return 1
    if isinstance(part, Span):
        return part.end - part.begin
    return len(part) if isinstance(part, range) else size


class Slices:
    """Ranges and ints along each dimension; an int leaves a dimension of size 1."""

    def __init__(self, shape: Shape, parts: Sequence[Part]) -> None:
        """`parts` has one range, int or tensor (the whole dimension) for each dimension."""
        self.shape = shape
        self.bounds: List[Tuple[int, int]] = []
        self.steps: List[int] = []
        self.flips: List[int] = []
        for axis, (part, size) in enumerate(zip(parts, shape)):
            if has_dims((part, size)) or isinstance(part, Span):
                self.bounds.append(_ends(part, size))
                self.steps.append(1)
                continue
            if isinstance(part, int):
                places = range(part, part + 1)
            else:
                places = part if isinstance(part, range) else range(size)
            begin = end = 0
            if len(places):
                begin, end = min(places[0], places[-1]), max(places[0], places[-1]) + 1
            if places.step < 0 and len(places) > 1:
                self.flips.append(axis)
            self.bounds.append((begin, end))
            self.steps.append(abs(places.step) if len(places) > 1 else 1)

    @property
    def is_whole(self) -> bool:
        """Returns whether every element is selected, possibly in reverse order."""
        return all(step == 1 for step in self.steps) and all(
            bounds == (0, size) for bounds, size in zip(self.bounds, self.shape))

    def read(self, tensor: "Tensor") -> "Tensor":
        """Returns the selected elements."""
        if any(bounds != (0, size) for bounds, size in zip(self.bounds, self.shape)):
            tensor = tensor._op("shrink", bounds=tuple(end for pair in self.bounds for end in pair))
        tensor = tensor.flip(*self.flips)
        return self._stride(tensor) if any(step > 1 for step in self.steps) else tensor

    def _counts(self, shape: Sequence[int]) -> List[int]:
        return [-(-size // step) for size, step in zip(shape, self.steps)]

    def _stride(self, tensor: "Tensor") -> "Tensor":
        """Returns every steps[i]-th element: the first of each row of `step` elements."""
        counts = self._counts(tensor.shape)
        pads: List[int] = []
        split: List[int] = []
        bounds: List[int] = []
        for size, step, count in zip(tensor.shape, self.steps, counts):
            pads += [0, count * step - size]
            split += [count, step]
            bounds += [0, count, 0, 1 if count else min(step, 1)]
        if any(pads):
            tensor = tensor._op("pad", padding=tuple(pads))
        rows = tensor.reshape(tuple(split))._op("shrink", bounds=tuple(bounds))
        return rows.reshape(tuple(counts))

    def spread(self, values: "Tensor") -> "Tensor":
        """The adjoint of `read`: returns the values at their original places, zero elsewhere."""
        cut = [end - begin for begin, end in self.bounds]
        if any(step > 1 for step in self.steps):
            counts = self._counts(cut)
            split = [size for count in counts for size in (count, 1)]
            pads = [amount for step in self.steps for amount in (0, 0, 0, step - 1)]
            rows = values.reshape(split)._op("pad", padding=tuple(pads))
            whole = rows.reshape([count * step for count, step in zip(counts, self.steps)])
            values = whole._op("shrink", bounds=tuple(end for size in cut for end in (0, size)))
        values = values.flip(*self.flips)
        pads = []
        for (begin, end), size in zip(self.bounds, self.shape):
            pads += [begin, size - end]
        return values._op("pad", padding=tuple(pads)) if any(pads) else values


class Selection:
    """A key of ranges, ints, new dimensions and index tensors, applied to one shape.

    Ranges and ints cut out elements; dimensions are dropped and added; indexed dimensions are
    merged (in front, where NumPy does so) and read at one combined place.
    """

    def __init__(self, shape: Shape, parts: Sequence[Part], new: Sequence[int] = (),
                 apart: bool = False) -> None:
        """`new`: positions of index tensors that select along a new dimension of size 1.

        `apart`: whether the index tensors count as separated by something that is not a part.
        """
        dims = [part for i, part in enumerate(parts) if part is not None and i not in new]
        self.slices = Slices(shape, dims)
        self.sliced_shape: Shape = tuple(
            _count(part, size) for part, size in zip(dims, shape))
        kept: List[int] = []
        indexed: List[Tuple[int, Tensor]] = []
        sizes = iter(self.sliced_shape)
        for i, part in enumerate(parts):
            size = 1 if part is None or i in new else next(sizes)
            if isinstance(part, (int, Dim)):
                continue
            if part is not None and not isinstance(part, (range, Span)):
                indexed.append((len(kept), part))
            kept.append(size)
        self.kept_shape: Shape = tuple(kept)
        self.indices = [part for _, part in indexed]
        self._arrange([axis for axis, _ in indexed], _is_together(parts) and not apart)

    def _arrange(self, axes: List[int], together: bool) -> None:
        rank = len(self.kept_shape)
        others = [axis for axis in range(rank) if axis not in axes]
        self.axis = axes[0] if axes and together else 0
        self.order = others[: self.axis] + axes + others[self.axis :]
        self.indexed_sizes = [self.kept_shape[axis] for axis in axes]
        self.ordered_shape: Shape = tuple(self.kept_shape[axis] for axis in self.order)

    @property
    def shape(self) -> Shape:
        """Returns the result's shape."""
        if not self.indices:
            return self.kept_shape
        end = self.axis + len(self.indices)
        places = broadcast([index.shape for index in self.indices])
        return self.ordered_shape[: self.axis] + places + self.ordered_shape[end:]

    def places(self, op: str) -> Places:
        """Returns where `op` reads or writes along the merged indexed dimensions; -1 is nowhere."""
        return combined(self.indices, self.indexed_sizes, op)

    def _joined_shape(self) -> Shape:
        end = self.axis + len(self.indices)
        return (*self.ordered_shape[: self.axis], prod(self.indexed_sizes),
                *self.ordered_shape[end:])

    def source(self, tensor: "Tensor") -> "Tensor":
        """Returns the tensor that the places index; without index tensors, the result."""
        kept = self.slices.read(tensor).reshape(self.kept_shape)
        return kept.permute(self.order).reshape(self._joined_shape()) if self.indices else kept

    def restore(self, tensor: "Tensor", source: "Tensor") -> "Tensor":
        """Returns `tensor` with its source replaced by another one."""
        if self.indices:
            back = [self.order.index(axis) for axis in range(len(self.order))]
            source = source.reshape(self.ordered_shape).permute(back)
        values = source.reshape(self.sliced_shape)
        if self.slices.is_whole:
            return self.slices.spread(values)
        inside = self.slices.spread(filled(self.sliced_shape, True))
        return self.slices.spread(values).where(inside, tensor)


def _is_together(parts: Sequence[Part]) -> bool:
    """Returns whether all ints and index tensors are adjacent."""
    places = [i for i, part in enumerate(parts) if part is not None and not is_range(part)]
    return not places or places == list(range(places[0], places[-1] + 1))


def one_place(index: "Tensor", size: int, op: str) -> Places:
    """Returns places along one dimension; unlike in NumPy, as in PyTorch, none is negative.

    Raises IndexError as combined() does, also for negative ones. A value that only the device knows
    reads zero and writes nothing if it is out of range, and the next read raises the error.
    """
    return Places(index, _check(index, Limit(op, size)))


def combined(indices: Sequence["Tensor"], sizes: Sequence[int], op: str) -> Places:
    """Returns row-major places of index tensors that broadcast; negative ones count from the end.

    Raises IndexError if a value that is known here is out of range. A value that only the device
    knows gives -1 then, which reads zero and writes nothing.
    """
    checks: Tuple[Check, ...] = ()
    for index, size in zip(indices, sizes):
        checks += _check(index, Limit(op, size, from_end=True))
    return Places(_combined(indices, sizes), checks)


def _combined(indices: Sequence["Tensor"], sizes: Sequence[int]) -> "Tensor":
    known = [index._node.host for index in indices]
    if all(values is not None for values in known):
        return _combined_here([values for values in known if values is not None], sizes)
    if len(indices) == 1:
        return _wrapped(indices[0], sizes[0])
    place: Optional[Tensor] = None
    valid: Optional[Tensor] = None
    for index, size in zip(indices, sizes):
        row = _wrapped(index, size)
        inside = (row >= 0).logical_and(row < size)
        place = row.long() if place is None else place * size + row.long()
        valid = inside if valid is None else valid.logical_and(inside)
    assert place is not None and valid is not None
    return place.where(valid, -1)


def _wrapped(index: "Tensor", size: int) -> "Tensor":
    """Counts negative places from the end; returns a dtype that holds `size`."""
    # Its large numbers would be negative as int64, and would then count from the end.
    if index.dtype is dtypes.uint64:
        return index
    row = index.long()
    return (row + size).where(row < 0, row) if index.dtype.is_signed else row


def _check(index: "Tensor", limit: Limit) -> Tuple[Check, ...]:
    if index.dtype.is_float or index.dtype is dtypes.bool_:
        raise InvalidIndex(f"an index of {index.dtype.name}; it must be of integers. Cast it first")
    return check(index._node, limit)


def _combined_here(indices: Sequence[np.ndarray], sizes: Sequence[int]) -> "Tensor":
    shape = broadcast([values.shape for values in indices])
    place = np.zeros(shape, np.int64)
    for values, size in zip(indices, sizes):
        rows = values.astype(np.int64)
        place = place * size + np.where(rows < 0, rows + size, rows)
    return constant(place)
