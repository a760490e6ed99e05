"""Every op with operands without elements, compared with JAX and NumPy.

Each size of a case in turn is 0.
"""

from typing import List, Optional

import numpy as np
import pytest

import kiln
from kiln._graph.node import TABLE
from op_table.expected import Expected, Trial, one_by_one
from op_table.row import Case, Row, values
from op_table.table import ROWS
from test_op_table import (
    TRIED,
    Attempt,
    Compared,
    applied,
    cases_for,
    difference,
    domain_of,
    factor_of,
    variable,
)

ONE_SESSION = True

CASES_MAX = 2  # the smallest ones
# Ops without anything to compare, with the reason.
NOT_COMPARED = {
    **dict.fromkeys(("argmax", "argmin", "max", "min"), "JAX knows no largest of nothing"),
    **dict.fromkeys(("expand", "shrink", "pad_circular", "pad_reflect", "pad_replicate"),
                    "its attributes say how much there is, and nothing less is refused"),
    **dict.fromkeys(("fold", "unfold"), "JAX has no windows of nothing"),
}
NAMES = [name for name, dtype in TRIED if dtype == "float32" and TABLE[name].operands]


def elements(case: Case) -> int:
    """Returns how many elements all operands have."""
    return sum(int(np.prod(shape)) for shape in case.shapes)


def emptied(name: str) -> List[Case]:
    """Returns an op's cases with each size, and each axis of the first operand, set to 0."""
    made = {}
    for case in sorted(cases_for(name, "float32"), key=elements)[:CASES_MAX]:
        for size in {size for shape in case.shapes for size in shape}:
            shapes = tuple(tuple(0 if one == size else one for one in shape) for shape in case.shapes)
            made.setdefault(str((shapes, case.attributes)), Case(shapes, case.attributes))
        for axis in range(len(case.shapes[0])):
            first = (*case.shapes[0][:axis], 0, *case.shapes[0][axis + 1:])
            shapes = (first, *case.shapes[1:])
            made.setdefault(str((shapes, case.attributes)), Case(shapes, case.attributes))
    return list(made.values())


def attempt(row: Row, name: str, case: Case) -> Optional[Attempt]:
    """Returns None if the op rejects such sizes."""
    arrays = []
    for i, shape in enumerate(case.shapes):
        try:
            arrays.append(values(domain_of(row, i), shape, "float32", f"{case} {i}"))
        except (ValueError, IndexError):  # some values of operands have no empty form
            return None
    tensors = [variable(array) for array in arrays]
    try:
        result = applied(name, tensors, case.attributes)
    except kiln.InvalidArgument:
        return None
    chosen: List[int] = []
    if row.differentiable and result.dtype.is_float and result.requires_grad:
        chosen = [i for i, array in enumerate(arrays) if array.dtype == np.float32 and domain_of(row, i).gradient]
    upstream = np.ones(result.shape, np.float32)
    found = kiln.autograd.gradients(result, [tensors[i] for i in chosen], kiln.tensor(upstream)) if chosen else []
    return Attempt(str(case), result, found, Trial(arrays, case.attributes, upstream, chosen))


def expected_of(name: str, one: Attempt) -> Optional[Expected]:
    """Returns None if the reference has no value for it."""
    try:
        with np.errstate(all="ignore"):
            return one_by_one(f"{name} {one.text}", ROWS[name], [one.trial], False)[0]
    except (ValueError, TypeError, IndexError, ZeroDivisionError):
        return None


@pytest.mark.parametrize("name", NAMES)
def test_op(connection, record_property, name):
    """Cases are rejected when built, or have a value: the reference's, if it has one."""
    row = ROWS[name]
    compared: List[Compared] = []
    for case in emptied(name):
        one = attempt(row, name, case)
        if one is None:
            continue
        kiln.realize(one.result, *one.gradients)
        one.result.numpy()
        expected = expected_of(name, one)
        if expected is None:
            continue
        compared.append(Compared(one.text, one.result, expected.result, factor_of(row, one.result, row.factor)))
        compared += [Compared(f"{one.text}, gradient of operand {i}", got, gradient,
                              factor_of(row, got, row.gradient_factor))
                     for i, got, gradient in zip(one.trial.chosen, one.gradients, expected.gradients)]
    record_property("comparisons", len(compared))
    wrong = [message for one in compared if (message := difference(one))]
    assert not wrong, f"{len(wrong)} of {len(compared)} differ:\n" + "\n".join(wrong[:5])
    assert bool(compared) == (name not in NOT_COMPARED)
