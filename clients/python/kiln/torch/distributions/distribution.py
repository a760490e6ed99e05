"""The base of distributions, and conversions of their parameters."""

import math
from typing import Any, ClassVar, Dict, Optional, Sequence, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import no_grad
from kiln._tensor.selection import required
from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _creation, _defaults, _shaping
from kiln.torch._size import Size
from kiln.torch._tensor import Tensor, convert
from kiln.torch.distributions.constraints import Constraint
from kiln.torch.nn import functional as F

# The distance from 1 to the next number, by the dtype's name.
_EPSILONS = {"float64": 2.0 ** -52, "float32": 2.0 ** -23, "float16": 2.0 ** -10,
             "bfloat16": 2.0 ** -7}
_LEAST = {"float64": -1.7976931348623157e308, "float32": -3.4028234663852886e38,
          "float16": -65504.0, "bfloat16": -3.3895313892515355e38}


class Distribution:
    """A distribution of events of event_shape, of which there are batch_shape.

    Parameters and values outside of their constraints raise InvalidArgument with the next value
    that is read, unless validate_args is False.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[Dict[str, Constraint]] = {}
    _validate_args = True

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (),
                 validate_args: Optional[bool] = None) -> None:
        self._batch_shape = Size(tuple(batch_shape))
        self._event_shape = Size(tuple(event_shape))
        if validate_args is not None:
            self._validate_args = validate_args
        for name, constraint in self._constraints().items() if self._validate_args else ():
            value = vars(self).get(name)
            if isinstance(value, Tensor):
                setattr(self, name, required(
                    value, ~constraint.check(value), type(self).__name__,
                    f"{name.lstrip('_')} must satisfy {constraint!r}"))

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether parameters and values are checked by default."""
        Distribution._validate_args = bool(value)

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of a single sample."""
        return self._event_shape

    @property
    def support(self) -> Any:
        """The values that samples may have."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The expected value."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most probable value."""
        raise NotImplementedError(f"{type(self).__name__} has no mode")

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, without gradient."""
        with no_grad():
            return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, through which gradients flow to the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample()")

    def sample_n(self, n: int) -> Any:
        """Draws n samples."""
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density, or of the probability."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """Returns the probability of values up to this one."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """Returns the value up to which values have this probability."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """Returns the expected -log_prob()."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """Returns exp(entropy())."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Any:
        """Returns all values, along dimension 0."""
        raise NotImplementedError

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Returns the distribution with its parameters expanded to another batch shape."""
        wide = tuple(batch_shape)
        given: Dict[str, Any] = {}
        for name in self._given():
            value = getattr(self, name)
            own = tuple(value.shape)[len(self._batch_shape):]
            given[name] = value.expand(*wide, *own)
        return type(self)(**given, **self._options(), validate_args=False)

    def _constraints(self) -> Dict[str, Constraint]:
        """Returns the constraints of the attributes that are parameters."""
        return self.arg_constraints

    def _given(self) -> Tuple[str, ...]:
        """Returns the names of the parameters that the distribution is made of."""
        return tuple(self.arg_constraints)

    def _options(self) -> Dict[str, Any]:
        return {}

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _checked(self, value: Any) -> Any:
        """Returns a value as a tensor; checks that it is in the support."""
        given = convert(value)
        if not self._validate_args:
            return given
        inside = self.support.check(given)
        return required(given, ~inside, type(self).__name__,
                        f"the value must satisfy {self.support!r}")

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in self._given()}
        shown = [f"{name}: {value.size() if value.numel() > 1 else value}"
                 for name, value in given.items()]
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """The base of distributions of an exponential family."""


def broadcast_all(*values: Any) -> Tuple[Any, ...]:
    """Returns numbers and tensors as tensors of one shape."""
    first = next((value for value in values if isinstance(value, KilnTensor)), None)
    dtype = _defaults.get_default_dtype() if first is None else first.dtype
    if not dtype.is_float:
        dtype = _defaults.get_default_dtype()
    return tuple(_shaping.broadcast_tensors(*[
        value if isinstance(value, KilnTensor) else convert(float(value), dtype)
        for value in values]))


def clamp_probs(probs: Any) -> Any:
    """Returns probabilities that are not nearer to 0 or 1 than the dtype's precision."""
    epsilon = _EPSILONS[probs.dtype.name]
    return KilnTensor.clamp(probs, epsilon, 1 - epsilon)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Returns the logits of probabilities."""
    safe = clamp_probs(probs)
    return safe.log() - (-safe).log1p() if is_binary else safe.log()


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Returns the probabilities of logits."""
    return logits.sigmoid() if is_binary else F.softmax(logits, -1)


def least(tensor: Any) -> float:
    """Returns the lowest number of a tensor's dtype."""
    return _LEAST[tensor.dtype.name]


def one_of(name: str, probs: Any, logits: Any) -> None:
    """Raises InvalidArgument unless one of probs and logits is given."""
    if (probs is None) == (logits is None):
        raise InvalidArgument(f"{name} with probs and logits; give one of them")


def standard_normal(shape: Sequence[int], like: Any) -> Any:
    """Draws from the normal distribution, in the dtype and on the device of a tensor."""
    return _creation.randn_like(like.detach().expand(*shape))


def uniform(shape: Sequence[int], like: Any) -> Any:
    """Draws from [0, 1), in the dtype and on the device of a tensor."""
    return _creation.rand_like(like.detach().expand(*shape))


_CANDIDATES = 16


def standard_gamma(concentration: Any, shape: Sequence[int]) -> Any:
    """Draws from gamma distributions of rate 1. (Marsaglia and Tsang, 2000.)

    Each of the candidates is accepted with a probability above 0.95, and the first of them is used:
    that there is none has a probability below 2**-69.
    """
    alpha = concentration.detach().expand(*shape)
    large = alpha.where(alpha >= 1, alpha + 1)
    d = large - 1 / 3
    c = 1 / (9 * d).sqrt()
    x = standard_normal((_CANDIDATES, *shape), alpha)
    v = (1 + c * x) ** 3
    positive = v.where(v > 0, 1.0)
    log_u = (1 - uniform((_CANDIDATES, *shape), alpha)).log()
    accepted = (v > 0) & (log_u < 0.5 * x * x + d - d * positive + d * positive.log())
    first = accepted.byte().argmax(0, keepdim=True)
    drawn = d * v.gather(0, first).squeeze(0)
    # A gamma variable of a concentration below 1 is that of one more, times a power.
    power = (1 - uniform(shape, alpha)) ** (1 / alpha)
    return drawn * power.where(alpha < 1, 1.0)


HALF_LOG_TAU = math.log(2 * math.pi) / 2
