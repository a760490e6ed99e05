"""The form of a row of the numerics table, and the values that it is tested on."""

import zlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import jax.numpy as jnp
import ml_dtypes
import numpy as np

from kiln._basics import dtypes
from kiln._basics.dtype_table import ML_DTYPES

Shape = Tuple[int, ...]

FLOATS = tuple(dtype.name for dtype in dtypes.members("float"))
FLOAT8 = tuple(dtype.name for dtype in dtypes.FLOAT8)
INTEGERS = tuple(dtype.name for dtype in dtypes.members("integer"))
NUMBERS = (*INTEGERS, *FLOATS)
ALL = ("bool", *NUMBERS, *FLOAT8)
NUMPY = {dtype.name: np.dtype(getattr(ml_dtypes, name)) for name, dtype in ML_DTYPES.items()}


def numpy_dtype(name: str) -> np.dtype:
    """Returns the NumPy dtype for a dtype's name."""
    return NUMPY[name] if name in NUMPY else np.dtype(name)


def epsilon(name: str) -> float:
    """Returns the distance from 1 to the next number."""
    return float(ml_dtypes.finfo(numpy_dtype(name)).eps)


class Domain(NamedTuple):
    """Values of an operand: spread over [low, high); integers for integer dtypes."""

    low: float = -3.0
    high: float = 3.0
    dtype: Optional[str] = None  # of an operand that has its own dtype
    values: Optional[Callable[[np.random.Generator, Shape], np.ndarray]] = None
    gradient: bool = True


ANY = Domain()
POSITIVE = Domain(0.25, 4.0)
UNIT = Domain(-0.95, 0.95)


class Case(NamedTuple):
    """One application: the operands' shapes and the op's attributes."""

    shapes: Sequence[Shape]
    attributes: Dict[str, Any] = {}  # noqa: RUF012


class Row(NamedTuple):
    """The reference of an op and its cases.

    `cases`: for all dtypes, or for a given dtype; None: by the op's shape rule. `reference` takes
    the operands as arrays (floats as float64, integers with 64 bits) and the attributes by name. It
    is written in jax.numpy if the op has a gradient. `factor`: the allowed error in epsilons of the
    dtype, relative to the result's size or to 1, whichever is larger. `refused`: dtypes of the op's
    class that it does not take, with the reason; all others are tested. `exempt`: kinds of unusual
    elements (ties, zeros, nan, inf) that it is not tested on, with the reason.
    """

    reference: Callable[..., Any]
    domains: Sequence[Domain] = (ANY,)
    cases: Union[Sequence[Case], Callable[[str], Sequence[Case]], None] = None
    factor: float = 4.0
    gradient_factor: float = 16.0
    half_factor: float = 8.0  # both factors for 16-bit floats: sums of them are summed as float32
    differentiable: bool = True
    refused: Dict[str, str] = {}  # noqa: RUF012
    raw: bool = False  # the reference takes arrays of the tested dtypes, and is NumPy's
    exempt: Dict[str, str] = {}  # noqa: RUF012


def flat_abs(x: Any) -> Any:
    """Returns the absolute value, with gradient 0 at 0, as in PyTorch."""
    return jnp.where(x == 0, jnp.zeros((), x.dtype), jnp.abs(x))


def values(domain: Domain, shape: Shape, dtype: str, salt: str) -> np.ndarray:
    """Returns the values of an operand, the same at each run."""
    generator = np.random.default_rng(zlib.crc32(salt.encode()))
    name = domain.dtype or dtype
    if domain.values is not None:
        return np.asarray(domain.values(generator, shape)).astype(numpy_dtype(name))
    if name == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if name in INTEGERS:
        low, high = int(np.floor(domain.low * 3)), int(np.ceil(domain.high * 3)) + 1
        if name.startswith("u"):
            low = max(low, 1 if domain.low > 0 else 0)
        elif domain.low > 0:
            low = max(low, 1)
        return generator.integers(low, high, shape).astype(numpy_dtype(name))
    spread = generator.uniform(domain.low, domain.high, shape)
    return np.asarray(spread).astype(numpy_dtype(name))


def cases(*given: Any) -> List[Case]:
    """Cases from tuples of shapes with an optional dictionary of attributes at the end."""
    made = []
    for one in given:
        attributes = one[-1] if isinstance(one[-1], dict) else {}
        shapes = one[:-1] if isinstance(one[-1], dict) else one
        made.append(Case(tuple(shapes), attributes))
    return made
