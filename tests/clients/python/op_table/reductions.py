"""Reductions, and functions made of them."""

import jax
import jax.numpy as jnp

from op_table.row import Domain, Row, cases


def _axes(x, axes):
    return tuple(axes) if axes else tuple(range(x.ndim))


def _reduce(function):
    def reference(x, axes=(), keepdims=False, **more):
        return function(x, axis=_axes(x, axes), keepdims=keepdims, **more)

    return reference


def _of_ints(function):
    """Keeps the dtype of sums and products of integers, which wrap."""

    def reference(x, axes=(), keepdims=False):
        more = {} if jnp.issubdtype(x.dtype, jnp.floating) else {"dtype": x.dtype}
        return function(x, axis=_axes(x, axes), keepdims=keepdims, **more)

    return reference


def _argmax(x, axes=(), keepdims=False):
    return jnp.argmax(x, axis=axes[0] if axes else None, keepdims=keepdims)


_NOT_EMPTY = cases(
    ((1,), {"axes": (0,)}), ((7,), {}), ((3, 5), {"axes": (0,)}), ((3, 5), {"axes": (-1,)}),
    ((2, 3, 17), {"axes": (0, 2)}), ((2, 3, 17), {"axes": (1,), "keepdims": True}),
    ((129, 67), {"axes": (0,)}), ((129, 67), {"axes": (1,)}))  # fmt: skip
_ONE_AXIS = [case for case in _NOT_EMPTY if len(case.attributes.get("axes", ())) < 2]

ROWS = {
    "sum": Row(_of_ints(jnp.sum), factor=256),
    "prod": Row(_of_ints(jnp.prod), (Domain(0.8, 1.2),), factor=256, gradient_factor=512),
    "max": Row(_reduce(jnp.max), cases=_NOT_EMPTY),
    "min": Row(_reduce(jnp.min), cases=_NOT_EMPTY),
    "mean": Row(_reduce(jnp.mean), cases=_NOT_EMPTY, factor=16),
    "var": Row(lambda x, axes=(), keepdims=False: jnp.var(
        x, axis=_axes(x, axes), keepdims=keepdims, ddof=1),
        cases=[case for case in _NOT_EMPTY if case.shapes[0] != (1,)], factor=32),
    "any": Row(_reduce(jnp.any)),
    "all": Row(_reduce(jnp.all)),
    "argmax": Row(_argmax, cases=_ONE_AXIS),
    "logsumexp": Row(lambda x, axes=(), keepdims=False: jax.scipy.special.logsumexp(
        x, axis=_axes(x, axes), keepdims=keepdims), cases=_NOT_EMPTY, factor=16),
    "softmax": Row(lambda x, axis=-1: jax.nn.softmax(x, axis), cases=cases(
        ((1,),), ((7,),), ((3, 5), {"axis": 0}), ((129, 67),), ((2, 3, 17), {"axis": 1})),
        factor=16),
    "log_softmax": Row(lambda x, axis=-1: jax.nn.log_softmax(x, axis), cases=cases(
        ((1,),), ((7,),), ((3, 5), {"axis": 0}), ((129, 67),), ((2, 3, 17), {"axis": 1})),
        factor=16),
}
