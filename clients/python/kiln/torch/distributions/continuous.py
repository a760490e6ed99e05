"""Distributions of real numbers."""

import math
from typing import Any, ClassVar, Dict, Optional, Sequence

from kiln._basics.errors import InvalidArgument, Unimplemented
from kiln._tensor.selection import required
from kiln.torch import _shaping, linalg
from kiln.torch._tensor import convert
from kiln.torch.distributions import constraints
from kiln.torch.distributions.constraints import Constraint
from kiln.torch.distributions.distribution import (
    HALF_LOG_TAU,
    Distribution,
    ExponentialFamily,
    broadcast_all,
    standard_gamma,
    standard_normal,
    uniform,
)


class _LocationScale(Distribution):
    """A distribution that is moved by loc and scaled by scale."""

    has_rsample = True
    arg_constraints: ClassVar[Dict[str, Constraint]] = {
        "loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Any, scale: Any, validate_args: Optional[bool] = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """All numbers."""
        return constraints.real

    def _scaled(self, value: Any) -> Any:
        return (self._checked(value) - self.loc) / self.scale


class Normal(_LocationScale, ExponentialFamily):
    """The normal distribution of mean loc and standard deviation scale."""

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale ** 2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, through which gradients flow."""
        return self.loc + standard_normal(self._extended_shape(sample_shape), self.loc) * self.scale

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density."""
        return -(self._scaled(value) ** 2) / 2 - self.scale.log() - HALF_LOG_TAU

    def cdf(self, value: Any) -> Any:
        """Returns the probability of values up to this one."""
        return 0.5 * (1 + (self._scaled(value) / math.sqrt(2)).erf())

    def icdf(self, value: Any) -> Any:
        """Returns the value up to which values have this probability."""
        return self.loc + self.scale * (2 * convert(value) - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        return 0.5 + HALF_LOG_TAU + self.scale.log()


class LogNormal(Distribution):
    """The distribution of exp of a normal variable."""

    has_rsample = True
    arg_constraints: ClassVar[Dict[str, Constraint]] = {
        "loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Any, scale: Any, validate_args: Optional[bool] = None) -> None:
        self.base_dist = Normal(loc, scale, validate_args)
        super().__init__(self.base_dist.batch_shape, (), validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    support = property(lambda self: constraints.positive)
    mean = property(lambda self: (self.loc + self.scale ** 2 / 2).exp())
    mode = property(lambda self: (self.loc - self.scale ** 2).exp())

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        square = self.scale ** 2
        return square.expm1() * (2 * self.loc + square).exp()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, through which gradients flow."""
        return self.base_dist.rsample(sample_shape).exp()

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density."""
        log = self._checked(value).log()
        return self.base_dist.log_prob(log) - log

    def cdf(self, value: Any) -> Any:
        """Returns the probability of values up to this one."""
        return self.base_dist.cdf(self._checked(value).log())

    def icdf(self, value: Any) -> Any:
        """Returns the value up to which values have this probability."""
        return self.base_dist.icdf(value).exp()

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        return self.base_dist.entropy() + self.loc


class Laplace(_LocationScale):
    """The Laplace distribution: its density falls exponentially to both sides of loc."""

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.sqrt(2) * self.scale)
    variance = property(lambda self: 2 * self.scale ** 2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, through which gradients flow."""
        drawn = uniform(self._extended_shape(sample_shape), self.loc) - 0.5
        return self.loc - self.scale * drawn.sign() * (-2 * drawn.abs()).log1p()

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density."""
        return -(2 * self.scale).log() - self._scaled(value).abs()

    def cdf(self, value: Any) -> Any:
        """Returns the probability of values up to this one."""
        scaled = self._scaled(value)
        return 0.5 - 0.5 * scaled.sign() * (-scaled.abs()).expm1()

    def icdf(self, value: Any) -> Any:
        """Returns the value up to which values have this probability."""
        term = convert(value) - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        return 1 + (2 * self.scale).log()


class Uniform(Distribution):
    """The uniform distribution on [low, high)."""

    has_rsample = True
    arg_constraints: ClassVar[Dict[str, Constraint]] = {
        "low": constraints.real, "high": constraints.real}

    def __init__(self, low: Any, high: Any, validate_args: Optional[bool] = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, (), validate_args)
        if self._validate_args:
            self.low = required(self.low, ~(self.low < self.high), "Uniform",
                                "low must be below high")

    support = property(
        lambda self: constraints.interval(self.low, self.high))
    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: self.high * math.nan)
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, through which gradients flow."""
        drawn = uniform(self._extended_shape(sample_shape), self.low)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density."""
        given = self._checked(value)
        inside = (given >= self.low) & (given < self.high)
        return (-(self.high - self.low).log() + given * 0).where(inside, -math.inf)

    def cdf(self, value: Any) -> Any:
        """Returns the probability of values up to this one."""
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Any) -> Any:
        """Returns the value up to which values have this probability."""
        return convert(value) * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        return (self.high - self.low).log()


class Exponential(ExponentialFamily):
    """The exponential distribution of a rate."""

    has_rsample = True
    arg_constraints: ClassVar[Dict[str, Constraint]] = {"rate": constraints.positive}

    def __init__(self, rate: Any, validate_args: Optional[bool] = None) -> None:
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    support = property(lambda self: constraints.nonnegative)
    mean = stddev = property(lambda self: 1 / self.rate)
    mode = property(lambda self: self.rate * 0)
    variance = property(lambda self: self.rate ** -2.0)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, through which gradients flow."""
        drawn = 1 - uniform(self._extended_shape(sample_shape), self.rate)
        return -drawn.log() / self.rate

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density."""
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Any) -> Any:
        """Returns the probability of values up to this one."""
        return 1 - (-self.rate * self._checked(value)).exp()

    def icdf(self, value: Any) -> Any:
        """Returns the value up to which values have this probability."""
        return -(-convert(value)).log1p() / self.rate

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        return 1 - self.rate.log()


def _fixed(name: str, concentration: Any) -> None:
    if concentration.requires_grad:
        raise Unimplemented(f"{name}.rsample() with a gradient for the concentration; use sample()")


class Gamma(ExponentialFamily):
    """The gamma distribution of a concentration and a rate.

    Gradients flow through samples to the rate only.
    """

    has_rsample = True
    arg_constraints: ClassVar[Dict[str, Constraint]] = {
        "concentration": constraints.positive, "rate": constraints.positive}

    def __init__(self, concentration: Any, rate: Any, validate_args: Optional[bool] = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)

    support = property(lambda self: constraints.nonnegative)
    mean = property(lambda self: self.concentration / self.rate)
    variance = property(
        lambda self: self.concentration / self.rate ** 2)
    mode = property(
        lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, without gradient."""
        drawn = standard_gamma(self.concentration, self._extended_shape(sample_shape))
        return drawn / self.rate.detach()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, through which gradients flow to the rate."""
        _fixed("Gamma", self.concentration)
        return standard_gamma(self.concentration, self._extended_shape(sample_shape)) / self.rate

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density."""
        given = self._checked(value)
        return (self.concentration.xlogy(self.rate) + (self.concentration - 1).xlogy(given)
                - self.rate * given - self.concentration.lgamma())

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        alpha = self.concentration
        return alpha - self.rate.log() + alpha.lgamma() + (1 - alpha) * alpha.digamma()


class Chi2(Gamma):
    """The chi-squared distribution: that of the sum of df squares of normal variables."""

    arg_constraints: ClassVar[Dict[str, Constraint]] = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: Optional[bool] = None) -> None:
        degrees, = broadcast_all(df)
        super().__init__(0.5 * degrees, 0.5, validate_args)

    df = property(lambda self: self.concentration * 2)


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution of vectors that sum to 1."""

    arg_constraints: ClassVar[Dict[str, Constraint]] = {
        "concentration": constraints.positive_vector}

    def __init__(self, concentration: Any, validate_args: Optional[bool] = None) -> None:
        self.concentration = convert(concentration)
        if self.concentration.ndim < 1:
            raise InvalidArgument("Dirichlet needs a concentration of at least one dimension")
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:],
                         validate_args)

    support = property(lambda self: constraints.simplex)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        """The most probable value."""
        less = (self.concentration - 1).clamp(min=0.0)
        mode = less / less.sum(-1, True)
        below = (self.concentration < 1).all(-1, keepdim=True)
        largest = self.concentration.argmax(-1, keepdim=True)
        corner = (self.concentration * 0).scatter(-1, largest, 1.0)
        return corner.where(below, mode)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total ** 2 * (total + 1))

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples."""
        drawn = standard_gamma(self.concentration, self._extended_shape(sample_shape))
        return drawn / drawn.sum(-1, True)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples; raises Unimplemented if the concentration requires a gradient."""
        _fixed("Dirichlet", self.concentration)
        return self.sample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density."""
        alpha = self.concentration
        return ((alpha - 1).xlogy(self._checked(value)).sum(-1) + alpha.sum(-1).lgamma()
                - alpha.lgamma().sum(-1))

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        alpha = self.concentration
        total = alpha.sum(-1)
        return (alpha.lgamma().sum(-1) - total.lgamma()
                - (alpha.shape[-1] - total) * total.digamma()
                - ((alpha - 1) * alpha.digamma()).sum(-1))


class Beta(ExponentialFamily):
    """The beta distribution on [0, 1]."""

    arg_constraints: ClassVar[Dict[str, Constraint]] = {
        "concentration1": constraints.positive, "concentration0": constraints.positive}

    def __init__(self, concentration1: Any, concentration0: Any,
                 validate_args: Optional[bool] = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)

    support = property(lambda self: constraints.unit_interval)
    _total = property(lambda self: self.concentration1 + self.concentration0)
    mean = property(lambda self: self.concentration1 / self._total)

    @property
    def mode(self) -> Any:
        """The most probable value."""
        return self._dirichlet().mode[..., 0]

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        total = self._total
        return self.concentration1 * self.concentration0 / (total ** 2 * (total + 1))

    def _dirichlet(self) -> Dirichlet:
        both = [part.unsqueeze(-1) for part in (self.concentration1, self.concentration0)]
        shape = (*self.concentration1.shape, 1)
        wide = [part.expand(*shape) for part in both]
        return Dirichlet(_shaping.cat(wide, -1), False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples."""
        return self._dirichlet().sample(sample_shape)[..., 0]

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples; raises Unimplemented if a concentration requires a gradient."""
        _fixed("Beta", self._total)
        return self.sample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density."""
        given = self._checked(value)
        one, zero = self.concentration1, self.concentration0
        return ((one - 1).xlogy(given) + (zero - 1).xlogy(1 - given) + self._total.lgamma()
                - one.lgamma() - zero.lgamma())

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        return self._dirichlet().entropy()


class MultivariateNormal(Distribution):
    """The normal distribution of vectors, of a covariance or its lower Cholesky factor."""

    has_rsample = True
    arg_constraints: ClassVar[Dict[str, Constraint]] = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky}

    def __init__(self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None,
                 scale_tril: Any = None, validate_args: Optional[bool] = None) -> None:
        given = [matrix for matrix in (covariance_matrix, precision_matrix, scale_tril)
                 if matrix is not None]
        if len(given) != 1:
            raise InvalidArgument("MultivariateNormal needs one of covariance_matrix, "
                                  "precision_matrix and scale_tril")
        self.loc = convert(loc)
        if scale_tril is None:
            covariance = linalg.inv(precision_matrix) if covariance_matrix is None else (
                convert(covariance_matrix))
            scale_tril = linalg.cholesky(covariance)
        self.scale_tril = convert(scale_tril)
        size = self.loc.shape[-1]
        batch = tuple(_shaping.BROADCAST_SHAPES(
            tuple(self.loc.shape[:-1]), tuple(self.scale_tril.shape[:-2])))
        self.loc = self.loc.expand(*batch, size)
        self.scale_tril = self.scale_tril.expand(*batch, size, size)
        super().__init__(batch, (size,), validate_args)

    support = property(lambda self: constraints.real_vector)
    mean = mode = property(lambda self: self.loc)
    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.mT)
    precision_matrix = property(lambda self: linalg.inv(self.covariance_matrix))
    variance = property(lambda self: (self.scale_tril ** 2).sum(-1))

    def _given(self) -> Any:
        return ("loc", "scale_tril")

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, through which gradients flow."""
        drawn = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self.scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density."""
        apart = (self._checked(value) - self.loc).unsqueeze(-1)
        shape = tuple(apart.shape)[:-2]
        size = self._event_shape[0]
        scaled = linalg.solve_triangular(
            self.scale_tril.expand(*shape, size, size), apart, upper=False).squeeze(-1)
        return -(scaled ** 2).sum(-1) / 2 - self._half_log_det() - size * HALF_LOG_TAU

    def _half_log_det(self) -> Any:
        return self.scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        return self._event_shape[0] * (0.5 + HALF_LOG_TAU) + self._half_log_det()


class Independent(Distribution):
    """A distribution some of whose batch dimensions are dimensions of the event."""

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int,
                 validate_args: Optional[bool] = None) -> None:
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = count = reinterpreted_batch_ndims
        batch = base_distribution.batch_shape
        if count > len(batch):
            raise InvalidArgument(f"Independent of {count} dimensions of a batch of shape "
                                  f"{tuple(batch)}")
        keep = len(batch) - count
        super().__init__(batch[:keep], (*batch[keep:], *base_distribution.event_shape),
                         validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    support = property(lambda self: constraints.independent(
        self.base_dist.support, self.reinterpreted_batch_ndims))
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, without gradient."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, through which gradients flow."""
        return self.base_dist.rsample(sample_shape)

    def _summed(self, value: Any) -> Any:
        axes = tuple(range(-self.reinterpreted_batch_ndims, 0))
        return value.sum(axes) if axes else value

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density."""
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        return self._summed(self.base_dist.entropy())

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Returns the distribution with another batch shape."""
        count = self.reinterpreted_batch_ndims
        kept = self.base_dist.batch_shape[len(self.base_dist.batch_shape) - count:]
        return Independent(self.base_dist.expand((*batch_shape, *kept)), count, False)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


__all__ = [
    "Beta", "Chi2", "Dirichlet", "Exponential", "Gamma", "Independent", "Laplace", "LogNormal",
    "MultivariateNormal", "Normal", "Uniform",
]
