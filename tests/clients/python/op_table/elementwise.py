"""Elementwise ops."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from op_table.row import ANY, POSITIVE, Domain, Row, flat_abs

_NONZERO = Domain(1.0, 4.0)
# Less than the width, the width, more, and negative amounts, which count as more.
_SHIFT = Domain(values=lambda generator, shape: generator.choice(
    [0, 1, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100, -1, -100], shape))


ROWS = {
    "neg": Row(jnp.negative),
    "reciprocal": Row(lambda x: 1.0 / x, (POSITIVE,)),
    "sqrt": Row(jnp.sqrt, (POSITIVE,)),
    "exp2": Row(jnp.exp2),
    "log2": Row(jnp.log2, (POSITIVE,)),
    "sin": Row(jnp.sin),
    "trunc": Row(jnp.trunc),
    "not": Row(jnp.invert),
    "add": Row(jnp.add, (ANY, ANY)),
    "sub": Row(jnp.subtract, (ANY, ANY)),
    "mul": Row(jnp.multiply, (ANY, ANY)),
    "div": Row(lambda a, b: a / b, (ANY, POSITIVE)),
    "idiv": Row(jnp.floor_divide, (ANY, _NONZERO)),
    "mod": Row(jnp.remainder, (ANY, _NONZERO)),
    "maximum": Row(jnp.maximum, (ANY, ANY)),
    "minimum": Row(jnp.minimum, (ANY, ANY)),
    "clamp_min": Row(lambda a, b: jnp.where((a < b) | jnp.isnan(b), b, a), (ANY, ANY)),
    "clamp_max": Row(lambda a, b: jnp.where((a > b) | jnp.isnan(b), b, a), (ANY, ANY)),
    "pow": Row(lambda a, b: jnp.power(jnp.asarray(a, jnp.float64), jnp.asarray(b, jnp.float64)),
               (POSITIVE, Domain(-2.0, 2.0))),
    "cmplt": Row(jnp.less, (ANY, ANY)),
    "cmpeq": Row(jnp.equal, (ANY, ANY)),
    "cmpne": Row(jnp.not_equal, (ANY, ANY)),
    "and": Row(jnp.bitwise_and, (ANY, ANY)),
    "or": Row(jnp.bitwise_or, (ANY, ANY)),
    "xor": Row(jnp.bitwise_xor, (ANY, ANY)),
    "shl": Row(np.left_shift, (ANY, _SHIFT), raw=True),
    "shr": Row(np.right_shift, (ANY, _SHIFT), raw=True),
    "where": Row(lambda c, a, b: jnp.where(c, a, b), (Domain(dtype="bool"), ANY, ANY)),
    "exp": Row(jnp.exp),
    "log": Row(jnp.log, (POSITIVE,)),
    "cos": Row(jnp.cos),
    "tan": Row(jnp.tan, (Domain(-1.2, 1.2),), factor=8),
    "tanh": Row(jnp.tanh),
    "erf": Row(jax.scipy.special.erf),
    "abs": Row(flat_abs),
    "sign": Row(jnp.sign),
    "square": Row(jnp.square),
    "rsqrt": Row(lambda x: 1 / jnp.sqrt(x), (POSITIVE,)),
    "floor": Row(jnp.floor),
    "ceil": Row(jnp.ceil),
    "round": Row(jnp.round),
    "floor_divide": Row(jnp.floor_divide, (ANY, _NONZERO)),
    "remainder": Row(jnp.remainder, (ANY, _NONZERO), factor=16),
    "greater": Row(jnp.greater, (ANY, ANY)),
    "greater_equal": Row(jnp.greater_equal, (ANY, ANY)),
    "less_equal": Row(jnp.less_equal, (ANY, ANY)),
    "logical_and": Row(jnp.logical_and, (ANY, ANY)),
    "logical_or": Row(jnp.logical_or, (ANY, ANY)),
    "logical_not": Row(jnp.logical_not),
    "isnan": Row(jnp.isnan),
    "isinf": Row(jnp.isinf),
    "isfinite": Row(jnp.isfinite),
    "relu": Row(jax.nn.relu),
    "leaky_relu": Row(lambda x: jnp.where(x > 0, x, 0.01 * x)),
    "sigmoid": Row(jax.nn.sigmoid),
    "silu": Row(jax.nn.silu, factor=8),
    "gelu": Row(lambda x: jax.nn.gelu(x, approximate=False), factor=8),
    "softplus": Row(jax.nn.softplus, factor=8),
    "contiguous": Row(lambda x: x),
    "detach": Row(lax.stop_gradient, differentiable=False),
}
