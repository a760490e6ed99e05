"""Shape and dtype rules, one function each, by the names that the table of ops uses.

The daemon has the same rules; tests/golden/shape_cases.json keeps the two equal. A shape rule is
called with the operands' shapes and the complete attributes and raises InvalidArgument with the
shapes that met and what would be right.
"""

from math import prod
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from kiln import _dtypes
from kiln._dtypes import DType
from kiln._errors import InvalidArgument
from kiln._op_def import Op

Shape = Tuple[int, ...]
Attributes = Mapping[str, Any]

MAX_RANK = 32
MAX_ELEMENTS = 1 << 56


def check_shape(shape: Shape) -> Shape:
    """`shape`, if its sizes are legal."""
    if len(shape) > MAX_RANK:
        raise InvalidArgument(f"a shape with {len(shape)} dimensions; the most is {MAX_RANK}")
    elements = 1
    for size in shape:
        if size < 0:
            raise InvalidArgument(f"the shape {shape} has a negative size")
        elements *= max(size, 1)
    if elements > MAX_ELEMENTS:
        raise InvalidArgument(
            f"the shape {shape} has too many elements; the most is {MAX_ELEMENTS}")
    return shape


def normalize_axis(axis: int, rank: int) -> int:
    """The axis in [0, rank) that `axis` in [-rank, rank) means."""
    if not -rank <= axis < rank:
        raise InvalidArgument(
            f"axis {axis} of a tensor with {rank} dimensions; it must be in [{-rank}, {rank})")
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Sequence[int], rank: int) -> Tuple[int, ...]:
    """Sorted, distinct axes; an empty list stands for all."""
    if not axes:
        return tuple(range(rank))
    result = sorted(normalize_axis(axis, rank) for axis in axes)
    for first, second in zip(result, result[1:]):
        if first == second:
            raise InvalidArgument(f"axis {first} is named twice")
    return tuple(result)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """NumPy's broadcasting."""
    result: List[int] = []
    for shape in shapes:
        before = tuple(result)
        if len(shape) > len(result):
            result = [1] * (len(shape) - len(result)) + result
        skipped = len(result) - len(shape)
        for i, size in enumerate(shape):
            mine = result[skipped + i]
            if mine == size or size == 1:
                continue
            if mine != 1:
                raise InvalidArgument(
                    f"shapes {before} and {tuple(shape)} do not broadcast: from the last "
                    "dimension on, sizes must be equal or 1")
            result[skipped + i] = size
    return tuple(result)


def _attribute(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return tuple(attributes["shape"])


def _same(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return shapes[0]


def _broadcast(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return broadcast(shapes)


def _reduce(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    axes = normalize_axes(attributes["axes"], len(shape))
    if attributes["keepdims"]:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def _reshape(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    source = shapes[0]
    target = check_shape(tuple(attributes["shape"]))
    if prod(source) != prod(target):
        raise InvalidArgument(
            f"cannot reshape {source} ({prod(source)} elements) to {target} "
            f"({prod(target)} elements)")
    return target


def _permute(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape, axes = shapes[0], tuple(attributes["axes"])
    if sorted(axes) != list(range(len(shape))):
        raise InvalidArgument(
            f'"axes" {axes} is not a permutation of the {len(shape)} dimensions of shape {shape}')
    return tuple(shape[axis] for axis in axes)


def _expand(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    source, target = shapes[0], tuple(attributes["shape"])
    skipped = len(target) - len(source)
    if skipped < 0 or any(
        size not in (1, target[skipped + i]) for i, size in enumerate(source)
    ):
        raise InvalidArgument(
            f"cannot expand {source} to {target}: from the last dimension on, sizes must be "
            "equal or 1")
    return target


def _check_pairs(values: Sequence[int], shape: Shape, name: str, meaning: str) -> None:
    if len(values) != 2 * len(shape):
        raise InvalidArgument(
            f'"{name}" has {len(values)} entries for shape {shape}; it needs {2 * len(shape)}: '
            f"{meaning}")


def _pad(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape, padding = shapes[0], tuple(attributes["padding"])
    _check_pairs(padding, shape, "padding", "before and after for each dimension")
    if any(amount < 0 for amount in padding):
        raise InvalidArgument(f'"padding" {padding} has a negative entry; shrink cuts')
    return tuple(size + padding[2 * i] + padding[2 * i + 1] for i, size in enumerate(shape))


def _shrink(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape, bounds = shapes[0], tuple(attributes["bounds"])
    _check_pairs(bounds, shape, "bounds", "begin and end for each dimension")
    for i, size in enumerate(shape):
        begin, end = bounds[2 * i], bounds[2 * i + 1]
        if not 0 <= begin <= end <= size:
            raise InvalidArgument(
                f"bounds [{begin}, {end}) of dimension {i} of shape {shape}; "
                f"0 <= begin <= end <= {size} must hold")
    return tuple(bounds[2 * i + 1] - bounds[2 * i] for i in range(len(shape)))


def _flip(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    normalize_axes(attributes["axes"], len(shapes[0]))
    return shapes[0]


def window_positions(length: int, size: int, stride: int, dilation: int) -> int:
    """Positions of a window of `size` elements, `dilation` apart, moving by `stride`."""
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


def _window(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = list(shapes[0])
    axis = normalize_axis(attributes["axis"], len(shape))
    size = attributes["size"]
    shape[axis] = window_positions(
        shape[axis], size, attributes["stride"], attributes["dilation"])
    return (*shape, size)


def _unwindow(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = list(shapes[0])
    if len(shape) < 2:
        raise InvalidArgument(
            f"unwindow of shape {shapes[0]}; it needs an axis and a last dimension, the window's")
    axis = normalize_axis(attributes["axis"], len(shape) - 1)
    length = attributes["length"]
    positions = window_positions(
        length, shape[-1], attributes["stride"], attributes["dilation"])
    if positions != shape[axis]:
        raise InvalidArgument(
            f"unwindow of axis {axis} of shape {shapes[0]} to length {length}: that length has "
            f"{positions} windows, not {shape[axis]}")
    shape[axis] = length
    return tuple(shape)


def _gather(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x, index = shapes[0], shapes[1]
    axis = normalize_axis(attributes["axis"], len(x))
    return x[:axis] + index + x[axis + 1 :]


def _scatter(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    gathered = _gather(op, shapes, attributes)
    if gathered != shapes[2]:
        raise InvalidArgument(
            f"values of shape {shapes[2]} to scatter into {shapes[0]} at an index of shape "
            f"{shapes[1]}; they must have shape {gathered}")
    return shapes[0]


def _matmul(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    a, b = shapes
    if not a or not b:
        raise InvalidArgument(
            f"matmul of {a} and {b}; scalars have no dimension to sum over, use mul")
    row, column = len(a) == 1, len(b) == 1
    left = (1, *a) if row else a
    right = (*b, 1) if column else b
    if left[-1] != right[-2]:
        raise InvalidArgument(
            f"matmul of {a} and {b}: the first's last dimension ({left[-1]}) must equal the "
            f"second's {'only' if column else 'second to last'} dimension ({right[-2]})")
    try:
        batch = broadcast((left[:-2], right[:-2]))
    except InvalidArgument as error:
        raise InvalidArgument(f"matmul of {a} and {b}: {error}") from None
    return batch + (() if row else left[-2:-1]) + (() if column else right[-1:])


def _linear(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x, weight = shapes[0], shapes[1]
    if not x or len(weight) != 2 or x[-1] != weight[1]:
        raise InvalidArgument(
            f"linear of x {x} and weight {weight}; x must be (…, in), weight (out, in)")
    if len(shapes) == 3 and shapes[2] != weight[:1]:
        raise InvalidArgument(f"linear's bias has shape {shapes[2]}; it must be {weight[:1]}")
    return x[:-1] + weight[:1]


def _attention(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    q, k, v = shapes[:3]
    if min(len(q), len(k), len(v)) < 2 or q[-1] != k[-1] or k[-2] != v[-2]:
        raise InvalidArgument(
            f"attention of query {q}, key {k} and value {v}; they must be (…, L, E), (…, S, E) "
            "and (…, S, V)")
    leading = broadcast([q[:-2], k[:-2], v[:-2]])
    if len(shapes) == 4:
        scores = (*leading, q[-2], k[-2])
        mask = shapes[3]
        skipped = len(scores) - len(mask)
        if skipped < 0 or any(
            size not in (1, scores[skipped + i]) for i, size in enumerate(mask)
        ):
            raise InvalidArgument(
                f"attention's mask has shape {mask}; it must broadcast to {scores}")
    return (*leading, q[-2], v[-1])


def _pair(op: Op, attributes: Attributes, name: str) -> Tuple[int, int]:
    values = tuple(attributes[name])
    if len(values) != 2:
        raise InvalidArgument(
            f'"{name}" of "{op.name}" has {len(values)} entries; it needs 2, for height and width')
    return values


def _slide_plane(plane: Shape, size: Shape, stride: Shape, padding: Shape,
                 dilation: Shape) -> Shape:
    result = []
    for i in range(2):
        if padding[i] < 0:
            raise InvalidArgument(
                f"a padding of {padding[i]} on a dimension of size {plane[i]}")
        result.append(
            window_positions(plane[i] + 2 * padding[i], size[i], stride[i], dilation[i]))
    return tuple(result)


def _check_conv_operands(shapes: Sequence[Shape], groups: int) -> None:
    x, weight = shapes[0], shapes[1]
    if len(x) != 4 or len(weight) != 4:
        raise InvalidArgument(
            f"conv2d of x {x} and weight {weight}; x must be (N, C, H, W), weight "
            "(O, C / groups, KH, KW)")
    if groups < 1 or x[1] % groups or weight[0] % groups:
        raise InvalidArgument(
            f"conv2d in {groups} groups with {x[1]} channels in and {weight[0]} out; groups must "
            "divide both")
    if weight[1] != x[1] // groups:
        raise InvalidArgument(
            f"conv2d of x {x} and weight {weight} in {groups} groups: the weight's dimension 1 "
            f"must be {x[1] // groups}")
    if len(shapes) == 3 and shapes[2] != weight[:1]:
        raise InvalidArgument(f"conv2d's bias has shape {shapes[2]}; it must be {weight[:1]}")


def _conv2d(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    stride = _pair(op, attributes, "stride")
    padding = _pair(op, attributes, "padding")
    dilation = _pair(op, attributes, "dilation")
    _check_conv_operands(shapes, attributes["groups"])
    x, weight = shapes[0], shapes[1]
    return (x[0], weight[0], *_slide_plane(x[2:], weight[2:], stride, padding, dilation))


def _pool2d(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    if len(x) < 2:
        raise InvalidArgument(f'"{op.name}" of shape {x}; it must be (…, H, W)')
    kernel = _pair(op, attributes, "kernel")
    padding = _pair(op, attributes, "padding")
    stride = _pair(op, attributes, "stride") if attributes["stride"] else kernel
    for amount, size in zip(padding, kernel):
        if amount > size // 2:
            raise InvalidArgument(
                f"a padding of {amount} for a kernel of {size}; at most half the kernel makes "
                "sense")
    return x[:-2] + _slide_plane(x[-2:], kernel, stride, padding, (1, 1))


def _concat(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    first = shapes[0]
    axis = normalize_axis(attributes["axis"], len(first))
    total = first[axis]
    for shape in shapes[1:]:
        if len(shape) != len(first) or shape[:axis] + shape[axis + 1 :] != (
            first[:axis] + first[axis + 1 :]
        ):
            raise InvalidArgument(
                f"cannot concat {first} and {shape} along axis {axis}: all other sizes must agree")
        total += shape[axis]
    return (*first[:axis], total, *first[axis + 1 :])


def _one_hot(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    classes = attributes["classes"]
    if classes < 1:
        raise InvalidArgument(f"one_hot of {classes} classes; at least 1 is needed")
    return (*shapes[0], classes)


def _scalar(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return ()


def _gradient(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    y = shapes[0]
    if len(shapes) == 2 and y:
        raise InvalidArgument(
            f"the gradient's y has shape {y}; it must be a scalar, or an upstream of y's shape "
            "must be given")
    if len(shapes) == 3 and shapes[2] != y:
        raise InvalidArgument(
            f"the gradient's upstream has shape {shapes[2]}; it must be y's shape {y}")
    return shapes[1]


SHAPE_RULES: Dict[str, Callable[[Op, Sequence[Shape], Attributes], Shape]] = {
    "attribute": _attribute,
    "same": _same,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "pad": _pad,
    "shrink": _shrink,
    "flip": _flip,
    "window": _window,
    "unwindow": _unwindow,
    "gather": _gather,
    "scatter": _scatter,
    "matmul": _matmul,
    "linear": _linear,
    "attention": _attention,
    "conv2d": _conv2d,
    "pool2d": _pool2d,
    "concat": _concat,
    "one_hot": _one_hot,
    "scalar": _scalar,
    "gradient": _gradient,
}

_FIXED_DTYPES = ("bool", "int64", "int32", "uint32", "float32")


def _promote_all(op: Op, dtypes: Sequence[DType]) -> DType:
    result = _dtypes.bool_
    for i, dtype in enumerate(dtypes):
        if i != op.special_operand:
            result = _dtypes.promote(result, dtype)
    return result


def infer_dtype(op: Op, dtypes: Sequence[DType], declared: Any = None) -> DType:
    """The result's dtype; `declared` is the wanted one where the op leaves it open."""
    for i, dtype in enumerate(dtypes):
        wanted = op.special_class if i == op.special_operand else op.operand_class
        if dtype not in _dtypes.members(wanted):
            raise InvalidArgument(
                f'operand {i} of "{op.name}" has dtype {dtype.name}; it must be {wanted}')
    result = _dtype_by_rule(op, dtypes, declared)
    if declared is not None and declared is not result:
        raise InvalidArgument(
            f'"{op.name}" gives {result.name} here, not the declared {declared.name}')
    return result


def _dtype_by_rule(op: Op, dtypes: Sequence[DType], declared: Any) -> DType:
    rule = op.dtype_rule
    if rule == "attribute":
        if declared is None:
            raise InvalidArgument(f'"{op.name}" needs a dtype')
        return declared
    if rule == "same":
        return dtypes[0]
    if rule == "second":
        return dtypes[1]
    promoted = _promote_all(op, dtypes)
    if rule == "promote":
        return promoted
    if rule == "promote_float":
        return promoted if promoted.is_float else _dtypes.float32
    return _dtypes.BY_NAME[rule]


def check_operand_count(op: Op, count: int) -> None:
    """Raises unless `op` takes `count` operands."""
    least = sum(1 for name in op.operands if not name.endswith("?"))
    unlimited = any(name.endswith("*") for name in op.operands)
    if count < least or (count > len(op.operands) and not unlimited):
        most = "more" if unlimited else len(op.operands)
        raise InvalidArgument(f'"{op.name}" has {count} operands; it takes {least} to {most}')


def infer_shape(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    """The result's shape; `attributes` are complete."""
    return check_shape(SHAPE_RULES[op.shape_rule](op, shapes, attributes))


def complete_attributes(op: Op, attributes: Attributes) -> Dict[str, Any]:
    """`attributes` with the row's defaults; raises on unknown and missing ones."""
    known = {attribute.name for attribute in op.attributes}
    for name in attributes:
        if name not in known:
            raise InvalidArgument(
                f'"{op.name}" has no attribute "{name}"; it takes '
                f'{", ".join(sorted(known)) or "none"}')
    result = {}
    for attribute in op.attributes:
        value = attributes.get(attribute.name, attribute.default)
        if value is None:
            raise InvalidArgument(
                f'"{op.name}" needs the attribute "{attribute.name}" ({attribute.type})')
        result[attribute.name] = value
    return result
