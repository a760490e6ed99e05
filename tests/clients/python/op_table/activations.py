"""Activations, with default attributes."""

import jax
import jax.numpy as jnp

from op_table.row import ANY, Domain, Row, cases

_ACROSS = Domain(-5.0, 8.0)


def _or_nan(x, value):
    """Returns the value where x is a number, else NaN."""
    return jnp.where(jnp.isnan(x), x, value)


def _hardtanh(x):
    """The gradient at both bounds is 0."""
    low = 0 if jnp.issubdtype(x.dtype, jnp.unsignedinteger) else -1
    return _or_nan(x, jnp.where(x > low, jnp.where(x < 1, x, 1), low).astype(x.dtype))


def _relu6(x):
    return _or_nan(x, jnp.where(x > 0, jnp.where(x < 6, x, 6), 0).astype(x.dtype))


def _mish(x):
    return x * jnp.tanh(jax.nn.softplus(x))


def _glu(x, axis=-1):
    value, gate = jnp.split(x, 2, axis)
    return value * jax.nn.sigmoid(gate)


def _prelu(x, weight):
    shape = (1, -1) + (1,) * (x.ndim - 2) if weight.size > 1 else (1,) * x.ndim
    return jnp.where(x > 0, x, weight.reshape(shape) * x)


ROWS = {
    "relu6": Row(_relu6, (_ACROSS,)),
    "hardtanh": Row(_hardtanh),
    "elu": Row(jax.nn.elu, factor=8),
    "celu": Row(jax.nn.celu, factor=8),
    "selu": Row(jax.nn.selu, factor=8),
    "logsigmoid": Row(jax.nn.log_sigmoid, factor=8),
    "quick_gelu": Row(lambda x: x * jax.nn.sigmoid(1.702 * x), factor=8),
    "squareplus": Row(lambda x: jax.nn.squareplus(x, 4.0), factor=8),
    "mish": Row(_mish, factor=8),
    "tanhshrink": Row(lambda x: x - jnp.tanh(x)),
    "softsign": Row(lambda x: x / (1 + jnp.abs(x))),
    "hardsigmoid": Row(lambda x: _relu6(x + 3) / 6, (_ACROSS,)),
    "hardswish": Row(lambda x: x * _relu6(x + 3) / 6, (_ACROSS,), factor=8),
    "softshrink": Row(lambda x: _or_nan(
        x, jnp.where(x > 0.5, x - 0.5, jnp.where(x < -0.5, x + 0.5, 0.0)))),
    "hardshrink": Row(lambda x: _or_nan(x, jnp.where(jnp.abs(x) > 0.5, x, 0.0))),
    "threshold": Row(lambda x: _or_nan(x, jnp.where(x > 0, x, 0).astype(x.dtype))),
    "glu": Row(_glu, factor=8, cases=cases(
        ((6,),), ((3, 4),), ((3, 8, 5), {"axis": 1}), ((65, 66),), ((2, 0, 4),))),
    "prelu": Row(_prelu, (ANY, ANY), gradient_factor=128, cases=cases(
        ((7,), (1,)), ((3, 5), (5,)), ((2, 3, 17), (3,)), ((65, 33), (33,)))),
}
