"""Every op with ties, both zeros, NaN and infinities, compared with JAX and NumPy.

Some elements of each case's float operands are replaced, so that there are equal ones, and so that
NaN and infinities must spread exactly as far as in the reference. Gradients are compared where
everything is finite.
"""

from typing import Any, List, Sequence

import numpy as np
import pytest

import kiln
from kiln._graph.node import TABLE
from op_table.expected import Expected, Trial, elementwise, one_by_one
from op_table.neural import distinct
from op_table.row import Case, Domain, Row, values
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

KINDS = ("ties", "zeros", "nan", "inf")
# The smallest cases: the elements are unusual here, not the shapes.
CASES_MAX, ELEMENTS_MAX = 2, 120


def may_hold(domain: Domain, kind: str) -> bool:
    """Returns whether the op is made for such elements of an operand."""
    if domain.dtype is not None:
        return False
    if domain.values is not None:
        return domain.values is distinct
    return kind != "zeros" or domain.low <= 0 <= domain.high


def replaced(array: np.ndarray, kind: str, salt: str) -> np.ndarray:
    """Replaces some elements of an operand."""
    if not array.size:
        return array
    generator = np.random.default_rng([len(salt), *salt.encode()])
    if kind == "ties":
        return array.ravel()[generator.integers(0, min(array.size, 3), array.shape)]
    others = {"zeros": (0.0, -0.0), "nan": (np.nan,), "inf": (np.inf, -np.inf)}[kind]
    chosen = generator.random(array.shape) < 0.3
    chosen.flat[generator.integers(array.size)] = True
    return np.where(chosen, generator.choice(others, array.shape), array).astype(array.dtype)


def cases_of(name: str) -> Sequence[Case]:
    """Returns the smallest of an op's cases."""
    sized = [(sum(int(np.prod(shape)) for shape in case.shapes), i, case)
             for i, case in enumerate(cases_for(name, "float32"))]  # fmt: skip
    return [case for size, _, case in sorted(sized)[:CASES_MAX] if size <= ELEMENTS_MAX]


def attempts(name: str, kind: str) -> List[Attempt]:
    """Returns a case for each operand that may have such elements, and one with all of them."""
    row = ROWS[name]
    made = []
    for case in cases_of(name):
        places = [i for i in range(len(case.shapes)) if may_hold(domain_of(row, i), kind)]
        sets = [*([place] for place in places), *([places] if len(places) > 1 else [])]
        for chosen in sets:
            arrays = [values(domain_of(row, i), shape, "float32", f"{case} {i}")
                      for i, shape in enumerate(case.shapes)]
            for i in chosen:
                arrays[i] = replaced(arrays[i], kind, f"{name} {kind} {i}")
            made.append(attempt(row, name, f"{kind} of operands {chosen}, {case}", arrays, case,
                                kind in ("ties", "zeros")))
    return made


def attempt(row: Row, name: str, text: str, arrays: List[np.ndarray], case: Case,
            gradients: bool) -> Attempt:
    tensors = [variable(array) for array in arrays]
    result = applied(name, tensors, case.attributes)
    chosen = [i for i, array in enumerate(arrays)
              if gradients and row.differentiable and result.dtype.is_float
              and result.requires_grad
              and array.dtype == np.float32 and domain_of(row, i).gradient]  # fmt: skip
    upstream = np.empty(0)
    found: Sequence[Any] = []
    if chosen:
        upstream = values(Domain(), result.shape, result.dtype.name, text)
        found = kiln.autograd.gradients(result, [tensors[i] for i in chosen], kiln.tensor(upstream))
    return Attempt(text, result, found, Trial(arrays, case.attributes, upstream, chosen))


def expected_of(name: str, kind: str, made: Sequence[Attempt]) -> List[Expected]:
    row, trials = ROWS[name], [one.trial for one in made]
    if row.cases is None and TABLE[name].shape_rule in ("same", "broadcast"):
        return elementwise(name, row, trials, False)
    return one_by_one(f"{name} of {kind}", row, trials, False)


UNUSUAL = [(name, kind) for name, dtype in TRIED if dtype == "float32" for kind in KINDS
           if kind not in ROWS[name].exempt and any(
               may_hold(domain, kind) for domain in ROWS[name].domains)]  # fmt: skip


def test_reasons_are_of_kinds():
    assert {kind for row in ROWS.values() for kind in row.exempt} <= {*KINDS}
    assert len({name for name, _ in UNUSUAL}) > len(ROWS) / 2


@pytest.mark.parametrize("name, kind", UNUSUAL)
def test_op(connection, name, kind):
    row = ROWS[name]
    made = attempts(name, kind)
    kiln.realize(*[tensor for one in made for tensor in (one.result, *one.gradients)])
    compared = []
    with np.errstate(all="ignore"):
        wanted = expected_of(name, kind, made)
    for one, expected in zip(made, wanted):
        compared.append(Compared(one.text, one.result, expected.result,
                                 factor_of(row, one.result, row.factor)))
        for i, got, gradient in zip(one.trial.chosen, one.gradients, expected.gradients):
            compared.append(Compared(f"{one.text}, gradient of operand {i}", got, gradient,
                                     factor_of(row, got, row.gradient_factor)))
    wrong = [message for one in compared if (message := difference(one))]
    assert not wrong, f"{len(wrong)} of {len(compared)} cases differ:\n" + "\n".join(wrong[:5])
