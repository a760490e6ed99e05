"""What the reference of a row gives for its cases.

JAX compiles each operation once for each shape, which costs more than all else here. So floats
are float64 and integers have 64 bits whatever the dtype that is tried, and the cases of an
elementwise op are computed as one long vector.
"""

from typing import Callable, List, NamedTuple, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from op_table.row import FLOATS, Row


class Expected(NamedTuple):
    """The result of a case and the gradients of its chosen operands, weighted by the upstream."""

    result: np.ndarray
    gradients: List[np.ndarray]


class Trial(NamedTuple):
    """A case's operands."""

    arrays: Sequence[np.ndarray]
    attributes: dict
    upstream: np.ndarray  # of the result's shape; empty: no gradients are wanted
    chosen: Sequence[int]  # the operands whose gradients are wanted


def widened(array: np.ndarray, floats: bool) -> np.ndarray:
    """The array as float64, int64, uint64 or bool."""
    if floats or array.dtype.name in FLOATS:
        return array.astype(np.float64)
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    return array.astype(np.uint64) if array.dtype.kind == "u" else array


def one_by_one(row: Row, trial: Trial, floats: bool) -> Expected:
    """The reference of one case."""
    if row.raw:
        return Expected(np.asarray(row.reference(*trial.arrays, **trial.attributes)), [])
    wide = [jnp.asarray(widened(array, floats)) for array in trial.arrays]
    function = _of_chosen(row, wide, trial)
    if not trial.chosen:
        return Expected(np.asarray(function()), [])
    result, pull = jax.vjp(function, *[wide[i] for i in trial.chosen])
    upstream = jnp.asarray(trial.upstream.astype(np.float64)).reshape(result.shape)
    return Expected(np.asarray(result), [np.asarray(one) for one in pull(upstream)])


def _of_chosen(row: Row, wide: List, trial: Trial) -> Callable:
    def function(*some):
        full = list(wide)
        for i, value in zip(trial.chosen, some):
            full[i] = value
        return row.reference(*full, **trial.attributes)

    return function


def elementwise(row: Row, trials: Sequence[Trial], floats: bool) -> List[Expected]:
    """The references of all cases of an elementwise op without attributes, at once."""
    shapes = [np.broadcast_shapes(*[array.shape for array in trial.arrays]) for trial in trials]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    joined = [np.concatenate([np.broadcast_to(trial.arrays[i], shape).ravel()
                              for trial, shape in zip(trials, shapes)])
              for i in range(len(trials[0].arrays))]  # fmt: skip
    upstream = joined[0][:0]
    if trials[0].chosen:
        upstream = np.concatenate([trial.upstream.ravel() for trial in trials])
    whole = one_by_one(row, Trial(joined, {}, upstream, trials[0].chosen), floats)
    expected = []
    for trial, shape, end in zip(trials, shapes, ends):
        part = slice(end - int(np.prod(shape)), end)
        gradients = [_summed_to(whole.gradients[k][part].reshape(shape), trial.arrays[i].shape)
                     for k, i in enumerate(trial.chosen)]
        expected.append(Expected(whole.result[part].reshape(shape), gradients))
    return expected


def _summed_to(array: np.ndarray, shape) -> np.ndarray:
    """What broadcasting had repeated, added up."""
    extra = array.ndim - len(shape)
    array = array.sum(tuple(range(extra)))
    axes = tuple(i for i, size in enumerate(shape) if size == 1 and array.shape[i] != 1)
    return array.sum(axes, keepdims=True) if axes else array
