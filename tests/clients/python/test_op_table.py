"""Every op, every dtype it takes, every shape class, and gradients, against JAX and NumPy.

One test is one op with one dtype: all its cases are outputs of one program.
"""

from typing import Any, List, NamedTuple, Sequence

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

import kiln  # noqa: E402
from kiln._node import TABLE  # noqa: E402
from op_table.expected import Expected, Trial, elementwise, one_by_one  # noqa: E402
from op_table.row import CLASSES, FLOATS, Case, Domain, Row, epsilon, values  # noqa: E402
from op_table.shapes import BASE, VIEWS, cases_of  # noqa: E402
from op_table.table import ELSEWHERE, ROWS  # noqa: E402


def test_every_op_has_a_row():
    missing = [name for name in TABLE if name not in ROWS and name not in ELSEWHERE]
    assert not missing, f"ops without a row in op_table: {', '.join(missing)}"
    unknown = [name for name in {**ROWS, **ELSEWHERE} if name not in TABLE]
    assert not unknown, f"rows of ops that there are not: {', '.join(unknown)}"


def dtypes_of(name: str) -> List[str]:
    """The dtypes that a row is tried with."""
    row = ROWS[name]
    given = row.dtypes if row.dtypes is not None else CLASSES[TABLE[name].operand_class]
    return [dtype for dtype in given if dtype not in row.refused]


class Attempt(NamedTuple):
    """A case as kiln computes it."""

    text: str
    result: Any
    gradients: Sequence[Any]
    trial: Trial


class Compared(NamedTuple):
    """A tensor and the array that it must be, to so many epsilons."""

    text: str
    got: Any
    wanted: np.ndarray
    factor: float


def domain_of(row: Row, i: int) -> Domain:
    return row.domains[min(i, len(row.domains) - 1)]


def operands_of(row: Row, case: Case, dtype: str) -> List[np.ndarray]:
    return [values(domain_of(row, i), shape, dtype, f"{case} {i}")
            for i, shape in enumerate(case.shapes)]


def variable(array: np.ndarray) -> Any:
    made = kiln.tensor(array)
    made.requires_grad = array.dtype.name in FLOATS
    return made


def attempt(name: str, text: str, arrays: List[np.ndarray], tensors: List[Any],
            case: Case) -> Attempt:
    """Builds a case's result and gradients; computes nothing."""
    row = ROWS[name]
    spelled = f"{name}_" if name in ("and", "or", "not") else name
    result = getattr(kiln.ops, spelled)(*tensors, **case.attributes)
    chosen: List[int] = []
    if row.differentiable and result.dtype.is_float and result.requires_grad:
        chosen = [i for i, array in enumerate(arrays)
                  if array.dtype.name in FLOATS and domain_of(row, i).gradient]
    if not chosen:
        return Attempt(text, result, [], Trial(arrays, case.attributes, np.empty(0), []))
    upstream = values(Domain(), result.shape, result.dtype.name, text + "upstream")
    found = kiln.autograd.gradients(result, [tensors[i] for i in chosen], kiln.tensor(upstream))
    return Attempt(text, result, found, Trial(arrays, case.attributes, upstream, chosen))


def attempts(name: str, dtype: str) -> List[Attempt]:
    row, rule = ROWS[name], TABLE[name].shape_rule
    cases = row.cases if row.cases is not None else cases_of(rule, len(row.domains))
    made = []
    for case in cases:
        arrays = operands_of(row, case, dtype)
        made.append(attempt(name, str(case), arrays, [variable(array) for array in arrays], case))
    if row.cases is None and rule in ("same", "broadcast"):
        case = Case((BASE,) * len(row.domains))
        bases = operands_of(row, case, dtype)
        for view_name, view in VIEWS.items():
            tensors = [view(variable(base)) for base in bases]
            arrays = [np.ascontiguousarray(view(base)) for base in bases]
            made.append(attempt(name, f"{view_name} view", arrays, tensors, case))
    return made


def expected_of(name: str, made: Sequence[Attempt]) -> List[Expected]:
    row, op = ROWS[name], TABLE[name]
    floats = op.dtype_rule == "promote_float" and op.special_operand < 0
    trials = [one.trial for one in made]
    if row.cases is None and op.shape_rule in ("same", "broadcast"):
        return elementwise(row, trials, floats)
    return [one_by_one(row, trial, floats) for trial in trials]


@pytest.mark.parametrize("name, dtype", [(n, d) for n in ROWS if n in TABLE for d in dtypes_of(n)])
def test_op(connection, name, dtype):
    row = ROWS[name]
    made = attempts(name, dtype)
    kiln.realize(*[tensor for one in made for tensor in (one.result, *one.gradients)])
    compared = []
    for one, expected in zip(made, expected_of(name, made)):
        compared.append(Compared(one.text, one.result, expected.result,
                                 factor_of(row, one.result, row.factor)))
        for i, got, wanted in zip(one.trial.chosen, one.gradients, expected.gradients):
            compared.append(Compared(f"{one.text}, gradient of operand {i}", got, wanted,
                                     factor_of(row, got, row.gradient_factor)))
    wrong = [message for one in compared if (message := difference(one))]
    assert not wrong, f"{len(wrong)} of {len(compared)} cases differ:\n" + "\n".join(wrong[:5])


def factor_of(row: Row, got: Any, otherwise: float) -> float:
    return row.half_factor if got.dtype.itemsize < 4 else otherwise


def difference(one: Compared) -> str:
    """What is wrong with a tensor; empty: nothing."""
    got = one.got.numpy()
    if got.shape != one.wanted.shape:
        return f"{one.text}: shape {got.shape} instead of {one.wanted.shape}"
    if not one.got.dtype.is_float:
        same = np.array_equal(got, one.wanted.astype(got.dtype))
        return "" if same else f"{one.text}: {got.ravel()[:6]} instead of {one.wanted.ravel()[:6]}"
    eps = epsilon(one.got.dtype.name)
    value, wanted = got.astype(np.float64), one.wanted.astype(np.float64)
    with np.errstate(invalid="ignore"):
        allowed = one.factor * eps * np.maximum(np.abs(wanted), 1)
        bad = ~((np.abs(value - wanted) <= allowed) | (value == wanted)
                | (np.isnan(value) & np.isnan(wanted)))
    if not bad.any():
        return ""
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    return (f"{one.text}: {int(bad.sum())} of {bad.size} elements, first at {where}: "
            f"{float(value[where])!r} instead of {float(wanted[where])!r}")
