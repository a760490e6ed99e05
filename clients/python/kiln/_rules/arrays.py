"""Shapes of ops on whole arrays and on matrices: topk, diagonals, solve, determinant, qr."""

from typing import Dict, Sequence

from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
from kiln._rules.shapes import MAX_ELEMENTS, Attributes, Shape, ShapeRule, broadcast, normalize_axis


def _topk(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = list(shapes[0])
    if not shape:
        raise InvalidArgument("topk of a scalar; it needs a dimension to choose from")
    axis = normalize_axis(attributes["axis"], len(shape))
    count = attributes["k"]
    if not 0 <= count <= shape[axis]:
        raise InvalidArgument(
            f"topk of {count} elements along a dimension of size {shape[axis]}; k must be in "
            f"[0, {shape[axis]}]")
    shape[axis] = count
    return tuple(shape)


def _diagonal(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    rows = normalize_axis(attributes["axis1"], len(shape))
    columns = normalize_axis(attributes["axis2"], len(shape))
    if rows == columns:
        raise InvalidArgument(f"the diagonal of axis {rows} and itself; it needs two axes")
    offset = attributes["offset"]
    height = max(shape[rows] + min(offset, 0), 0)
    width = max(shape[columns] - max(offset, 0), 0)
    kept = tuple(size for i, size in enumerate(shape) if i not in (rows, columns))
    return (*kept, min(height, width))


def _diag_embed(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    if not shape:
        raise InvalidArgument("diag_embed of a scalar; it needs a dimension")
    offset = abs(attributes["offset"])
    if offset > MAX_ELEMENTS:
        raise InvalidArgument(
            f"diag_embed with an offset of {attributes['offset']}; it is too far")
    size = shape[-1] + offset
    return (*shape[:-1], size, size)


def check_square(op: Op, shape: Shape) -> None:
    if len(shape) < 2 or shape[-2] != shape[-1]:
        raise InvalidArgument(
            f'"{op.name}" of shape {shape}; it must be (…, N, N), square matrices')


def _solve(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    a, b = shapes
    check_square(op, a)
    vector = len(b) == 1
    rows = b[-1 if vector else -2] if b else -1
    if rows != a[-1]:
        raise InvalidArgument(
            f'"{op.name}" of a {a} and b {b}; b must be ({a[-1]},) or (…, {a[-1]}, M)')
    if vector:
        return a[:-1]
    return (*broadcast([a[:-2], b[:-2]]), *b[-2:])


def _determinant(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    check_square(op, shapes[0])
    return shapes[0][:-2]


def _qr(op: Op, shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    if len(shape) < 2:
        raise InvalidArgument(f"qr of shape {shape}; it must be (…, M, N), matrices")
    rows, columns = shape[-2:]
    inner = rows if attributes["complete"] else min(rows, columns)
    is_q = attributes["part"] == "q"
    return (*shape[:-2], rows, inner) if is_q else (*shape[:-2], inner, columns)


RULES: Dict[str, ShapeRule] = {
    "topk": _topk,
    "diagonal": _diagonal,
    "diag_embed": _diag_embed,
    "solve": _solve,
    "determinant": _determinant,
    "qr": _qr,
}
