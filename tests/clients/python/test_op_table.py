"""Every op, every dtype it takes, every shape class, and gradients, compared with JAX and NumPy.

A test is one op with one dtype: all its cases are outputs of one program.
"""

from typing import Any, List, NamedTuple, Sequence

import numpy as np
import pytest

import kiln
from kiln._basics.dtypes import BY_NAME
from kiln._graph.node import TABLE, make
from kiln._rules.dtypes import infer_dtype
from kiln.tensor import wrap
from op_table.expected import Expected, Trial, elementwise, one_by_one
from op_table.row import ALL, FLOATS, INTEGERS, NUMBERS, Case, Domain, Row, epsilon, values
from op_table.shapes import BASE, SAME, VIEWS, cases_of
from op_table.table import ELSEWHERE, ROWS

ONE_SESSION = True


def cases_for(name: str, dtype: str) -> Sequence[Case]:
    row = ROWS[name]
    if row.cases is None:
        return cases_of(TABLE[name].shape_rule, len(row.domains))
    return row.cases(dtype) if callable(row.cases) else row.cases


def accepts(name: str, dtype: str) -> bool:
    """Returns whether the op's row in kiln's table has the dtype."""
    row, op = ROWS[name], TABLE[name]
    operands = [BY_NAME[domain_of(row, i).dtype or dtype]
                for i in range(len(cases_for(name, dtype)[0].shapes))]
    try:
        infer_dtype(op, operands, BY_NAME[dtype] if op.dtype_rule == "attribute" else None)
    except kiln.InvalidArgument:
        return False
    return True


def domain_of(row: Row, i: int) -> Domain:
    return row.domains[min(i, len(row.domains) - 1)]


TRIED = [(name, dtype) for name in ROWS if name in TABLE for dtype in ALL
         if dtype not in ROWS[name].refused and accepts(name, dtype)]  # fmt: skip
REFUSED = [(name, dtype) for name in ROWS for dtype in ROWS[name].refused]


def test_every_op_has_a_row_or_a_reason():
    missing = [name for name in TABLE if name not in ROWS and name not in ELSEWHERE]
    assert not missing, f"ops without a row in op_table: {', '.join(missing)}"
    both = sorted(ROWS.keys() & ELSEWHERE.keys())
    assert not both, f"ops with a row and a reason to have none: {', '.join(both)}"
    unknown = [name for name in {**ROWS, **ELSEWHERE} if name not in TABLE]
    assert not unknown, f"rows of ops that there are not: {', '.join(unknown)}"
    named = [elsewhere.test for elsewhere in ELSEWHERE.values() if elsewhere.test not in globals()]
    assert not named, f"tests that there are not: {', '.join(named)}"


CLASSES = {"any": ("bool", *NUMBERS), "numeric": NUMBERS, "float": FLOATS, "integer": INTEGERS,
           "integer_or_bool": ("bool", *INTEGERS), "bool": ("bool",),
           "uint32": ("uint32",)}  # fmt: skip
STORING = ("where", "maximum", "minimum", "max", "min", "cmplt", "cmpeq", "cmpne", "detach",
           "contiguous", "cast", "gather", "scatter", "concat", "sort")  # fmt: skip


def test_every_dtype_that_is_claimed_is_tried():
    """An op takes all dtypes of its class, and float8 dtypes if it stores, chooses or compares."""
    claimed = [(name, dtype) for name in STORING for dtype in ALL]
    claimed += [(name, dtype) for name in ROWS for dtype in CLASSES[TABLE[name].operand_class]]
    known = {*TRIED, *REFUSED}
    missing = [pair for pair in claimed if pair not in known]
    assert not missing, f"claimed, but not tried: {missing}"


@pytest.mark.parametrize("name, dtype", REFUSED)
def test_what_has_a_reason_is_refused(connection, name, dtype):
    with pytest.raises(kiln.InvalidArgument):
        attempts(name, dtype)[0].result.numpy()


@pytest.mark.parametrize("dtype", ALL)
def test_input(connection, dtype):
    for shape in SAME:
        array = values(Domain(), shape, dtype, "input")
        np.testing.assert_array_equal(kiln.tensor(array).realize().numpy(), array)


class Attempt(NamedTuple):
    """A case as kiln computes it."""

    text: str
    result: Any
    gradients: Sequence[Any]
    trial: Trial


class Compared(NamedTuple):
    """A tensor and the expected array, with the tolerance in epsilons."""

    text: str
    got: Any
    wanted: np.ndarray
    factor: float


def operands_of(row: Row, case: Case, dtype: str) -> List[np.ndarray]:
    return [values(domain_of(row, i), shape, dtype, f"{case} {i}")
            for i, shape in enumerate(case.shapes)]


def variable(array: np.ndarray) -> Any:
    made = kiln.tensor(array)
    made.requires_grad = array.dtype.name in FLOATS
    return made


def applied(name: str, tensors: List[Any], attributes: dict) -> Any:
    """Applies the op to tensors."""
    if name == "const":  # it has no function of its own
        given = dict(attributes)
        dtype = BY_NAME[given.pop("dtype")]
        return wrap(make(name, (), tuple(given.items()), dtype))
    spelled = f"{name}_" if name in ("and", "or", "not") else name
    return getattr(kiln.ops, spelled)(*tensors, **attributes)


def attempt(name: str, text: str, arrays: List[np.ndarray], tensors: List[Any],
            case: Case) -> Attempt:
    """Builds a case's result and gradients; computes nothing."""
    row = ROWS[name]
    result = applied(name, tensors, case.attributes)
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
    made = []
    for case in cases_for(name, dtype):
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
        return elementwise(name, row, trials, floats)
    return one_by_one(name, row, trials, floats)


@pytest.mark.parametrize("name, dtype", TRIED)
def test_op(connection, record_property, name, dtype):
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
    record_property("comparisons", len(compared))
    wrong = [message for one in compared if (message := difference(one))]
    assert not wrong, f"{len(wrong)} of {len(compared)} cases differ:\n" + "\n".join(wrong[:5])


def factor_of(row: Row, got: Any, otherwise: float) -> float:
    return row.half_factor if got.dtype.itemsize < 4 else otherwise


def difference(one: Compared) -> str:
    """Returns what is wrong with a tensor; "" if nothing is."""
    got = one.got.numpy()
    if got.shape != one.wanted.shape:
        return f"{one.text}: shape {got.shape} instead of {one.wanted.shape}"
    if not one.got.dtype.is_float:
        same = np.array_equal(got, one.wanted.astype(got.dtype))
        return "" if same else f"{one.text}: {got.ravel()[:6]} instead of {one.wanted.ravel()[:6]}"
    eps = epsilon(one.got.dtype.name)
    value, wanted = got.astype(np.float64), one.wanted.astype(np.float64)
    with np.errstate(invalid="ignore"):
        # The tolerance at an infinity is 0.
        size = np.where(np.isinf(wanted), 0, np.abs(wanted))
        allowed = one.factor * eps * np.maximum(size, 1)
        bad = ~((np.abs(value - wanted) <= allowed) | (value == wanted)
                | (np.isnan(value) & np.isnan(wanted)))
    if not bad.any():
        return ""
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    return (f"{one.text}: {int(bad.sum())} of {bad.size} elements, first at {where}: "
            f"{float(value[where])!r} instead of {float(wanted[where])!r}")
