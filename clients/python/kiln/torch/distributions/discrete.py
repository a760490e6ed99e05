"""Distributions of integers and classes."""

from typing import Any, ClassVar, Dict, Optional, Sequence, Tuple

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import no_grad
from kiln.torch import _creation, _shaping
from kiln.torch._tensor import convert
from kiln.torch.distributions import constraints
from kiln.torch.distributions.constraints import Constraint
from kiln.torch.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    broadcast_all,
    clamp_probs,
    least,
    logits_to_probs,
    one_of,
    probs_to_logits,
    uniform,
)
from kiln.torch.nn import functional as F


class _OfProbabilities(Distribution):
    """A distribution of probs or logits; the other ones are computed when they are needed."""

    _is_binary = True
    _probs: Any
    _logits: Any

    @property
    def probs(self) -> Any:
        """The probabilities."""
        found = vars(self).get("_probs")
        return logits_to_probs(self._logits, self._is_binary) if found is None else found

    @property
    def logits(self) -> Any:
        """The logits of the probabilities."""
        found = vars(self).get("_logits")
        return probs_to_logits(self._probs, self._is_binary) if found is None else found

    # That of the probabilities.
    _constraint = constraints.unit_interval

    def _constraints(self) -> Dict[str, Constraint]:
        if vars(self).get("_logits") is None:
            return {"_probs": self._constraint}
        return {"_logits": constraints.independent(constraints.real, self._constraint.event_dim)}

    def _given(self) -> Tuple[str, ...]:
        return ("probs",) if vars(self).get("_logits") is None else ("logits",)


class Bernoulli(_OfProbabilities, ExponentialFamily):
    """1 with a probability, else 0."""

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None,
                 validate_args: Optional[bool] = None) -> None:
        one_of("Bernoulli", probs, logits)
        if probs is not None:
            self._probs, = broadcast_all(probs)
        else:
            self._logits, = broadcast_all(logits)
        super().__init__(self._param.shape, (), validate_args)

    _param = property(lambda self: self._probs if "_probs" in vars(self) else self._logits)
    support = property(lambda self: constraints.boolean)
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Any:
        """The most probable value; NaN if both are."""
        probs = self.probs
        return (probs >= 0.5)._cast(probs.dtype).where(probs != 0.5, float("nan"))

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples."""
        with no_grad():
            return _creation.bernoulli(
                self.probs.expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the probability."""
        logits, given = broadcast_all(self.logits, self._checked(value)._cast(self.logits.dtype))
        return -F.binary_cross_entropy_with_logits(logits, given, reduction="none")

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        """Returns 0 and 1."""
        values = convert([0.0, 1.0], self._param.dtype).reshape(2, *[1] * len(self._batch_shape))
        return values.expand(2, *self._batch_shape) if expand else values


class Geometric(_OfProbabilities):
    """The number of failures before the first success, of a probability."""

    def __init__(self, probs: Any = None, logits: Any = None,
                 validate_args: Optional[bool] = None) -> None:
        one_of("Geometric", probs, logits)
        if probs is not None:
            self._probs, = broadcast_all(probs)
        else:
            self._logits, = broadcast_all(logits)
        super().__init__((self._probs if logits is None else self._logits).shape, (),
                         validate_args)

    support = property(lambda self: constraints.nonnegative_integer)
    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: self.probs * 0)
    variance = property(
        lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples."""
        with no_grad():
            probs = clamp_probs(self.probs)
            drawn = 1 - uniform(self._extended_shape(sample_shape), probs)
            return (drawn.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the probability."""
        given = self._checked(value)
        probs = self.probs
        certain = (probs == 1) & (given == 0)
        rest = (-(probs.where(~certain, 0.0))).log1p()
        return given * rest + probs.log()

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        return F.binary_cross_entropy_with_logits(
            self.logits, self.probs, reduction="none") / self.probs


class Poisson(ExponentialFamily):
    """The number of events of a rate."""

    arg_constraints: ClassVar[Dict[str, Constraint]] = {"rate": constraints.nonnegative}

    def __init__(self, rate: Any, validate_args: Optional[bool] = None) -> None:
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    support = property(lambda self: constraints.nonnegative_integer)
    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples."""
        with no_grad():
            return _creation.poisson(self.rate.expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the probability."""
        rate, given = broadcast_all(self.rate, self._checked(value))
        return given.xlogy(rate) - rate - (given + 1).lgamma()


class Binomial(_OfProbabilities):
    """The number of successes, of a probability, among total_count trials."""

    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None,
                 validate_args: Optional[bool] = None) -> None:
        one_of("Binomial", probs, logits)
        if probs is not None:
            self.total_count, self._probs = reversed(broadcast_all(probs, total_count))
        else:
            self.total_count, self._logits = reversed(broadcast_all(logits, total_count))
        super().__init__(self.total_count.shape, (), validate_args)

    support = property(
        lambda self: constraints.integer_interval(0, self.total_count))
    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: (
        (self.total_count + 1) * self.probs).floor().minimum(self.total_count))
    variance = property(
        lambda self: self.total_count * self.probs * (1 - self.probs))

    def _given(self) -> Tuple[str, ...]:
        return ("total_count", *super()._given())

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return _creation.binomial(self.total_count.expand(*shape), self.probs.expand(*shape))

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the probability."""
        given, count, logits = self._checked(value), self.total_count, self.logits
        positive = (logits + logits.abs()) / 2
        normal = count * positive + count * (-logits.abs()).exp().log1p() - (count + 1).lgamma()
        return given * logits - (given + 1).lgamma() - (count - given + 1).lgamma() - normal

    def enumerate_support(self, expand: bool = True) -> Any:
        """Returns 0 to total_count, which is read, and must be the same for all."""
        count = int(self.total_count.max())
        if not bool((self.total_count == count).all()):
            raise NotImplementedError("the values of trials of several total_counts")
        values = _creation.arange(count + 1, dtype=self.total_count.dtype).reshape(
            -1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    def entropy(self) -> Any:
        """Returns the expected -log_prob(); reads total_count."""
        found = self.log_prob(self.enumerate_support(False))
        return -(found.exp() * found).sum(0)


class Categorical(_OfProbabilities):
    """A class from 0 to the number of classes - 1, which is the size of the last dimension."""

    has_enumerate_support = True
    _is_binary = False
    _constraint = constraints.simplex

    def __init__(self, probs: Any = None, logits: Any = None,
                 validate_args: Optional[bool] = None) -> None:
        one_of("Categorical", probs, logits)
        given = convert(logits if probs is None else probs)
        if given.ndim < 1:
            raise InvalidArgument("Categorical needs at least one dimension, of classes")
        if probs is not None:
            self._probs = given / given.sum(-1, True)
        else:
            self._logits = given - given.logsumexp(-1, True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], (), validate_args)

    param_shape = property(lambda self: (*self._batch_shape, self._num_events))
    support = property(
        lambda self: constraints.integer_interval(0, self._num_events - 1))
    mode = property(lambda self: self.probs.argmax(-1))

    @property
    def mean(self) -> Any:
        """NaN: classes have no mean."""
        return self.probs.sum(-1) * float("nan")

    variance = mean

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples."""
        shape = tuple(sample_shape)
        count = 1
        for size in shape:
            count *= size
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = _creation.multinomial(rows, count, True).t()
        return drawn.reshape(*self._extended_shape(shape))

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the probability."""
        given = self._checked(value)._cast(dtypes.int64).unsqueeze(-1)
        places, logits = _shaping.broadcast_tensors(given, self.logits)
        return logits.gather(-1, places[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        logits = self.logits
        return -(logits.maximum(convert(least(logits), logits.dtype)) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """Returns all classes."""
        values = _creation.arange(self._num_events).reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class OneHotCategorical(Distribution):
    """A class as a vector of 0 with one 1."""

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None,
                 validate_args: Optional[bool] = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    support = property(lambda self: constraints.one_hot)
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _given(self) -> Tuple[str, ...]:
        return self._categorical._given()

    def _rows(self, places: Any) -> Any:
        return F.one_hot(places, self._event_shape[0])._cast(self.probs.dtype)

    @property
    def mode(self) -> Any:
        """The most probable value."""
        return self._rows(self._categorical.mode)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples."""
        return self._rows(self._categorical.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the probability."""
        return self._categorical.log_prob(self._checked(value).argmax(-1))

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        return self._categorical.entropy()


__all__ = ["Bernoulli", "Binomial", "Categorical", "Geometric", "OneHotCategorical", "Poisson"]
