"""torch.distributions: probabilities, samples and entropies."""

from kiln.torch.distributions import constraints, kl, transforms
from kiln.torch.distributions.continuous import (
    Beta,
    Chi2,
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
from kiln.torch.distributions.distribution import Distribution, ExponentialFamily
from kiln.torch.distributions.kl import kl_divergence, register_kl
from kiln.torch.distributions.transforms import *  # noqa: F403

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Chi2", "Dirichlet", "Distribution",
    "Exponential", "ExponentialFamily", "Gamma", "Geometric", "Independent", "Laplace",
    "LogNormal", "MultivariateNormal", "Normal", "OneHotCategorical", "Poisson", "Uniform",
    "constraints", "kl", "kl_divergence", "register_kl", "transforms", *transforms.__all__,
]  # fmt: skip
