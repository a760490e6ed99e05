"""Elementwise functions beyond plain arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from op_table.row import ANY, INTEGERS, POSITIVE, UNIT, Domain, Row

_NONZERO = Domain(1.0, 4.0)
_ABOVE_ONE = Domain(1.1, 4.0)
_NEAR = Domain(-0.9, 3.0)


def _log1p(x):
    """JAX's function is off by up to 64 epsilons in float64."""
    u = 1.0 + x
    return jnp.log(u) - jnp.where((u > 0) & (u < jnp.inf), ((u - 1.0) - x) / u, 0.0)


def _copysign(a, b):
    return jnp.abs(a) * jnp.where(jnp.signbit(b), -1, 1)


def _with_derivative(y, x, derivative):
    return y + lax.stop_gradient(derivative) * (x - lax.stop_gradient(x))


def _digamma(x):
    """Returns SciPy's value at 0, where JAX has NaN."""
    return jnp.where(x == 0, -jnp.inf, jax.scipy.special.digamma(x))


ROWS = {
    "expm1": Row(jnp.expm1),
    "log1p": Row(_log1p, (_NEAR,)),
    "log10": Row(jnp.log10, (POSITIVE,)),
    "sinh": Row(jnp.sinh),
    "cosh": Row(jnp.cosh),
    "asinh": Row(jnp.arcsinh),
    "acosh": Row(jnp.arccosh, (_ABOVE_ONE,)),
    "atanh": Row(lambda x: 0.5 * _log1p(2 * x / (1.0 - x)), (UNIT,), factor=8, gradient_factor=64),
    "asin": Row(jnp.arcsin, (UNIT,), gradient_factor=64),
    "acos": Row(jnp.arccos, (UNIT,), gradient_factor=64),
    "atan": Row(jnp.arctan),
    "logaddexp": Row(jnp.logaddexp, (ANY, ANY)),
    "logaddexp2": Row(jnp.logaddexp2, (ANY, ANY)),
    "atan2": Row(jnp.arctan2, (ANY, POSITIVE)),
    "hypot": Row(jnp.hypot, (ANY, POSITIVE)),
    "erfc": Row(jax.scipy.special.erfc),
    "erfinv": Row(jax.scipy.special.erfinv, (UNIT,), factor=16, gradient_factor=64),
    "lgamma": Row(jax.scipy.special.gammaln, (POSITIVE,), factor=32, gradient_factor=64),
    "digamma": Row(_digamma, (POSITIVE,), factor=16, gradient_factor=64),
    "cbrt": Row(jnp.cbrt, (POSITIVE,)),
    "signbit": Row(lambda x: x < 0),
    "copysign": Row(_copysign, (POSITIVE, ANY)),
    "nextafter": Row(lambda a, b: np.nextafter(a, b), (ANY, ANY), raw=True, differentiable=False,
                     refused=dict.fromkeys(("bool", *INTEGERS), "it must be float")),
    "fmod": Row(jnp.fmod, (ANY, _NONZERO), factor=16),
    "isclose": Row(jnp.isclose, (ANY, ANY)),
    "nan_to_num": Row(lambda x: x, exempt={
        kind: "the reference is of numbers; test_functions has others" for kind in ("nan", "inf")}),
    "logical_xor": Row(jnp.logical_xor, (ANY, ANY)),
    "with_derivative": Row(_with_derivative, (ANY, ANY, ANY), exempt={
        kind: "the reference subtracts x from itself" for kind in ("nan", "inf")}),
}
