"""Rules of shapes, and what must hold besides. Generated from compiler/ops by opgen; do not edit."""

# ruff: noqa: E501
from typing import Any, Dict, Sequence

from kiln._basics.dtypes import DType
from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.functions import (
    broadcast,
    broadcasts_to,
    check_axes,
    check_shape,
    convolution_positions,
    described,
    do_broadcast,
    einsum_shape,
    given,
    is_optional,
    is_spec,
    largest,
    normalize_axes,
    normalize_axis,
    operand_named,
    pool_positions,
    prod,
    spatial_rank,
    surely_more,
    transposed_sizes,
    window_positions,
)
from kiln._rules.query import Constraint
from kiln._rules.shapes import Attributes, Shape, ShapeRule


def _shape_attention(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    q = shapes[0]
    k = shapes[1]
    v = shapes[2]
    mask: Any = shapes[3] if len(shapes) > 3 else None
    grouped = attributes["grouped"]
    least = 3 if grouped else 2
    heads = ", with heads before" if grouped else ""
    if not (min(len(q), len(k), len(v)) >= least and q[-1] == k[-1] and k[-2] == v[-2]):
        raise InvalidArgument(
            f"attention of query {q}, key {k} and value {v}; they must be (…, L, E), (…, S, E) and "
            f"(…, S, V){heads}")
    if not (not grouped or (k[-3] >= 1 and k[-3] == v[-3] and q[-3] % k[-3] == 0)):
        raise InvalidArgument(
            f"attention in groups with {q[-3]} heads of query, {k[-3]} of key and {v[-3]} of value; the "
            "last two must be equal and divide the first")
    leading = broadcast([q[:-least], k[:-least], v[:-least]]) + q[-least:-2]
    scores = leading + (q[-2], k[-2])
    if not (not given(mask) or broadcasts_to(mask, scores)):
        raise InvalidArgument(
            f"attention's mask has shape {mask}; it must broadcast to {scores}")
    return leading + (q[-2], v[-1])


def _shape_attribute(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return attributes["shape"]


def _shape_broadcast(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return broadcast(shapes)


def _shape_concat(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    axis = normalize_axis(attributes["axis"], len(x))
    rest = x[:axis] + x[axis + 1:]
    for y in shapes:
        if not (len(y) == len(x) and y[:axis] + y[axis + 1:] == rest):
            raise InvalidArgument(
                f"cannot concat {x} and {y} along axis {axis}: all other sizes must agree")
    return x[:axis] + (sum(y[axis] for y in shapes),) + x[axis + 1:]


def _shape_conv(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    weight = shapes[1]
    bias: Any = shapes[2] if len(shapes) > 2 else None
    rank = spatial_rank(op)
    if not (len(x) == rank + 2 and len(weight) == rank + 2):
        raise InvalidArgument(
            f'"{op.name}" of x {x} and weight {weight}; both must have {rank + 2} dimensions: x batch, '
            f"channels and {rank} spatial ones")
    groups = attributes["groups"]
    if not (groups >= 1 and x[1] % groups == 0 and weight[0] % groups == 0):
        raise InvalidArgument(
            f'"{op.name}" in {groups} groups with {x[1]} channels in and {weight[0]} out; groups must '
            "divide both")
    if not (weight[1] == x[1] // groups):
        raise InvalidArgument(
            f'"{op.name}" of x {x} and weight {weight} in {groups} groups: the weight\'s dimension 1 must '
            f"be {x[1] // groups}")
    if not (not given(bias) or bias == weight[:1]):
        raise InvalidArgument(
            f'"{op.name}" with a bias of shape {bias}; it must be {weight[:1]}')
    return (x[0], weight[0]) + convolution_positions(x[2:], weight[2:], attributes)


def _shape_conv_transpose(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    weight = shapes[1]
    bias: Any = shapes[2] if len(shapes) > 2 else None
    rank = spatial_rank(op)
    if not (len(x) == rank + 2 and len(weight) == rank + 2):
        raise InvalidArgument(
            f'"{op.name}" of x {x} and weight {weight}; both must have {rank + 2} dimensions: x batch, '
            f"channels and {rank} spatial ones")
    groups = attributes["groups"]
    if not (weight[0] == x[1] and groups >= 1 and x[1] % groups == 0):
        raise InvalidArgument(
            f'"{op.name}" of x {x} and weight {weight} in {groups} groups: the weight\'s dimension 0 must '
            f"be x's channels ({x[1]}), and groups divide them")
    channels = (weight[1] * groups,)
    if not (not given(bias) or bias == channels):
        raise InvalidArgument(
            f'"{op.name}" with a bias of shape {bias}; it must be {channels}')
    return x[:1] + channels + transposed_sizes(x[2:], weight[2:], attributes)


def _shape_determinant(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    a = shapes[0]
    if not (len(a) >= 2 and a[-2] == a[-1]):
        raise InvalidArgument(
            f'"{op.name}" of shape {a}; it must be (…, N, N), square matrices')
    return a[:-2]


def _shape_diag_embed(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    if not (len(x) > 0):
        raise InvalidArgument(
            "diag_embed of a scalar; it needs a dimension")
    offset = attributes["offset"]
    if not (abs(offset) <= 72057594037927936):
        raise InvalidArgument(
            f"diag_embed with an offset of {offset}; it is too far")
    size = x[-1] + abs(offset)
    return x[:-1] + (size, size)


def _shape_diagonal(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    rows = normalize_axis(attributes["axis1"], len(x))
    columns = normalize_axis(attributes["axis2"], len(x))
    if not (rows != columns):
        raise InvalidArgument(
            f"the diagonal of axis {rows} and itself; it needs two axes")
    offset = attributes["offset"]
    height = max(x[rows] + min(offset, 0), 0)
    width = max(x[columns] - max(offset, 0), 0)
    return tuple(x[i] for i in range(len(x)) if i != rows and i != columns) + (min(height, width),)


def _shape_einsum(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return einsum_shape(attributes["equation"], shapes)


def _shape_expand(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    shape = attributes["shape"]
    if not (broadcasts_to(x, shape)):
        raise InvalidArgument(
            f"cannot expand {x} to {shape}: from the last dimension on, sizes must be equal or 1")
    return shape


def _shape_flip(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    normalize_axes(attributes["axes"], len(x))
    return x


def _shape_fold(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    kernel = attributes["kernel"]
    size = attributes["size"]
    if not (len(x) == 3 and len(kernel) > 0 and len(size) == len(kernel)):
        raise InvalidArgument(
            f"fold of shape {x} with a kernel of {len(kernel)} and a size of {len(size)} dimensions; x must "
            "be (N, C * taps, windows), the others agree")
    positions = convolution_positions(check_shape(size), kernel, attributes)
    if not (x[1] % prod(kernel) == 0 and x[2] == prod(positions)):
        raise InvalidArgument(
            f"fold of shape {x} to {size}: dimension 1 must be a multiple of {prod(kernel)}, the kernel's "
            f"elements, and dimension 2 be {prod(positions)}, the kernel's positions")
    return (x[0], x[1] // prod(kernel)) + size


def _shape_gather(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    index = shapes[1]
    axis = normalize_axis(attributes["axis"], len(x))
    return x[:axis] + index + x[axis + 1:]


def _shape_gather_elements(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    index = shapes[1]
    if not (len(index) == len(x)):
        raise InvalidArgument(
            f"an index of shape {index} for a tensor of shape {x}; both must have the same number of "
            "dimensions")
    axis = normalize_axis(attributes["axis"], len(x))
    places = x[:axis] + index[axis:axis + 1] + x[axis + 1:]
    if not (broadcasts_to(index, places)):
        raise InvalidArgument(
            f"an index of shape {index} does not broadcast to {places}")
    return places


def _shape_gradient(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    y = shapes[0]
    x = shapes[1]
    upstream: Any = shapes[2] if len(shapes) > 2 else None
    if not (given(upstream) or len(y) == 0):
        raise InvalidArgument(
            f"the gradient's y has shape {y}; it must be a scalar, or an upstream of y's shape must be given")
    if not (not given(upstream) or upstream == y):
        raise InvalidArgument(
            f"the gradient's upstream has shape {upstream}; it must be y's shape {y}")
    return x


def _shape_half(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    axis = normalize_axis(attributes["axis"], len(x))
    if not (x[axis] % 2 == 0):
        raise InvalidArgument(
            f'"{op.name}" halves dimension {axis} of shape {x}; its size must be even')
    return x[:axis] + (x[axis] // 2,) + x[axis + 1:]


def _shape_index(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    axis = normalize_axis(attributes["axis"], len(x))
    indices = shapes[1:]
    if not (axis + len(indices) <= len(x)):
        raise InvalidArgument(
            f"{len(indices)} indices from axis {axis} on, of a tensor with {len(x)} dimensions")
    return x[:axis] + broadcast(indices) + x[axis + len(indices):]


def _shape_index_put(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    values = shapes[1]
    axis = normalize_axis(attributes["axis"], len(x))
    indices = shapes[2:]
    if not (axis + len(indices) <= len(x)):
        raise InvalidArgument(
            f"{len(indices)} indices from axis {axis} on, of a tensor with {len(x)} dimensions")
    places = x[:axis] + broadcast(indices) + x[axis + len(indices):]
    if not (broadcasts_to(values, places)):
        raise InvalidArgument(
            f"values of shape {values} do not broadcast to {places}")
    return x


def _shape_label_loss(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    scores = shapes[0]
    labels = shapes[1]
    weight: Any = shapes[2] if len(shapes) > 2 else None
    if not (len(scores) > 0):
        raise InvalidArgument(
            f'"{op.name}" of scores without a class dimension')
    axis = 1 if len(scores) > 1 else 0
    wanted = scores[:axis] + scores[axis + 1:]
    if not (labels == wanted or labels == scores):
        raise InvalidArgument(
            f"labels of shape {labels} for scores of shape {scores}; they must have shape {wanted}")
    classes = scores[axis:axis + 1]
    if not (not given(weight) or weight == classes):
        raise InvalidArgument(
            f"class weights of shape {weight} for scores of shape {scores}; they must have shape {classes}")
    none = attributes["reduction"] == "none"
    return wanted if none else ()


def _shape_linear(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    weight = shapes[1]
    bias: Any = shapes[2] if len(shapes) > 2 else None
    if not (len(x) > 0 and len(weight) == 2 and x[-1] == weight[1]):
        raise InvalidArgument(
            f"linear of x {x} and weight {weight}; x must be (…, in), weight (out, in)")
    if not (not given(bias) or bias == weight[:1]):
        raise InvalidArgument(
            f"linear's bias has shape {bias}; it must be {weight[:1]}")
    return x[:-1] + weight[:1]


def _shape_loss(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    for i in range(1, len(shapes)):
        if not (is_optional(op, i) or shapes[i] == x):
            raise InvalidArgument(
                f'"{op.name}" of {described(op, shapes, 0)} and {described(op, shapes, i)}; they must agree')
    for i in range(1, len(shapes)):
        if not (broadcasts_to(shapes[i], x)):
            raise InvalidArgument(
                f'"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, i)}, which must '
                "broadcast to it")
    none = attributes["reduction"] == "none"
    return x if none else ()


def _shape_matmul(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    a = shapes[0]
    b = shapes[1]
    if not (len(a) > 0 and len(b) > 0):
        raise InvalidArgument(
            f"matmul of {a} and {b}; scalars have no dimension to sum over, use mul")
    rows = b[-2] if len(b) > 1 else b[0]
    place = "second to last" if len(b) > 1 else "only"
    if not (a[-1] == rows):
        raise InvalidArgument(
            f"matmul of {a} and {b}: the first's last dimension ({a[-1]}) must equal the second's {place} "
            f"dimension ({rows})")
    if not (do_broadcast(a[:-2], b[:-2])):
        raise InvalidArgument(
            f"matmul of {a} and {b}: shapes {a[:-2]} and {b[:-2]} do not broadcast: from the last "
            "dimension on, sizes must be equal or 1")
    return broadcast([a[:-2], b[:-2]]) + a[-2:-1] + (b[-1:] if len(b) > 1 else ())


def _shape_one_hot(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    classes = attributes["classes"]
    if not (classes >= 1):
        raise InvalidArgument(
            f"one_hot of {classes} classes; at least 1 is needed")
    return x + (classes,)


def _shape_pad(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    padding = attributes["padding"]
    if not (len(padding) == 2 * len(x)):
        raise InvalidArgument(
            f'"padding" has {len(padding)} entries for shape {x}; it needs {2 * len(x)}: before and '
            "after for each dimension")
    if not (all(amount >= 0 for amount in padding)):
        raise InvalidArgument(
            f'"padding" {padding} has a negative entry; shrink cuts')
    return tuple(x[i] + padding[2 * i] + padding[2 * i + 1] for i in range(len(x)))


def _shape_pairwise(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = broadcast(shapes)
    axis = normalize_axis(attributes["axis"], len(shape))
    return shape[:axis] + ((1,) if attributes["keepdims"] else ()) + shape[axis + 1:]


def _shape_permute(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    axes = attributes["axes"]
    if not (tuple(sorted(axes)) == tuple(range(len(x)))):
        raise InvalidArgument(
            f'"axes" {axes} is not a permutation of the {len(x)} dimensions of shape {x}')
    return tuple(x[axis] for axis in axes)


def _shape_pixel_shuffle(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    factor = attributes["factor"]
    if not (len(x) >= 3 and 1 <= factor <= 1048576):
        raise InvalidArgument(
            f'"{op.name}" of shape {x} by {factor}; x must be (…, C, H, W) and the factor at least 1')
    if not (x[-3] % (factor * factor) == 0):
        raise InvalidArgument(
            f"pixel_shuffle by {factor} of {x[-3]} channels; they must be a multiple of {factor * factor}")
    return x[:-3] + (x[-3] // (factor * factor), x[-2] * factor, x[-1] * factor)


def _shape_pixel_unshuffle(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    factor = attributes["factor"]
    if not (len(x) >= 3 and 1 <= factor <= 1048576):
        raise InvalidArgument(
            f'"{op.name}" of shape {x} by {factor}; x must be (…, C, H, W) and the factor at least 1')
    if not (x[-2] % factor == 0 and x[-1] % factor == 0):
        raise InvalidArgument(
            f"pixel_unshuffle by {factor} of {x[-2]} x {x[-1]} pixels; both must be multiples of it")
    return x[:-3] + (x[-3] * factor * factor, x[-2] // factor, x[-1] // factor)


def _shape_pool(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    rank = spatial_rank(op)
    kernel = attributes["kernel"]
    if not (len(kernel) == rank):
        raise InvalidArgument(
            f'"kernel" has {len(kernel)} entries; it needs {rank}, one for each spatial dimension')
    if not (len(x) >= rank):
        raise InvalidArgument(
            f'"{op.name}" of shape {x}; it needs at least {rank} dimensions, the spatial ones last')
    return x[:-rank] + pool_positions(x[-rank:], attributes)


def _shape_put_along_axis(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    index = shapes[1]
    values = shapes[2]
    if not (len(index) == len(x)):
        raise InvalidArgument(
            f"an index of shape {index} for a tensor of shape {x}; both must have the same number of "
            "dimensions")
    axis = normalize_axis(attributes["axis"], len(x))
    places = x[:axis] + index[axis:axis + 1] + x[axis + 1:]
    if not (broadcasts_to(index, places)):
        raise InvalidArgument(
            f"an index of shape {index} does not broadcast to {places}")
    if not (broadcasts_to(values, places)):
        raise InvalidArgument(
            f"values of shape {values} do not broadcast to {places}")
    return x


def _shape_qr(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    if not (len(x) >= 2):
        raise InvalidArgument(
            f"qr of shape {x}; it must be (…, M, N), matrices")
    inner = x[-2] if attributes["complete"] else min(x[-2], x[-1])
    is_q = attributes["part"] == "q"
    return x[:-1] + (inner,) if is_q else x[:-2] + (inner, x[-1])


def _shape_reduce(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    axes = normalize_axes(attributes["axes"], len(x))
    keepdims = attributes["keepdims"]
    return tuple(1 if i in axes else x[i] for i in range(len(x)) if keepdims or i not in axes)


def _shape_reshape(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    shape = check_shape(attributes["shape"])
    if not (prod(x) == prod(shape)):
        raise InvalidArgument(
            f"cannot reshape {x} ({prod(x)} elements) to {shape} ({prod(shape)} elements)")
    return shape


def _shape_resize(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    size = attributes["size"]
    if not (0 < len(size) <= len(x)):
        raise InvalidArgument(
            f'"size" has {len(size)} entries for shape {x}; it needs one for each spatial dimension, the '
            "last ones")
    spatial = x[-len(size):]
    if not (all(length >= 1 for length in size + spatial)):
        raise InvalidArgument(
            f"cannot resize {spatial} to {size}; every size must be at least 1")
    return x[:-len(size)] + size


def _shape_row_loss(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    if not (len(x) > 0):
        raise InvalidArgument(
            f'"{op.name}" of scalars; its operands must be (…, features)')
    for i in range(1, len(shapes)):
        if not (shapes[i] == x or (i > 1 and shapes[i] == x[:-1])):
            raise InvalidArgument(
                f'"{op.name}" of {described(op, shapes, 0)} and {described(op, shapes, i)}; they must agree')
    none = attributes["reduction"] == "none"
    return x[:-1] if none else ()


def _shape_same(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    return x


def _shape_scatter(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    index = shapes[1]
    values = shapes[2]
    axis = normalize_axis(attributes["axis"], len(x))
    places = x[:axis] + index + x[axis + 1:]
    if not (values == places):
        raise InvalidArgument(
            f"values of shape {values} to scatter into {x} at an index of shape {index}; they must have "
            f"shape {places}")
    return x


def _shape_scatter_elements(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    index = shapes[1]
    values = shapes[2]
    if not (len(index) == len(x)):
        raise InvalidArgument(
            f"an index of shape {index} for a tensor of shape {x}; both must have the same number of "
            "dimensions")
    axis = normalize_axis(attributes["axis"], len(x))
    places = x[:axis] + index[axis:axis + 1] + x[axis + 1:]
    if not (broadcasts_to(index, places)):
        raise InvalidArgument(
            f"an index of shape {index} does not broadcast to {places}")
    if not (values == places):
        raise InvalidArgument(
            f"values of shape {values} to scatter into {x} at an index of shape {index}; they must have "
            f"shape {places}")
    return x


def _shape_shrink(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    bounds = attributes["bounds"]
    if not (len(bounds) == 2 * len(x)):
        raise InvalidArgument(
            f'"bounds" has {len(bounds)} entries for shape {x}; it needs {2 * len(x)}: begin and end for '
            "each dimension")
    for i in range(len(x)):
        if not (0 <= bounds[2 * i] <= bounds[2 * i + 1] <= x[i]):
            raise InvalidArgument(
                f"bounds [{bounds[2 * i]}, {bounds[2 * i + 1]}) of dimension {i} of shape {x}; "
                f"0 <= begin <= end <= {x[i]} must hold")
    return tuple(bounds[2 * i + 1] - bounds[2 * i] for i in range(len(x)))


def _shape_solve(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    a = shapes[0]
    b = shapes[1]
    if not (len(a) >= 2 and a[-2] == a[-1]):
        raise InvalidArgument(
            f'"{op.name}" of shape {a}; it must be (…, N, N), square matrices')
    rows = b[-2:-1] if len(b) > 1 else b
    if not (rows == a[-1:]):
        raise InvalidArgument(
            f'"{op.name}" of a {a} and b {b}; b must be ({a[-1]},) or (…, {a[-1]}, M)')
    return broadcast([a[:-2], b[:-2]]) + b[-2:] if len(b) > 1 else a[:-1]


def _shape_take_along_axis(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    index = shapes[1]
    if not (len(index) == len(x)):
        raise InvalidArgument(
            f"an index of shape {index} for a tensor of shape {x}; both must have the same number of "
            "dimensions")
    axis = normalize_axis(attributes["axis"], len(x))
    return broadcast([x[:axis] + index[axis:axis + 1] + x[axis + 1:], index])


def _shape_topk(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    if not (len(x) > 0):
        raise InvalidArgument(
            "topk of a scalar; it needs a dimension to choose from")
    axis = normalize_axis(attributes["axis"], len(x))
    count = attributes["k"]
    if not (0 <= count <= x[axis]):
        raise InvalidArgument(
            f"topk of {count} elements along a dimension of size {x[axis]}; k must be in [0, {x[axis]}]")
    return x[:axis] + (count,) + x[axis + 1:]


def _shape_unfold(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    kernel = attributes["kernel"]
    if not (len(kernel) > 0 and len(x) == len(kernel) + 2):
        raise InvalidArgument(
            f"unfold of shape {x} with a kernel of {len(kernel)} dimensions; x must be (N, C, and as many "
            "spatial ones)")
    positions = convolution_positions(x[2:], kernel, attributes)
    return (x[0], x[1] * prod(kernel), prod(positions))


def _shape_unwindow(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    if not (len(x) >= 2):
        raise InvalidArgument(
            f"unwindow of shape {x}; it needs an axis and a last dimension, the window's")
    axis = normalize_axis(attributes["axis"], len(x) - 1)
    length = attributes["length"]
    positions = window_positions(length, x[-1], attributes["stride"], attributes["dilation"])
    if not (positions == x[axis]):
        raise InvalidArgument(
            f"unwindow of axis {axis} of shape {x} to length {length}: that length has {positions} windows, "
            f"not {x[axis]}")
    return x[:axis] + (length,) + x[axis + 1:]


def _shape_window(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    x = shapes[0]
    axis = normalize_axis(attributes["axis"], len(x))
    size = attributes["size"]
    positions = window_positions(x[axis], size, attributes["stride"], attributes["dilation"])
    return x[:axis] + (positions,) + x[axis + 1:] + (size,)


def _check_axis(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    normalize_axis(attributes["axis"], len(x))


def _check_axis_of_result(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    normalize_axis(attributes["axis"], len(shape))


def _check_channels(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    if not (len(x) >= 2):
        raise InvalidArgument(
            f'"{op.name}" of shape {x}; it must be (N, C, …)')
    wanted = x[1:2]
    for i in range(1, len(shapes)):
        if not (shapes[i] == wanted):
            raise InvalidArgument(
                f'"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, i)}; it must have '
                f"shape {wanted}")


def _check_circular_padding(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    padding = attributes["padding"]
    for i in range(2 * len(x)):
        if not (not (surely_more(padding[i], 0) and surely_more(padding[i], x[i // 2]))):
            raise InvalidArgument(
                f"a padding of {padding[i - i % 2]} and {padding[i - i % 2 + 1]} around dimension {i // 2} of "
                f"size {x[i // 2]}; at most {max(largest(x[i // 2]), 0)} is there to repeat")


def _check_equal_bits(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    source = dtypes[0]
    has_bool = (source.name == "bool") != (dtype.name == "bool")
    if not (source.itemsize == dtype.itemsize and not has_bool):
        raise InvalidArgument(
            f"cannot {op.name} {source.name} to {dtype.name}; both must have one size, and not be bool")


def _check_equal_dtypes(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    if not (len(dtypes) < 3 or dtypes[2] == dtypes[0]):
        raise InvalidArgument(
            f"values of {dtypes[2].name} for x of {dtypes[0].name}; both must have one dtype, cast one of "
            "them")


def _check_equal_shapes(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    wanted = shapes[0]
    for i in range(1, len(shapes)):
        if not (shapes[i] == wanted):
            raise InvalidArgument(
                f'"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, i)}; it must have '
                f"shape {wanted}")


def _check_few_columns(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    if not (not (surely_more(x[-2], 512) and surely_more(x[-1], 512))):
        raise InvalidArgument(
            f'"{op.name}" of matrices of shape {x}; the most is 512 columns, on larger ones work in blocks')


def _check_float_result(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    if not (dtype.is_float):
        raise InvalidArgument(
            f'"{op.name}" of {dtype.name}; it must be float')


def _check_groups(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    groups = attributes["groups"]
    if not (groups >= 1 and x[1] % groups == 0):
        raise InvalidArgument(
            f'"{op.name}" of {x[1]} channels in {groups} groups; groups must divide the channels')


def _check_index_labels(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    scores = shapes[0]
    labels = shapes[1]
    if not (dtypes[1].is_integer and len(labels) + 1 == len(scores)):
        raise InvalidArgument(
            f"labels of {dtypes[1].name}{labels} for scores of shape {scores}; labels are integers without "
            "the class dimension")


def _check_key(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    key = operand_named(op, shapes, "key")
    if not (key == (2,)):
        raise InvalidArgument(
            f"a key of shape {key}; it must be uint32 of shape (2,)")


def _check_label_for_each_row(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    other = shapes[1]
    labels = shapes[2]
    if not (len(labels) + 1 == len(x)):
        raise InvalidArgument(
            f'"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, 2)}; it must have one '
            "element for each row")


def _check_labels(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    scores = shapes[0]
    labels = shapes[1]
    are_indices = dtypes[1].is_integer and len(labels) + 1 == len(scores)
    if not (are_indices or (dtypes[1].is_float and labels == scores)):
        raise InvalidArgument(
            f"labels of {dtypes[1].name}{labels} for scores of shape {scores}; labels are integers without "
            "the class dimension, probabilities floats with it")


def _check_last_axes(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    axes = attributes["axes"]
    if not (1 <= axes <= len(x)):
        raise InvalidArgument(
            f'"axes" is {axes} for a tensor of shape {x}; it must be 1 to {len(x)}')
    wanted = x[-axes:]
    for i in range(1, len(shapes)):
        if not (shapes[i] == wanted):
            raise InvalidArgument(
                f'"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, i)}; it must have '
                f"shape {wanted}")


def _check_matrices(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    if not (len(x) >= 2):
        raise InvalidArgument(
            f'"{op.name}" of shape {x}; it must be (…, rows, columns)')


def _check_mesh_spec(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    spec = attributes["spec"]
    if not (is_spec(spec, len(x))):
        raise InvalidArgument(
            f'"spec" {spec} for shape {x}; it needs for each dimension the number of axes of the mesh that '
            "split it, then these axes, each once")


def _check_numbers_to_combine(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    mode = attributes["mode"]
    if not (mode == "set" or dtypes[0].name != "bool"):
        raise InvalidArgument(
            f'mode "{mode}" of bools; it must be set, or x and values numbers')


def _check_numeric_result(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    if not (dtype.name != "bool"):
        raise InvalidArgument(
            f'"{op.name}" of bool; it needs a numeric dtype')


def _check_one_axis(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    if not (len(attributes["axes"]) <= 1):
        raise InvalidArgument(
            f'"{op.name}" over several axes; it takes one, or none for the flattened tensor')


def _check_order_axis(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    normalize_axis(attributes["axis"], max(len(x), 1))


def _check_ordered_bounds(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    low = attributes["min"]
    high = attributes["max"]
    if not (low < high):
        raise InvalidArgument(
            f'"{op.name}" between {low} and {high}; "min" must be less than "max"')


def _check_reflect_padding(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    padding = attributes["padding"]
    for i in range(2 * len(x)):
        if not (not (surely_more(padding[i], 0) and surely_more(padding[i], x[i // 2] - 1))):
            raise InvalidArgument(
                f"a padding of {padding[i - i % 2]} and {padding[i - i % 2 + 1]} around dimension {i // 2} of "
                f"size {x[i // 2]}; at most {max(largest(x[i // 2] - 1), 0)} is there to repeat")


def _check_replicate_padding(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    padding = attributes["padding"]
    for i in range(2 * len(x)):
        if not (x[i // 2] != 0 or not surely_more(padding[i], 0)):
            raise InvalidArgument(
                f"a padding of {padding[i - i % 2]} and {padding[i - i % 2 + 1]} around dimension {i // 2} of "
                "size 0; at most 0 is there to repeat")


def _check_rotary(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    cos = shapes[1]
    sin = shapes[2]
    fits = len(x) > 0 and len(cos) > 0 and cos == sin and not surely_more(2 * cos[-1], x[-1])
    if not (fits and broadcasts_to(cos, x[:-1] + cos[-1:])):
        raise InvalidArgument(
            f'"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, 1)} and '
            f"{described(op, shapes, 2)}; both must broadcast to x with at most half its features")


def _check_send(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    source = attributes["source"]
    target = attributes["target"]
    if not (source >= 0 and target >= 0):
        raise InvalidArgument(
            f'"source" {source} and "target" {target}; devices have the numbers 0, 1, 2 and so on')


def _check_sequence(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    sequence = shapes[1]
    if not (len(sequence) == 1):
        raise InvalidArgument(
            f'"{op.name}" in a sequence of shape {sequence}; it must have one dimension')


def _check_shared_axes(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    check_axes(attributes["shared_axes"], len(x))


def _check_shifts(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    axes = attributes["axes"]
    shifts = attributes["shifts"]
    if not (len(shifts) == len(axes)):
        raise InvalidArgument(
            f'"{op.name}" with {len(shifts)} shifts and {len(axes)} axes; each axis needs one')
    check_axes(axes, len(x))


def _check_slopes(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    weight = shapes[1]
    channels = x[1] if len(x) > 1 else 1
    if not (weight == () or weight == (1,) or weight == (channels,)):
        raise InvalidArgument(
            f'"{op.name}" of {channels} channels with {described(op, shapes, 1)}; it takes one slope, or '
            "one for each channel")


def _check_spatial(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    x = shapes[0]
    if not (len(x) >= 3):
        raise InvalidArgument(
            f'"{op.name}" of shape {x}; it must be (N, C, spatial)')


def _check_square(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    a = shapes[0]
    if not (len(a) >= 2 and a[-2] == a[-1]):
        raise InvalidArgument(
            f'"{op.name}" of shape {a}; it must be (…, N, N), square matrices')


def _check_three_along_axis(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    a = shapes[0]
    b = shapes[1]
    axis = normalize_axis(attributes["axis"], len(shape))
    if not (shape[axis] == 3):
        raise InvalidArgument(
            f'"{op.name}" of {a} and {b} along axis {axis}, which has size {shape[axis]}; it must be 3')


def _check_upstream_dtype(op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: Attributes, shape: Shape, dtype: DType) -> None:
    if not (len(dtypes) < 3 or dtypes[2] == dtypes[0]):
        raise InvalidArgument(
            f"an upstream of {dtypes[2].name} for y of {dtypes[0].name}; both must have one dtype, cast one "
            "of them")


SHAPE_RULES: Dict[str, ShapeRule] = {
    "attention": _shape_attention,
    "attribute": _shape_attribute,
    "broadcast": _shape_broadcast,
    "concat": _shape_concat,
    "conv": _shape_conv,
    "conv_transpose": _shape_conv_transpose,
    "determinant": _shape_determinant,
    "diag_embed": _shape_diag_embed,
    "diagonal": _shape_diagonal,
    "einsum": _shape_einsum,
    "expand": _shape_expand,
    "flip": _shape_flip,
    "fold": _shape_fold,
    "gather": _shape_gather,
    "gather_elements": _shape_gather_elements,
    "gradient": _shape_gradient,
    "half": _shape_half,
    "index": _shape_index,
    "index_put": _shape_index_put,
    "label_loss": _shape_label_loss,
    "linear": _shape_linear,
    "loss": _shape_loss,
    "matmul": _shape_matmul,
    "one_hot": _shape_one_hot,
    "pad": _shape_pad,
    "pairwise": _shape_pairwise,
    "permute": _shape_permute,
    "pixel_shuffle": _shape_pixel_shuffle,
    "pixel_unshuffle": _shape_pixel_unshuffle,
    "pool": _shape_pool,
    "put_along_axis": _shape_put_along_axis,
    "qr": _shape_qr,
    "reduce": _shape_reduce,
    "reshape": _shape_reshape,
    "resize": _shape_resize,
    "row_loss": _shape_row_loss,
    "same": _shape_same,
    "scatter": _shape_scatter,
    "scatter_elements": _shape_scatter_elements,
    "shrink": _shape_shrink,
    "solve": _shape_solve,
    "take_along_axis": _shape_take_along_axis,
    "topk": _shape_topk,
    "unfold": _shape_unfold,
    "unwindow": _shape_unwindow,
    "window": _shape_window,
}

CONSTRAINTS: Dict[str, Constraint] = {
    "axis": _check_axis,
    "axis_of_result": _check_axis_of_result,
    "channels": _check_channels,
    "circular_padding": _check_circular_padding,
    "equal_bits": _check_equal_bits,
    "equal_dtypes": _check_equal_dtypes,
    "equal_shapes": _check_equal_shapes,
    "few_columns": _check_few_columns,
    "float_result": _check_float_result,
    "groups": _check_groups,
    "index_labels": _check_index_labels,
    "key": _check_key,
    "label_for_each_row": _check_label_for_each_row,
    "labels": _check_labels,
    "last_axes": _check_last_axes,
    "matrices": _check_matrices,
    "mesh_spec": _check_mesh_spec,
    "numbers_to_combine": _check_numbers_to_combine,
    "numeric_result": _check_numeric_result,
    "one_axis": _check_one_axis,
    "order_axis": _check_order_axis,
    "ordered_bounds": _check_ordered_bounds,
    "reflect_padding": _check_reflect_padding,
    "replicate_padding": _check_replicate_padding,
    "rotary": _check_rotary,
    "send": _check_send,
    "sequence": _check_sequence,
    "shared_axes": _check_shared_axes,
    "shifts": _check_shifts,
    "slopes": _check_slopes,
    "spatial": _check_spatial,
    "square": _check_square,
    "three_along_axis": _check_three_along_axis,
    "upstream_dtype": _check_upstream_dtype,
}
