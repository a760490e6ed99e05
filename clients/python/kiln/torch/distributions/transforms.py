"""torch.distributions.transforms: invertible functions, and distributions of their results."""

import math
from typing import Any, List, Optional, Sequence, Tuple

from kiln._graph.gradient_mode import no_grad
from kiln._tensor.selection import required
from kiln.tensor import Tensor as KilnTensor
from kiln.torch._tensor import convert
from kiln.torch.distributions import constraints
from kiln.torch.distributions.continuous import Independent
from kiln.torch.distributions.distribution import Distribution
from kiln.torch.nn import functional as F


class Transform:
    """An invertible function. With a cache_size of 1, it remembers its last value."""

    bijective = True
    event_dim = 0
    sign = 1
    codomain = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size = cache_size
        self._cached: Tuple[Any, Any] = (None, None)

    def __call__(self, x: Any) -> Any:
        """Returns the function's value."""
        if self._cached[0] is x and x is not None:
            return self._cached[1]
        y = self._call(x)
        if self._cache_size:
            self._cached = x, y
        return y

    def _inverted(self, y: Any) -> Any:
        return self._cached[0] if self._cached[1] is y and y is not None else self._inverse(y)

    @property
    def inv(self) -> "Transform":
        """The inverse function."""
        return _Inverse(self)

    def with_cache(self, cache_size: int = 1) -> "Transform":
        """Sets the size of the cache, 0 or 1; returns the transform."""
        self._cache_size = cache_size
        return self

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns the logarithm of the absolute derivative at x, where the value is y."""
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self._transform = transform
        self.event_dim, self.sign = transform.event_dim, transform.sign

    @property
    def inv(self) -> Transform:
        """The transform itself."""
        return self._transform

    def __call__(self, x: Any) -> Any:
        """Returns the value whose transform is x."""
        return self._transform._inverted(x)

    def _inverse(self, y: Any) -> Any:
        return self._transform(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns the logarithm of the absolute derivative."""
        return -self._transform.log_abs_det_jacobian(y, x)


class ComposeTransform(Transform):
    """Several transforms, one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts: List[Transform] = list(parts)
        self.event_dim = max([part.event_dim for part in self.parts], default=0)
        self.sign = math.prod([part.sign for part in self.parts])
        if self.parts:
            self.codomain = self.parts[-1].codomain

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns the logarithm of the absolute derivative."""
        total: Any = None
        for part in self.parts:
            value = part(x)
            each = _summed(part.log_abs_det_jacobian(x, value), self.event_dim - part.event_dim)
            total = each if total is None else total + each
            x = value
        return x * 0 if total is None else total


class AffineTransform(Transform):
    """loc + scale * x."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    @property
    def sign(self) -> Any:  # type: ignore[override]
        """The sign of the derivative."""
        if isinstance(self.scale, KilnTensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns the logarithm of the absolute derivative."""
        each = convert(self.scale, x.dtype).abs().log().expand(x.shape)
        return _summed(each, self.event_dim)


class ExpTransform(Transform):
    """exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns the logarithm of the absolute derivative."""
        return x


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        return x.sigmoid()

    def _inverse(self, y: Any) -> Any:
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns the logarithm of the absolute derivative."""
        return -F.softplus(-x) - F.softplus(x)


class TanhTransform(Transform):
    """The hyperbolic tangent."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns the logarithm of the absolute derivative, which does not overflow."""
        return 2 * (math.log(2) - x - F.softplus(-2 * x))


class SoftplusTransform(Transform):
    """log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return F.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns the logarithm of the absolute derivative."""
        return -F.softplus(-x)


class PowerTransform(Transform):
    """x to a power, for x above 0."""

    codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = convert(exponent)

    def _call(self, x: Any) -> Any:
        return x ** self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns the logarithm of the absolute derivative."""
        return (self.exponent * y / x).abs().log()


identity_transform = ComposeTransform([])


def _summed(value: Any, count: int) -> Any:
    """Returns the sum over the last dimensions."""
    return value.sum(tuple(range(-count, 0))) if count else value


class TransformedDistribution(Distribution):
    """The distribution of what transforms make of samples of another one."""

    def __init__(self, base_distribution: Distribution, transforms: Any,
                 validate_args: Optional[bool] = None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        event = len(base_distribution.event_shape)
        more = max([part.event_dim for part in self.transforms], default=0) - event
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        super().__init__(self.base_dist.batch_shape, self.base_dist.event_shape, validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @property
    def support(self) -> Any:
        """The values of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1]
        return constraints.independent(last.codomain, len(self._event_shape))

    def _transformed(self, value: Any) -> Any:
        for part in self.transforms:
            value = part(value)
        return value

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, without gradient."""
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws samples, through which gradients flow."""
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density."""
        inside = self.support.check(value) if self._validate_args else None
        total: Any = 0.0
        count = len(self._event_shape)
        for part in reversed(self.transforms):
            before = part.inv(value)
            total = total - _summed(part.log_abs_det_jacobian(before, value),
                                    count - part.event_dim)
            value = before
        total = total + self.base_dist.log_prob(value)
        return total if inside is None else required(
            total, ~inside, "TransformedDistribution", f"the value must satisfy {self.support!r}")

    def cdf(self, value: Any) -> Any:
        """Returns the probability of values up to this one."""
        sign: Any = 1
        for part in reversed(self.transforms):
            value, sign = part.inv(value), sign * part.sign
        return sign * (self.base_dist.cdf(value) - 0.5) + 0.5

    def icdf(self, value: Any) -> Any:
        """Returns the value up to which values have this probability."""
        sign: Any = 1
        for part in self.transforms:
            sign = sign * part.sign
        return self._transformed(self.base_dist.icdf(sign * (convert(value) - 0.5) + 0.5))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Returns the distribution with another batch shape."""
        return TransformedDistribution(self.base_dist.expand(batch_shape), self.transforms, False)

    def __repr__(self) -> str:
        return f"TransformedDistribution({self.base_dist!r}, {self.transforms!r})"


__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "PowerTransform", "SigmoidTransform",
    "SoftplusTransform", "TanhTransform", "Transform", "TransformedDistribution",
    "identity_transform",
]
