"""Random tensors: Threefry-2x32 on the device, from a seed and a count of the draws.

A draw's key is (seed, number of the draw), so numbers do not depend on the shapes drawn before. In
a kiln.jit function the count is a value on the device that each run advances, so every call draws
new numbers, the same ones that calls without kiln.jit would draw.
"""

import math
import os
import threading
from typing import Any, Optional

import numpy as np

from kiln._array_api.sorting import topk
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph.node import make, mode
from kiln._rules import NUMBER, flag, normalize_axis, whole
from kiln._tensor.shapes import sizes
from kiln.tensor import Tensor, wrap

_WORD = 1 << 32


class Generator:
    """A source of random numbers: a seed and the number of draws made.

    Without `seed` it uses one from the operating system.

    >>> generator = kiln.Generator().manual_seed(7)
    >>> bool((kiln.rand(3, generator=generator) < 1).all())
    True
    """

    _kiln_watched = ()

    def __init__(self, seed: Optional[int] = None) -> None:
        self._lock = threading.Lock()
        self.manual_seed(int.from_bytes(os.urandom(8), "little") if seed is None else seed)

    def manual_seed(self, seed: int) -> "Generator":
        """Restarts from a seed; returns the generator.

        Raises InvalidArgument if `seed` is not an int.

        >>> a, b = kiln.Generator().manual_seed(7), kiln.Generator().manual_seed(7)
        >>> kiln.rand(3, generator=a).tolist() == kiln.rand(3, generator=b).tolist()
        True
        """
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
            raise InvalidArgument(f"a seed of {seed!r}; it must be an int")
        seed = int(seed)
        with self._lock:
            self.seed = seed
            self.draws = 0
            # The key of the next draw on the device, left by traced functions; see _trace/trace.py.
            self.device_key: Optional[Tensor] = None
            self.device_draws = -1
        return self

    def word(self) -> int:
        """Returns the seed as Threefry's first key word."""
        return (self.seed ^ (self.seed >> 32)) % _WORD

    def key(self) -> Tensor:
        """Returns the key of the next draw, uint32 of shape (2,), and counts the draw.

        >>> kiln.Generator().key().shape
        (2,)
        """
        trace = mode.trace
        if trace is not None:
            key: Tensor = trace.random_key(self)
            return key
        with self._lock:
            self.draws += 1
            return Tensor(np.array([self.word(), (self.draws - 1) % _WORD], np.uint32))


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seeds the generator that all random functions use by default; returns it.

    >>> _ = kiln.manual_seed(7)
    >>> first = kiln.rand(3).tolist()
    >>> _ = kiln.manual_seed(7)
    >>> kiln.rand(3).tolist() == first
    True
    """
    return default_generator.manual_seed(seed)


def random_bits(*shape: Any, generator: Optional[Generator] = None) -> Tensor:
    """Draws uniform uint32.

    >>> kiln.random.random_bits((3,)).dtype
    kiln.uint32
    """
    key = (generator or default_generator).key()
    return wrap(make("random_bits", (key._node,), (("shape", sizes(shape)),)))


def rand(*shape: Any, dtype: Any = None, generator: Optional[Generator] = None) -> Tensor:
    """Draws uniform numbers in [0, 1), in multiples of 2**-24 (float32, the default), 2**-53
    (float64), 2**-11 (float16) or 2**-8 (bfloat16).

    >>> x = kiln.rand(1000, dtype=kiln.bfloat16)
    >>> bool(((x >= 0) & (x < 1)).all())
    True
    """
    kind = _float_dtype("rand", dtype)
    wanted = sizes(shape)
    if kind is dtypes.float32:
        return _draw("random_uniform", wanted, generator)
    if kind is dtypes.float64:
        return _unit(random_bits(2, *wanted, generator=generator))
    # As many bits as the dtype has: rounding more of them could give 1.
    digits = 11 if kind is dtypes.float16 else 8
    bits = random_bits(wanted, generator=generator) >> (32 - digits)
    return (bits.cast(dtypes.float32) * 2.0**-digits).cast(kind)


def _unit(words: Tensor) -> Tensor:
    """Returns uniform float64 in [0, 1) from uint32 of shape (2, …)."""
    high = (words[0] >> 11).cast(dtypes.float64)
    return (high * 2.0**32 + words[1].cast(dtypes.float64)) * 2.0**-53


def _float_dtype(name: str, dtype: Any) -> dtypes.DType:
    kind = dtypes.as_dtype(dtype or dtypes.float32)
    if not kind.is_float or kind.itemsize < 2:
        raise InvalidArgument(
            f"{name} of dtype {kind.name}; it must be float16, bfloat16, float32 or float64")
    return kind


def uniform(*shape: Any, low: float = 0.0, high: float = 1.0, dtype: Any = None,
            generator: Optional[Generator] = None) -> Tensor:
    """Draws uniform numbers in [low, high); float32 by default.

    >>> x = kiln.uniform(100, low=2.0, high=3.0)
    >>> bool((x >= 2).all()), bool((x < 3).all())
    (True, True)
    """
    return rand(*shape, dtype=dtype, generator=generator) * (high - low) + low


def randn(*shape: Any, dtype: Any = None, generator: Optional[Generator] = None) -> Tensor:
    """Draws from the normal distribution with mean 0 and variance 1, by Box and Muller (1958).

    >>> kiln.randn(2, 3).shape
    (2, 3)
    """
    kind = _float_dtype("randn", dtype)
    wanted = sizes(shape)
    if kind is not dtypes.float64:
        return _draw("random_normal", wanted, generator).cast(kind)
    words = random_bits(4, *wanted, generator=generator)
    radius = ((1.0 - _unit(words[:2])).log() * -2.0).sqrt()
    return radius * (_unit(words[2:]) * (2 * math.pi)).cos()


def _draw(name: str, shape: Any, generator: Optional[Generator]) -> Tensor:
    key = (generator or default_generator).key()
    return wrap(make(name, (key._node,), (("shape", shape),)))


def normal(mean: float, std: float, shape: Any, generator: Optional[Generator] = None) -> Tensor:
    """Draws float32 from the normal distribution with this mean and standard deviation.

    >>> kiln.normal(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    return randn(shape, generator=generator) * std + mean


def randint(low: int, high: Optional[int] = None, shape: Any = (), dtype: Any = None,
            generator: Optional[Generator] = None) -> Tensor:
    """Draws uniform integers in [low, high), int64 by default; one argument is `high`, with low 0.

    Raises InvalidArgument unless the range has 1 to 2**32 values.

    >>> bool((kiln.randint(3, 5, (9,)) >= 3).all())
    True
    """
    if high is None:
        low, high = 0, low
    span = high - low
    if not 0 < span <= _WORD:
        raise InvalidArgument(
            f"randint from {low} to {high}; the range must hold 1 to 2**32 values")
    kind = dtypes.as_dtype(dtype or dtypes.int64)
    wanted = sizes((shape,))
    bits = random_bits(wanted, generator=generator).cast(dtypes.uint64)
    # The high word of bits * span: uniform up to one part in 2**32 / span. (Lemire, 2019.)
    return (bits * span >> 32).cast(kind) + low


def bernoulli(probability: float, shape: Any, generator: Optional[Generator] = None) -> Tensor:
    """Draws bools that are True with this probability.

    >>> kiln.bernoulli(1.0, (2,)).tolist()
    [True, True]
    """
    return rand(shape, generator=generator) < probability


def exponential(shape: Any, rate: float = 1.0, dtype: Any = None,
                generator: Optional[Generator] = None) -> Tensor:
    """Draws from the exponential distribution with mean 1 / rate; float32 by default.

    >>> bool((kiln.random.exponential((100,)) >= 0).all())
    True
    """
    return (-rand(shape, dtype=dtype, generator=generator)).log1p() * (-1.0 / rate)


def gumbel(shape: Any, dtype: Any = None, generator: Optional[Generator] = None) -> Tensor:
    """Draws from Gumbel's distribution: minus the logarithm of an exponential. Always finite.

    >>> kiln.random.gumbel((2, 3)).shape
    (2, 3)
    """
    # An exponential of 0 would give infinity; all others are at least 2**-25.
    return -exponential(shape, dtype=dtype, generator=generator).maximum(2.0**-25).log()


def truncated_normal(shape: Any, low: float = -2.0, high: float = 2.0, dtype: Any = None,
                     generator: Optional[Generator] = None) -> Tensor:
    """Draws from the standard normal distribution truncated to [low, high].

    Raises InvalidArgument unless low < high.

    >>> x = kiln.random.truncated_normal((1000,), -1.0, 1.0)
    >>> bool(((x >= -1) & (x <= 1)).all())
    True
    """
    if not low < high:
        raise InvalidArgument(f"truncated_normal in [{low}, {high}]; low must be below high")
    below, above = math.erf(low / math.sqrt(2)), math.erf(high / math.sqrt(2))
    drawn = uniform(shape, low=below, high=above, dtype=dtype, generator=generator)
    return (drawn.erfinv() * math.sqrt(2)).clip(low, high)


def categorical(logits: Tensor, shape: Any = (), generator: Optional[Generator] = None) -> Tensor:
    """Draws classes with probabilities softmax(logits) over the last dimension, as int64.

    The result's shape is `shape`, then the dimensions of logits without the last. Uses the
    Gumbel-max trick: the argmax of logits plus Gumbel noise.

    >>> kiln.random.categorical(kiln.tensor([-1e9, 0.0, -1e9]), (4,)).tolist()
    [1, 1, 1, 1]
    """
    lead = sizes((shape,))
    noise = gumbel((*lead, *logits.shape), generator=generator)
    return (logits + noise.cast(logits.dtype)).argmax(-1)


def multinomial(probabilities: Tensor, count: int, replacement: bool = False,
                generator: Optional[Generator] = None) -> Tensor:
    """Draws `count` classes for each row of probabilities, which need not sum to 1, as int64.

    The last dimension becomes `count`. Without replacement no class is drawn twice, and `count`
    above the number of classes raises InvalidArgument.

    >>> sorted(kiln.random.multinomial(kiln.tensor([0.2, 0.3, 0.5]), 3).tolist())
    [0, 1, 2]
    """
    logits = probabilities.log()
    if flag(replacement, "replacement"):
        drawn = categorical(logits, (count,), generator)
        return drawn.permute((*range(1, drawn.ndim), 0))
    if whole(count, "count") > probabilities.shape[-1]:
        raise InvalidArgument(
            f"multinomial draws {count} of {probabilities.shape[-1]} classes; without "
            "replacement there cannot be more draws than classes")
    return topk(logits + gumbel(logits.shape, generator=generator).cast(logits.dtype), count)[1]


def randperm(n: int, generator: Optional[Generator] = None) -> Tensor:
    """Returns 0 to n - 1 in random order, as int64: the argsort of random numbers.

    >>> sorted(kiln.randperm(5).tolist())
    [0, 1, 2, 3, 4]
    """
    return random_bits(n, generator=generator).argsort()


def permutation(x: Any, axis: int = 0, generator: Optional[Generator] = None) -> Tensor:
    """Returns x with its entries along an axis in random order; for an int, randperm(x).

    >>> sorted(kiln.random.permutation(kiln.tensor([3, 1, 2])).tolist())
    [1, 2, 3]
    """
    if isinstance(x, NUMBER):
        return randperm(whole(x, "x"), generator)
    place = normalize_axis(axis, x.ndim)
    result: Tensor = x._op("gather", randperm(x.shape[place], generator), axis=place)
    return result


def get_state() -> Any:
    """Returns the state of the default generator, for set_state().

    >>> state = kiln.random.get_state()
    >>> first = kiln.rand(2).tolist()
    >>> kiln.random.set_state(state)
    >>> kiln.rand(2).tolist() == first
    True
    """
    return default_generator.seed, default_generator.draws


def set_state(state: Any) -> None:
    """Restores a state returned by get_state().

    >>> kiln.random.set_state(kiln.random.get_state())
    """
    default_generator.manual_seed(state[0]).draws = state[1]
