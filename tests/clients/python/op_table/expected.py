"""The results of a row's reference for its cases.

JAX's compilation is the largest cost here. So floats are float64 and integers have 64 bits whatever
the tested dtype, all cases of an op are one program, which is not optimized, and the cases of an
elementwise op are one long vector in it.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from op_table.row import INTEGERS, Row

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)


class Expected(NamedTuple):
    """The result of a case and the gradients of its chosen operands, weighted by the upstream."""

    result: np.ndarray
    gradients: List[np.ndarray]


class Trial(NamedTuple):
    """The operands of a case."""

    arrays: Sequence[np.ndarray]
    attributes: dict
    upstream: np.ndarray  # of the result's shape; empty: no gradients are wanted
    chosen: Sequence[int]  # the operands whose gradients are wanted


def widened(array: np.ndarray, floats: bool) -> np.ndarray:
    """Returns the array as float64, int64, uint64 or bool."""
    kind = "f" if floats or array.dtype.name not in (*INTEGERS, "bool") else array.dtype.kind
    return array.astype({"f": np.float64, "i": np.int64, "u": np.uint64, "b": np.bool_}[kind])


def one_by_one(name: str, row: Row, trials: Sequence[Trial], floats: bool) -> List[Expected]:
    """Returns the references of an op's cases."""
    if row.raw:
        return [Expected(np.asarray(row.reference(*trial.arrays, **trial.attributes)), [])
                for trial in trials]
    operands = [[widened(array, floats) for array in trial.arrays] for trial in trials]
    upstreams = [trial.upstream.astype(np.float64) for trial in trials]
    forms = [(trial.attributes, tuple(trial.chosen)) for trial in trials]
    key = (name, *[chosen for _, chosen in forms])
    if key not in _programs:
        _programs[key] = _program(row, forms)
    return [Expected(np.asarray(result), [np.asarray(one) for one in gradients])
            for result, gradients in _programs[key](operands, upstreams)]


_programs: Dict[Tuple[Any, ...], Callable] = {}


def _program(row: Row, forms: Sequence[Tuple[dict, Tuple[int, ...]]]) -> Callable:
    """Returns one JAX program for all cases of an op."""

    def program(operands, upstreams):
        return [_differentiated(row, attributes, chosen, wide, upstream)
                for (attributes, chosen), wide, upstream in zip(forms, operands, upstreams)]

    return jax.jit(program)


def _differentiated(row: Row, attributes: dict, chosen: Tuple[int, ...], wide: List, upstream):
    def function(*some):
        full = list(wide)
        for i, value in zip(chosen, some):
            full[i] = value
        return jnp.asarray(row.reference(*full, **attributes))

    if not chosen:
        return function(), []
    result, pull = jax.vjp(function, *[wide[i] for i in chosen])
    return result, pull(upstream.reshape(result.shape))


def elementwise(name: str, row: Row, trials: Sequence[Trial], floats: bool) -> List[Expected]:
    """Computes the references of all cases of an elementwise op without attributes at once."""
    shapes = [np.broadcast_shapes(*[array.shape for array in trial.arrays]) for trial in trials]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    joined = [np.concatenate([np.broadcast_to(trial.arrays[i], shape).ravel()
                              for trial, shape in zip(trials, shapes)])
              for i in range(len(trials[0].arrays))]  # fmt: skip
    upstream = joined[0][:0]
    if trials[0].chosen:
        upstream = np.concatenate([trial.upstream.ravel() for trial in trials])
    whole = one_by_one(name, row, [Trial(joined, {}, upstream, trials[0].chosen)], floats)[0]
    expected = []
    for trial, shape, end in zip(trials, shapes, ends):
        part = slice(end - int(np.prod(shape)), end)
        gradients = [_summed_to(whole.gradients[k][part].reshape(shape), trial.arrays[i].shape)
                     for k, i in enumerate(trial.chosen)]
        expected.append(Expected(whole.result[part].reshape(shape), gradients))
    return expected


def _summed_to(array: np.ndarray, shape) -> np.ndarray:
    """Sums over the dimensions that broadcasting had repeated."""
    extra = array.ndim - len(shape)
    array = array.sum(tuple(range(extra)))
    axes = tuple(i for i, size in enumerate(shape) if size == 1 and array.shape[i] != 1)
    return array.sum(axes, keepdims=True) if axes else array
