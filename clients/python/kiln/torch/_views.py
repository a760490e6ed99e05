"""Tensors that share memory, as PyTorch's views do.

A view is a chain of ops on the value of its base. All tensors of one base share a Storage, which
has the base's value and counts its changes. A change of one of them is written back through its
chain into the base's value; the others derive their values again when they are next used.

A tensor without views has no Storage and costs nothing.
"""

import weakref
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln._graph import node as _node
from kiln._graph.node import Node, make, mode
from kiln._tensor.base import TensorBase, constant, wrap
from kiln._tensor.constructors import filled, iota

# Ops whose result is a view of their only operand, if its elements are regularly spaced.
_VIEW_OPS = frozenset(
    ("reshape", "permute", "expand", "shrink", "pad", "flip", "diagonal", "window", "detach"))
_DETACH = ("detach", ())
# A step that reads the whole base, as the only one after _DETACH.
_STRIDED = "as_strided"
_ALIVE_AT_FIRST = 8

# The slot that the property `_node` of kiln.torch's tensors reads.
slot: Any = TensorBase.__dict__["_node"]

Step = Tuple[str, Any]


class Layout(NamedTuple):
    """Where the elements of a view are: strides and offset in elements of the base."""

    strides: Tuple[int, ...]
    offset: int


class Storage:
    """The value that a base and its views share."""

    __slots__ = ("__weakref__", "members", "members_max", "node", "shape", "version")

    def __init__(self, base: Any) -> None:
        self.node: Node = slot.__get__(base)
        self.shape = self.node.shape
        self.version = 0
        self.members: List[weakref.ref[Any]] = [weakref.ref(base)]
        self.members_max = _ALIVE_AT_FIRST

    def add(self, tensor: Any) -> None:
        """Records a tensor that shares the value."""
        if len(self.members) >= self.members_max:
            self.members = [member for member in self.members if member() is not None]
            self.members_max = 2 * len(self.members) + _ALIVE_AT_FIRST
        self.members.append(weakref.ref(tensor))

    def others(self, tensor: Any) -> List[Any]:
        """Returns the other living tensors that share the value."""
        found = [member() for member in self.members]
        return [other for other in found if other is not None and other is not tensor
                and other._share is self]

    def leaf(self) -> Any:
        """Returns the base itself, if it is alive and wants a gradient."""
        for member in self.members:
            tensor = member()
            if tensor is not None and tensor._share is self and not tensor._steps and (
                    tensor._requires_grad):
                return tensor
        return None


def chain(base: Node, result: Node) -> Optional[Tuple[Step, ...]]:
    """Returns the ops that make `result` of `base`, if it is a view of it."""
    steps: List[Step] = []
    node = result
    while node is not base:
        if len(node.operands) != 1 or node.op not in _VIEW_OPS:
            return None
        steps.append((node.op, node.attributes))
        node = node.operands[0]
    return tuple(reversed(steps))


def view(base: Any, result: Any) -> Any:
    """Returns `result`, made from `base` by a method, as a view if it is one."""
    if isinstance(result, (list, tuple)):
        return tuple([view(base, part) for part in result])
    if result is base:
        result = wrap(base._node)
    steps = chain(base._node, result._node)
    if steps is None or layout_of(_base_shape(base), (*base._steps, *steps)) is None:
        return result
    return link(base, result, steps)


def detached(base: Any, result: Any) -> Any:
    """Returns `result`, which is `base` without gradient, as a view of it."""
    return link(base, result, (_DETACH,))


def link(base: Any, result: Any, steps: Tuple[Step, ...]) -> Any:
    """Makes `result` share its value with `base`; returns it."""
    share = base._share
    if share is None:
        share = base._share = Storage(base)
    result._share, result._steps, result._seen = share, (*base._steps, *steps), share.version
    share.add(result)
    return result


def strided(tensor: Any, size: Sequence[int], stride: Sequence[int],
            offset: Optional[int]) -> Any:
    """Returns the elements of `tensor`'s base at these distances from `offset` on, as a view. The
    offset is that of `tensor` by default. Raises InvalidArgument if some are not in the base.
    """
    if offset is None:
        offset = layout(tensor).offset
    places = _places(size, stride, offset)
    count = _product(_base_shape(tensor))
    if places.size and not 0 <= places.min() <= places.max() < count:
        raise InvalidArgument(
            f"as_strided of size {tuple(size)}, stride {tuple(stride)} and offset {offset}, which "
            f"reaches from {places.min()} to {places.max()}; there are {count} elements")
    step = (_STRIDED, (("size", tuple(size)), ("stride", tuple(stride)), ("offset", offset)))
    share = tensor._share
    if share is None:
        share = tensor._share = Storage(tensor)
    steps = (_DETACH, step) if _DETACH in tensor._steps else (step,)
    tensor._node  # noqa: B018, which makes a changed value the base's
    result: Any = wrap(_replayed(share.node, steps)[-1])
    result._share, result._steps, result._seen = share, steps, share.version
    share.add(result)
    return result


def _places(size: Sequence[int], stride: Sequence[int], offset: int) -> Any:
    """Returns where in the base the elements of a strided view are."""
    if len(size) != len(stride) or any(length < 0 for length in size):
        raise InvalidArgument(
            f"as_strided of size {tuple(size)} and stride {tuple(stride)}; they must be of one "
            "length, and sizes not negative")
    places = np.full(tuple(size), offset, np.int64)
    for axis, (length, step) in enumerate(zip(size, stride)):
        places += (np.arange(length) * step).reshape([-1 if i == axis else 1
                                                      for i in range(len(size))])
    return places


def refresh(tensor: Any) -> None:
    """Derives a tensor's value again after another one that shares it has changed."""
    share = tensor._share
    tensor._seen = share.version
    leaf = share.leaf()
    if leaf is tensor:
        node = share.node = _node.alias(share.node)
        slot.__set__(tensor, node)
        tensor._mark_leaf()
        return
    if leaf is not None:
        leaf._node  # noqa: B018, which makes the changed value the leaf's
    slot.__set__(tensor, _replayed(share.node, tensor._steps)[-1])


def allow(tensor: Any, tracked: bool) -> None:
    """Raises InvalidArgument if others that share the value cannot follow a change of `tensor`, to
    a value that gradients flow through (`tracked`) or not.
    """
    share = tensor._share
    others = share.others(tensor) if share is not None else []
    if not others:
        return
    leaf = share.leaf()
    if leaf is not None and leaf is not tensor and mode.gradients and (
            tracked or slot.__get__(tensor).tracked):
        raise InvalidArgument(
            "a view of a tensor that requires a gradient changes in place; use torch.no_grad()")
    apart = not mode.gradients or _DETACH in tensor._steps
    if apart and share.node.tracked and share.node.leaf is None and not tracked and any(
            not other._requires_grad and slot.__get__(other).tracked for other in others):
        raise InvalidArgument(
            "a change in place through detach(), data or no_grad() of a result that gradients flow "
            "through; clone() it first")


def wrote(tensor: Any) -> None:
    """Writes the new value of a tensor to those that share it."""
    share = tensor._share
    if share is None:
        return
    if not share.others(tensor):
        leave(tensor)
        return
    new: Node = slot.__get__(tensor)
    values = _replayed(share.node, tensor._steps)
    for (op, attributes), before in reversed(list(zip(tensor._steps, values))):
        new = _unapplied(op, dict(attributes), before, new)
    share.node = new
    share.version += 1
    tensor._seen = share.version


def leave(tensor: Any) -> None:
    """Makes a tensor share its value with no other from here on."""
    if tensor._share is not None:
        tensor._share, tensor._steps, tensor._seen = None, (), 0


def _replayed(node: Node, steps: Sequence[Step]) -> List[Node]:
    """Returns the value of the base, and the result of each step."""
    found = [node]
    for step in steps:
        node = _node.alias(node) if step is _DETACH else _applied(*step, node)
        found.append(node)
    return found


def _applied(op: str, attributes: Any, node: Node) -> Node:
    """Returns the result of a step."""
    if op != _STRIDED:
        return make(op, (node,), attributes)
    places = _places(*[value for _, value in attributes])
    flat = make("reshape", (node,), (("shape", (_product(node.shape),)),))
    return make("gather", (flat, constant(places)._node), (("axis", 0),))


def _unapplied(op: str, attributes: Any, before: Node, new: Node) -> Node:
    """Returns `before`, the operand of a step, after its result has become `new`."""
    if op == "detach":
        return new
    if op == "reshape":
        return make("reshape", (new,), (("shape", before.shape),))
    if op == "permute":
        axes = attributes["axes"]
        return make("permute", (new,), (("axes", tuple(map(axes.index, range(len(axes))))),))
    if op == "expand":
        lead = len(new.shape) - len(before.shape)
        if new.shape[lead:] != before.shape or any(size != 1 for size in new.shape[:lead]):
            raise InvalidArgument(
                "a change in place of an expanded tensor, of which several elements are one; "
                "clone() it first")
        return make("reshape", (new,), (("shape", before.shape),))
    if op == "pad":
        pads = attributes["padding"]
        bounds: List[int] = []
        for i, size in enumerate(before.shape):
            bounds += [pads[2 * i], pads[2 * i] + size]
        return make("shrink", (new,), (("bounds", tuple(bounds)),))
    if op == "flip":
        return make("flip", (new,), tuple(attributes.items()))
    if op == "shrink":
        ends = attributes["bounds"]
        pads = []
        for i, size in enumerate(before.shape):
            pads += [ends[2 * i], size - ends[2 * i + 1]]
        if not any(pads):
            return new
        padding = (("padding", tuple(pads)),)
        inside = make("pad", (filled(new.shape, True)._node,), padding)
        return make("where", (inside, make("pad", (new,), padding), before))
    if op == _STRIDED:
        written_to = _places(**attributes)
        if np.unique(written_to).size != written_to.size:
            raise InvalidArgument(
                f"a change in place of as_strided() with size {attributes['size']} and stride "
                f"{attributes['stride']}, of which several elements are one; clone() it first")
    count = (_product(before.shape),)
    places = make("reshape", (iota(count)._node,), (("shape", before.shape),))
    read = _applied(op, tuple(attributes.items()), places)
    flat = (("shape", (_product(read.shape),)),)
    written = make("scatter", (
        make("reshape", (before,), (("shape", count),)), make("reshape", (read,), flat),
        make("reshape", (new,), flat)), (("axis", 0),))
    return make("reshape", (written,), (("shape", before.shape),))


def _product(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _base_shape(tensor: Any) -> Tuple[int, ...]:
    shape: Tuple[int, ...] = slot.__get__(tensor).shape if tensor._share is None else (
        tensor._share.shape)
    return shape


def contiguous_strides(shape: Sequence[int]) -> Tuple[int, ...]:
    """Returns the strides of a tensor whose elements follow each other."""
    strides: List[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def layout(tensor: Any) -> Layout:
    """Returns the layout that a tensor would have in PyTorch."""
    found = layout_of(_base_shape(tensor), tensor._steps)
    return found or Layout(contiguous_strides(tensor._node.shape), 0)


def layout_of(shape: Tuple[int, ...], steps: Sequence[Step]) -> Optional[Layout]:
    """Returns the layout of a chain on a base of this shape; None if a step has to copy."""
    strides, offset = contiguous_strides(shape), 0
    for op, given in steps:
        attributes = dict(given)
        if op == "permute":
            axes = attributes["axes"]
            strides = tuple(strides[axis] for axis in axes)
            shape = tuple(shape[axis] for axis in axes)
        elif op == "expand":
            wide = tuple(attributes["shape"])
            lead = len(wide) - len(shape)
            strides = (0,) * lead + tuple(
                0 if size != wide[lead + i] else strides[i] for i, size in enumerate(shape))
            shape = wide
        elif op == "shrink":
            ends = attributes["bounds"]
            offset += sum(ends[2 * i] * stride for i, stride in enumerate(strides))
            shape = tuple(ends[2 * i + 1] - ends[2 * i] for i in range(len(shape)))
        elif op == "pad":
            # Part of a slice with a step: the padding is cut off again by a later step.
            pads = attributes["padding"]
            shape = tuple(
                size + pads[2 * i] + pads[2 * i + 1] for i, size in enumerate(shape))
        elif op == "reshape":
            wanted = tuple(attributes["shape"])
            found = _reshaped_strides(shape, strides, wanted)
            if found is None:
                return None
            shape, strides = wanted, found
        elif op == "diagonal":
            one, other = attributes["axis1"] % len(shape), attributes["axis2"] % len(shape)
            shift = attributes["offset"]
            offset += shift * strides[other] if shift > 0 else -shift * strides[one]
            rest = [axis for axis in range(len(shape)) if axis not in (one, other)]
            length = max(0, min(shape[one] + min(shift, 0), shape[other] - max(shift, 0)))
            step = strides[one] + strides[other]
            strides = (*[strides[axis] for axis in rest], step)
            shape = (*[shape[axis] for axis in rest], length)
        elif op == _STRIDED:
            shape, strides, offset = (value for _, value in given)
        elif op == "window":
            axis, size, step = attributes["axis"], attributes["size"], attributes["stride"]
            strides = (*strides[:axis], strides[axis] * step, *strides[axis + 1:], strides[axis])
            shape = (*shape[:axis], (shape[axis] - size) // step + 1, *shape[axis + 1:], size)
        elif op != "detach":
            return None
    return Layout(strides, offset)


def _reshaped_strides(shape: Sequence[int], strides: Sequence[int],
                      wanted: Sequence[int]) -> Optional[Tuple[int, ...]]:
    """Returns the strides of the same elements in another shape; None if they must be copied."""
    if 0 in shape:
        return contiguous_strides(wanted)
    result: List[int] = []
    left = len(wanted) - 1
    base = strides[-1] if strides else 1
    count = wanted_count = 1
    for axis in range(len(shape) - 1, -1, -1):
        count *= shape[axis]
        if axis == 0 or (shape[axis - 1] != 1 and strides[axis - 1] != count * base):
            while left >= 0 and (wanted_count < count or wanted[left] == 1):
                result.append(wanted_count * base)
                wanted_count *= wanted[left]
                left -= 1
            if wanted_count != count:
                return None
            if axis > 0:
                base = strides[axis - 1]
                count = wanted_count = 1
    while left >= 0:
        result.append(wanted_count * base)
        left -= 1
    return tuple(reversed(result))
