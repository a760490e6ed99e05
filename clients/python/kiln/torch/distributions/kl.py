"""The Kullback-Leibler divergence of two distributions."""

import math
from typing import Any, Callable, Dict, Tuple

from kiln.torch import linalg
from kiln.torch.distributions.continuous import (
    Beta,
    Dirichlet,
    Exponential,
    Gamma,
    Independent,
    Laplace,
    LogNormal,
    MultivariateNormal,
    Normal,
    Uniform,
)
from kiln.torch.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    OneHotCategorical,
    Poisson,
)
from kiln.torch.nn import functional as F

_Rule = Callable[[Any, Any], Any]
_rules: Dict[Tuple[Any, Any], _Rule] = {}


def register_kl(type_p: Any, type_q: Any) -> Callable[[_Rule], _Rule]:
    """Returns a decorator of the function that computes the divergence of two kinds."""

    def registered(function: _Rule) -> _Rule:
        _rules[type_p, type_q] = function
        return function

    return registered


def kl_divergence(p: Any, q: Any) -> Any:
    """Returns the expected log_prob of p minus that of q, for values of p.

    Raises NotImplementedError for kinds that have no rule.
    """
    found = [(one, other) for one, other in _rules if isinstance(p, one) and isinstance(q, other)]
    if not found:
        raise NotImplementedError(
            f"no divergence of {type(p).__name__} from {type(q).__name__}; register_kl() adds one")
    # The rule of the classes that are nearest to those of p and q.
    nearest = min(found, key=lambda pair: (
        type(p).__mro__.index(pair[0]), type(q).__mro__.index(pair[1])))
    return _rules[nearest](p, q)


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(LogNormal, LogNormal)
def _log_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.where((q.low <= p.low) & (q.high >= p.high), math.inf)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    apart = ((p.high + p.low - 2 * q.loc) / 2) ** 2
    return (math.sqrt(2 * math.pi) * q.scale / width).log() + 0.5 * (
        width ** 2 / 12 + apart) / q.scale ** 2


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    return (q.concentration * (p.rate / q.rate).log() + q.concentration.lgamma()
            - p.concentration.lgamma()
            + (p.concentration - q.concentration) * p.concentration.digamma()
            + (q.rate - p.rate) * (p.concentration / p.rate))


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    return _gamma(Gamma(p.rate * 0 + 1, p.rate, False), q)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Any:
    return _gamma(p, Gamma(q.rate * 0 + 1, q.rate, False))


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    one, other = p.concentration, q.concentration
    total = one.sum(-1)
    return (total.lgamma() - other.sum(-1).lgamma() - (one.lgamma() - other.lgamma()).sum(-1)
            + ((one - other) * (one.digamma() - total.digamma().unsqueeze(-1))).sum(-1))


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _dirichlet(p._dirichlet(), q._dirichlet())


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    size = p.event_shape[0]
    batch = tuple((p.loc + q.loc).shape)[:-1]

    def scaled(columns: Any) -> Any:
        shape = (*batch, *tuple(columns.shape)[-2:])
        return linalg.solve_triangular(
            q.scale_tril.expand(*batch, size, size), columns.expand(*shape), upper=False)

    trace = (scaled(p.scale_tril) ** 2).sum((-2, -1))
    apart = (scaled((q.loc - p.loc).unsqueeze(-1)) ** 2).sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + apart - size)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("the divergence of events of other numbers of dimensions")
    return p._summed(kl_divergence(p.base_dist, q.base_dist))


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    probs = p.probs
    one = probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    one = one.where(q.probs != 0, math.inf).where(probs != 0, 0.0)
    zero = (1 - probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    zero = zero.where(q.probs != 1, math.inf).where(probs != 1, 0.0)
    return one + zero


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    each = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p()
                            - (-q.probs).log1p())
    return each.where(p.total_count <= q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    each = p.probs * (p.logits - q.logits)
    each = each.where(q.probs != 0, math.inf)
    return each.where(p.probs != 0, 0.0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


__all__ = ["kl_divergence", "register_kl"]
