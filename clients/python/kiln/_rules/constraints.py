"""What must hold of operands and attributes beyond the rules of shapes and dtypes.

One function for each name in the table of ops; compiler/ops/rules/constraints.h has the daemon's.
What only some values of a variable would break is left to the run, whose daemon knows the values.
"""

from typing import Any, Callable, Dict, Tuple

from kiln._basics.dtypes import bool_
from kiln._basics.errors import InvalidArgument
from kiln._rules import neural_constraints
from kiln._rules.arrays import check_square
from kiln._rules.query import Constraint, Query, surely_more
from kiln._rules.shapes import normalize_axis
from kiln.variables import bounds

# A factorization is some ten nodes for each column.
MOST_COLUMNS = 512


def check_constraints(query: Query) -> None:
    """Raises InvalidArgument for the first of the op's constraints that does not hold."""
    for name in query.op.constraints:
        CONSTRAINTS[name](query)


# Axes.


def _axes(names: Tuple[str, ...], rank: Callable[[Query], int]) -> Constraint:
    """The axes that attributes name are among so many."""

    def check(query: Query) -> None:
        for name in names:
            given = query.attributes[name]
            for axis in given if isinstance(given, (tuple, list)) else (given,):
                normalize_axis(axis, rank(query))

    return check


def _rank(query: Query) -> int:
    return len(query.shapes[0])


def _one_axis(query: Query) -> None:
    if len(query.attributes["axes"]) > 1:
        raise InvalidArgument(
            f'"{query.op.name}" over several axes; it takes one, or none for the flattened tensor')


def _shifts(query: Query) -> None:
    shifts, axes = query.attributes["shifts"], query.attributes["axes"]
    if len(shifts) != len(axes):
        raise InvalidArgument(
            f'"{query.op.name}" with {len(shifts)} shifts and {len(axes)} axes; each axis needs '
            "one")
    _axes(("axes",), _rank)(query)


# Arrays and matrices.


def _matrices(query: Query) -> None:
    if len(query.shapes[0]) < 2:
        raise InvalidArgument(
            f'"{query.op.name}" of shape {query.shapes[0]}; it must be (…, rows, columns)')


def _square(query: Query) -> None:
    check_square(query.op, query.shapes[0])


def _few_columns(query: Query) -> None:
    rows, columns = query.shapes[0][-2:]
    if surely_more(rows, MOST_COLUMNS) and surely_more(columns, MOST_COLUMNS):
        raise InvalidArgument(
            f'"{query.op.name}" of matrices of shape {query.shapes[0]}; the most is '
            f"{MOST_COLUMNS} columns, on larger ones work in blocks")


def _three_along_axis(query: Query) -> None:
    axis = normalize_axis(query.attributes["axis"], len(query.shape))
    if query.shape[axis] != 3:
        raise InvalidArgument(
            f'"{query.op.name}" of {query.shapes[0]} and {query.shapes[1]} along axis {axis}, '
            f"which has size {query.shape[axis]}; it must be 3")


def _sequence(query: Query) -> None:
    if len(query.shapes[1]) != 1:
        raise InvalidArgument(
            f'"{query.op.name}" in a sequence of shape {query.shapes[1]}; it must have one '
            "dimension")


def _key(query: Query) -> None:
    shape = query.shapes[query.op.operands.index("key")]
    if shape != (2,):
        raise InvalidArgument(f"a key of shape {shape}; it must be uint32 of shape (2,)")


def _border(most: Callable[[Any], Any]) -> Constraint:
    """Padding that repeats at most so many elements of a dimension of a size."""

    def check(query: Query) -> None:
        padding = query.attributes["padding"]
        for i, size in enumerate(query.shapes[0]):
            before, after = padding[2 * i], padding[2 * i + 1]
            there = most(size)
            for amount in (before, after):
                if surely_more(amount, 0) and surely_more(amount, there):
                    raise InvalidArgument(
                        f"a padding of {before} and {after} around dimension {i} of size {size}; "
                        f"at most {max(bounds(there)[1], 0)} is there to repeat")

    return check


# Dtypes.


def _equal_dtypes(what: str) -> Constraint:
    def check(query: Query) -> None:
        dtypes = query.dtypes
        if len(dtypes) > 2 and dtypes[2] is not dtypes[0]:
            raise InvalidArgument(
                f"{what} of {dtypes[2].name} for {query.op.operands[0]} of {dtypes[0].name}; both "
                "must have one dtype, cast one of them")

    return check


def _numbers_to_combine(query: Query) -> None:
    mode = query.attributes["mode"]
    if mode != "set" and query.dtypes[0] is bool_:
        raise InvalidArgument(
            f'mode "{mode}" of bools; it must be set, or x and values numbers')


def _equal_bits(query: Query) -> None:
    source, target = query.dtypes[0], query.dtype
    if source.itemsize != target.itemsize or (source is bool_) != (target is bool_):
        raise InvalidArgument(
            f"cannot {query.op.name} {source.name} to {target.name}; both must have one size, and "
            "not be bool")


def _numeric_result(query: Query) -> None:
    if query.dtype is bool_:
        raise InvalidArgument(f'"{query.op.name}" of bool; it needs a numeric dtype')


def _float_result(query: Query) -> None:
    if not query.dtype.is_float:
        raise InvalidArgument(f'"{query.op.name}" of {query.dtype.name}; it must be float')


CONSTRAINTS: Dict[str, Constraint] = {
    "axis": _axes(("axis",), _rank),
    "order_axis": _axes(("axis",), lambda query: max(_rank(query), 1)),
    "axis_of_result": _axes(("axis",), lambda query: len(query.shape)),
    "shared_axes": _axes(("shared_axes",), _rank),
    "one_axis": _one_axis,
    "matrices": _matrices,
    "square": _square,
    "few_columns": _few_columns,
    "three_along_axis": _three_along_axis,
    "shifts": _shifts,
    "reflect_padding": _border(lambda size: size - 1),
    "circular_padding": _border(lambda size: size),
    "replicate_padding": _border(lambda size: 0 if size == 0 else 1 << 62),
    "sequence": _sequence,
    "key": _key,
    "equal_dtypes": _equal_dtypes("values"),
    "numbers_to_combine": _numbers_to_combine,
    "upstream_dtype": _equal_dtypes("an upstream"),
    "equal_bits": _equal_bits,
    "numeric_result": _numeric_result,
    "float_result": _float_result,
    **neural_constraints.CONSTRAINTS,
}
