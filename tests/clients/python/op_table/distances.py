"""Norms and angles of vectors, and losses made of them or with a variance or a rate."""

import jax.numpy as jnp
import numpy as np

from op_table.losses import reduced
from op_table.row import ANY, POSITIVE, Domain, Row, cases


def _norm(x, p, axis):
    if p == 2:
        return jnp.sqrt(jnp.square(x).sum(axis, keepdims=True))
    return jnp.linalg.vector_norm(x, ord=p, axis=axis, keepdims=True)


def _normalize(x, p=2.0, axis=1, epsilon=1e-12):
    return x / jnp.maximum(_norm(x, p, axis), epsilon)


def _cosine_similarity(a, b, axis=1, keepdims=False):
    return (_normalize(a, axis=axis) * _normalize(b, axis=axis)).sum(axis, keepdims=keepdims)


def _distance(a, b, p=2.0, axis=-1, keepdims=False, epsilon=1e-6):
    norm = _norm(a - b + epsilon, p, axis)
    return norm if keepdims else norm.squeeze(axis)


def _cosine_embedding(a, b, target, margin=0.0):
    """Adds PyTorch's epsilon to the squares."""
    squares = [jnp.square(x).sum(-1) + 1e-12 for x in (a, b)]
    cosine = (a * b).sum(-1) / jnp.sqrt(squares[0] * squares[1])
    apart = jnp.where(cosine - margin < 0, 0, cosine - margin)
    return jnp.where(target == 1, 1 - cosine, apart)


def _triplet_margin(anchor, positive, negative, margin=1.0, p=2.0, swap=False):
    far = _distance(anchor, negative, p)
    if swap:
        far = jnp.minimum(far, _distance(positive, negative, p))
    excess = _distance(anchor, positive, p) - far + margin
    return jnp.where(excess < 0, 0, excess)


def _hinge_embedding(x, target, margin=1.0):
    return jnp.where(target == 1, x, jnp.where(margin - x < 0, 0, margin - x))


def _margin_ranking(a, b, target, margin=0.0):
    excess = -target * (a - b) + margin
    return jnp.where(excess < 0, 0, excess)


def _gaussian_nll(x, target, variance, full=False):
    constant = 0.5 * np.log(2 * np.pi) if full else 0.0
    return (jnp.log(variance) + jnp.square(x - target) / variance) / 2 + constant


def _poisson_nll(x, target, log_input=True, full=False):
    loss = jnp.exp(x) - target * x if log_input else x - target * jnp.log(x + 1e-8)
    held = jnp.where(target > 1, target, 1)
    stirling = held * jnp.log(held) - held + jnp.log(2 * np.pi * held) / 2
    return loss + jnp.where(target > 1, stirling, 0) if full else loss


_SIGN = Domain(values=lambda generator, shape: generator.choice([-1, 1], shape), gradient=False)
_PAIR = ((7, 5), (7, 5))
_MEANS = [{}, {"reduction": "sum"}, {"reduction": "none"}]
_FAR = {"factor": 64, "gradient_factor": 128}

ROWS = {
    "normalize": Row(_normalize, **_FAR, cases=cases(
        ((3, 5),), ((2, 3, 17), {"axis": -1}), ((7, 1), {"p": 1.0}), ((4, 6), {"p": 3.0}))),
    "cosine_similarity": Row(_cosine_similarity, (ANY, ANY), **_FAR, cases=cases(
        ((3, 5), (3, 5)), ((2, 17, 3), (17, 1), {"axis": -2, "keepdims": True}),
        ((65, 33), (65, 33), {"axis": 0}))),
    "pairwise_distance": Row(_distance, (ANY, ANY), **_FAR, cases=cases(
        ((5,), (5,)), (*_PAIR, {"p": 1.0}), ((65, 33), (33,), {"keepdims": True}),
        (*_PAIR, {"p": 3.0, "axis": 0}))),
    "cosine_embedding_loss": Row(reduced(_cosine_embedding), (ANY, ANY, _SIGN), **_FAR,
                                 cases=cases(*[(*_PAIR, (7,), {"margin": 0.1, **how})
                                               for how in _MEANS])),
    "triplet_margin_loss": Row(reduced(_triplet_margin), (ANY, ANY, ANY), **_FAR, cases=cases(
        *[(*_PAIR, (7, 5), how) for how in _MEANS],
        (*_PAIR, (7, 5), {"swap": True, "p": 1.0, "margin": 2.0}))),
    "hinge_embedding_loss": Row(reduced(_hinge_embedding), (ANY, _SIGN), **_FAR, cases=cases(
        ((), ()), *[(*_PAIR, {"margin": 0.5, **how}) for how in _MEANS])),
    "margin_ranking_loss": Row(reduced(_margin_ranking), (ANY, ANY, _SIGN), **_FAR, cases=cases(
        *[(*_PAIR, (7, 5), {"margin": 0.3, **how}) for how in _MEANS])),
    "gaussian_nll_loss": Row(reduced(_gaussian_nll), (ANY, ANY, POSITIVE), **_FAR, cases=cases(
        *[(*_PAIR, (7, 5), how) for how in _MEANS], (*_PAIR, (7, 5), {"full": True}))),
    "poisson_nll_loss": Row(reduced(_poisson_nll), (POSITIVE, POSITIVE), **_FAR, cases=cases(
        *[(*_PAIR, how) for how in _MEANS], (*_PAIR, {"log_input": False, "full": True}))),
}  # fmt: skip
