"""Losses: mean, sum and elementwise."""

import jax.numpy as jnp

from op_table.row import ANY, Domain, Row, cases, flat_abs

_CHANCE = Domain(0.05, 0.95)
_REDUCTIONS = cases(*[((7, 5), (7, 5), {"reduction": how}) for how in ("mean", "sum", "none")],
                    ((), ()), ((65, 31), (65, 31)))


def reduced(function):
    """Returns the loss of an elementwise function with the attribute `reduction`."""

    def reference(*operands, reduction="mean", **attributes):
        loss = function(*operands, **attributes)
        return {"mean": jnp.mean, "sum": jnp.sum, "none": lambda y: y}[reduction](loss)

    return reference


def _smooth_l1(x, target):
    gap = jnp.abs(x - target)
    return jnp.where(gap < 1, gap**2 / 2, gap - 0.5)


def _binary_cross_entropy(x, target):
    return -(target * jnp.log(x) + (1 - target) * jnp.log(1 - x))


_SUMS = {"factor": 256, "gradient_factor": 64, "cases": _REDUCTIONS}

ROWS = {
    "l1_loss": Row(reduced(lambda x, y: flat_abs(x - y)), (ANY, ANY), **_SUMS),
    "smooth_l1_loss": Row(reduced(_smooth_l1), (ANY, ANY), **_SUMS),
    "huber_loss": Row(reduced(_smooth_l1), (ANY, ANY), **_SUMS),
    "binary_cross_entropy": Row(reduced(_binary_cross_entropy), (_CHANCE, _CHANCE), **_SUMS),
    "kl_div": Row(reduced(lambda x, y: y * jnp.log(y) - y * x), (ANY, _CHANCE), **_SUMS),
    "soft_margin_loss": Row(reduced(lambda x, y: jnp.log1p(jnp.exp(-y * x))), (ANY, ANY), **_SUMS),
}
