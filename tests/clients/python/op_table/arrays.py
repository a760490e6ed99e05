"""Accumulation, order, einsum, diagonals and linear algebra."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from op_table.reductions import _NOT_EMPTY, _ONE_AXIS, _axes, _reduce
from op_table.row import ANY, Domain, Row, cases

_ALONG = cases(
    ((1,), {"axis": 0}), ((0, 3), {"axis": 0}), ((37,), {"axis": -1}), ((3, 5), {"axis": 0}),
    ((2, 70, 3), {"axis": 1}), ((5, 67), {"axis": 1}))  # fmt: skip
_ORDERED = [*_ALONG, *cases(((9, 33), {"axis": 0, "descending": True}), ((7,),))]
_TOP = cases(
    ((7,), {"k": 3}), ((3, 50), {"k": 5}), ((20, 3), {"k": 4, "axis": 0, "largest": False}),
    ((2, 9), {"k": 9}), ((4,), {"k": 0}))  # fmt: skip


def _kept(function):
    """Keeps the dtype of integers, which wrap."""
    return lambda x, axis: function(x, axis=axis, dtype=x.dtype)


def _along(function):
    return lambda x, axis: function(x, axis=axis % x.ndim)


def _order(x, axis=-1, descending=False):
    return jnp.argsort(x, axis=axis, descending=descending, stable=True)


def _sort(x, axis=-1, descending=False):
    return jnp.take_along_axis(x, _order(x, axis, descending), axis)


def _top(function):
    def reference(x, k, axis=-1, largest=True):
        ordered = function(x, axis=axis, descending=largest)
        return lax.slice_in_dim(ordered, 0, k, axis=axis % x.ndim)

    return reference


def _vector_norm(x, axes=(), keepdims=False, ord=2):
    return jnp.linalg.vector_norm(x, axis=_axes(x, axes), keepdims=keepdims, ord=ord)


def _diag_embed(x, offset=0):
    return jnp.vectorize(lambda v: jnp.diag(v, offset), signature="(n)->(m,m)")(x)


def _dominant(generator, shape):
    """Returns well-conditioned matrices, also of integers."""
    return generator.uniform(0, 1.99, shape) + 8 * np.eye(*shape[-2:])


def _definite(generator, shape):
    half = generator.uniform(0, 0.99, shape)
    return half + np.swapaxes(half, -1, -2) + 8 * np.eye(shape[-1])


def _cholesky(x, upper=False):
    lower = jnp.tril(jnp.swapaxes(x, -1, -2) if upper else x)
    whole = lower + jnp.swapaxes(jnp.tril(lower, -1), -1, -2)
    # Only one half is read, but the gradient is that of a symmetric matrix.
    both = (x + jnp.swapaxes(x, -1, -2)) / 2
    whole = lax.stop_gradient(whole - both) + both
    factor = lax.linalg.cholesky(whole, symmetrize_input=False)
    return jnp.swapaxes(factor, -1, -2) if upper else factor


def _triangular_solve(a, b, upper=False, unit_diagonal=False):
    half = jnp.triu(a) if upper else jnp.tril(a)
    if unit_diagonal:
        eye = jnp.eye(a.shape[-1])
        half = half * (1 - eye) + eye
    return jnp.linalg.solve(half, b)


def _qr(x, part, complete=False):
    return jnp.linalg.qr(x, "complete" if complete else "reduced")["qr".index(part)]


_SORTED = Domain(values=lambda generator, shape: np.sort(generator.uniform(0, 9, shape)))
_ASKED = Domain(values=lambda generator, shape: generator.uniform(0, 9, shape))
_MATRIX = Domain(values=_dominant)
_DEFINITE = Domain(values=_definite)
_SQUARES = cases(((1, 1),), ((3, 3),), ((2, 4, 4),), ((0, 2, 2),))
_SYSTEMS = cases(
    ((3, 3), (3,)), ((4, 4), (4, 2)), ((2, 1, 3, 3), (5, 3, 2)), ((1, 1), (1, 1)))  # fmt: skip
_FAR = {"factor": 32, "gradient_factor": 64}
_SHARED = {kind: "equal ones share the gradient; test_ordering has Tensor.cummax beside PyTorch"
           for kind in ("ties", "zeros")}  # fmt: skip

ROWS = {
    "cumulative_sum": Row(_kept(jnp.cumsum), cases=_ALONG, factor=64, gradient_factor=64),
    "cumulative_prod": Row(
        _kept(jnp.cumprod), (Domain(0.8, 1.2),), cases=_ALONG, factor=64, gradient_factor=512),
    "cumulative_max": Row(_along(lax.cummax), cases=_ALONG, exempt=_SHARED),
    "cumulative_min": Row(_along(lax.cummin), cases=_ALONG, exempt=_SHARED),
    "cumulative_logsumexp": Row(
        _along(lax.cumlogsumexp), cases=_ALONG, factor=16, gradient_factor=64),
    "sort": Row(_sort, cases=_ORDERED),
    "argsort": Row(_order, cases=_ORDERED),
    "topk": Row(_top(_sort), cases=_TOP),
    "topk_indices": Row(_top(_order), cases=_TOP),
    "searchsorted": Row(
        lambda values, sorted, right=False: jnp.searchsorted(
            sorted, values, side="right" if right else "left"),
        (_ASKED, _SORTED),
        cases=cases(((), (1,)), ((7,), (33,)), ((3, 5), (9,), {"right": True}), ((0,), (4,)))),
    "einsum": Row(
        lambda *x, equation: jnp.einsum(equation, *x, precision="highest"), (ANY, ANY, ANY),
        factor=64, gradient_factor=64, cases=cases(
            ((3, 5), (5, 4), {"equation": "ij,jk->ik"}), ((4, 4), {"equation": "ii->i"}),
            ((2, 3, 17), (17, 3), {"equation": "bij,ji->b"}), ((7,), {"equation": "i->"}),
            ((2, 1, 3, 4), (5, 4, 2), {"equation": "...ij,...jk->...ik"}),
            ((2, 3), (3, 4), (4, 2), {"equation": "ij,jk,ki->"}))),
    "diagonal": Row(
        lambda x, offset=0, axis1=0, axis2=1: jnp.diagonal(x, offset, axis1, axis2),
        cases=cases(((3, 5),), ((5, 3), {"offset": -1}), ((2, 3, 17), {"axis1": 1, "axis2": 2}),
                    ((3, 3), {"offset": 5}))),
    "diag_embed": Row(
        _diag_embed, cases=cases(((3,),), ((2, 4), {"offset": 2}), ((2, 3, 1), {"offset": -1}))),
    "cross": Row(
        lambda a, b, axis=-1: jnp.cross(a, b, axis=axis), (ANY, ANY), factor=16,
        cases=cases(((3,), (3,)), ((7, 3), (7, 3)), ((3, 5), (3, 5), {"axis": 0}))),
    "roll": Row(
        lambda x, shifts, axes: jnp.roll(x, shifts, axes),
        cases=cases(((7,), {"shifts": (3,), "axes": (0,)}),
                    ((3, 5), {"shifts": (-1, 7), "axes": (0, 1)}))),
    "cholesky": Row(
        _cholesky, (_DEFINITE,), cases=[*_SQUARES, *cases(((3, 3), {"upper": True}))], **_FAR),
    "triangular_solve": Row(
        _triangular_solve, (_MATRIX, ANY), cases=[*_SYSTEMS, *cases(
            ((4, 4), (4, 2), {"upper": True}), ((3, 3), (3,), {"unit_diagonal": True}))], **_FAR),
    "solve": Row(jnp.linalg.solve, (_MATRIX, ANY), cases=_SYSTEMS, **_FAR, exempt={
        "inf": "the order of the steps decides which elements infinities meet in"}),
    "inv": Row(jnp.linalg.inv, (_MATRIX,), cases=_SQUARES, **_FAR),
    "det": Row(jnp.linalg.det, (_MATRIX,), cases=_SQUARES, **_FAR),
    "slogdet_sign": Row(lambda x: jnp.linalg.slogdet(x)[0], (_MATRIX,), cases=_SQUARES),
    "slogdet_logabs": Row(
        lambda x: jnp.linalg.slogdet(x)[1], (_MATRIX,), cases=_SQUARES, **_FAR),
    "qr": Row(
        _qr, (_MATRIX,), **_FAR,
        cases=[case for part in "qr" for case in cases(
            ((3, 3), {"part": part}), ((5, 3), {"part": part}), ((2, 4, 2), {"part": part}))]),
    "std": Row(lambda x, axes=(), keepdims=False: jnp.std(
        x, axis=_axes(x, axes), keepdims=keepdims, ddof=1),
        cases=[case for case in _NOT_EMPTY if case.shapes[0] != (1,)], **_FAR, exempt={
            "ties": "the gradient where all are equal is 0, as PyTorch's; JAX has NaN"}),
    "argmin": Row(lambda x, axes=(), keepdims=False: jnp.argmin(
        x, axis=axes[0] if axes else None, keepdims=keepdims), cases=_ONE_AXIS),
    "count_nonzero": Row(_reduce(jnp.count_nonzero)),
    "vector_norm": Row(
        _vector_norm, factor=64,
        exempt={"zeros": "the gradient where all are 0 is 0, as PyTorch's; JAX has NaN"},
        cases=[*_NOT_EMPTY, *cases(
        ((3, 5), {"axes": (1,), "ord": 1.0}), ((3, 5), {"axes": (1,), "ord": float("inf")}),
        ((3, 5), {"axes": (0,), "ord": 3.0}))]),
}
