"""Random tensors: Threefry-2x32 on the device, from a seed and a count of the draws.

A draw's key is (seed, number of the draw), so numbers do not depend on the shapes drawn before. In
a kiln.jit function the count is a value on the device that each run moves on, so that every call
draws new numbers, the same ones that calls without kiln.jit would draw.
"""

import os
import threading
from typing import Any, Optional

import numpy as np

from kiln import _dtypes
from kiln._errors import InvalidArgument
from kiln._movement import sizes
from kiln._node import make, mode
from kiln.tensor import Tensor, wrap

_WORD = 1 << 32


class Generator:
    """A source of random numbers: a seed and how many draws have been made."""

    _kiln_watched = ()

    def __init__(self, seed: Optional[int] = None) -> None:
        self._lock = threading.Lock()
        self.manual_seed(int.from_bytes(os.urandom(8), "little") if seed is None else seed)

    def manual_seed(self, seed: int) -> "Generator":
        """Starts again from a seed."""
        with self._lock:
            self.seed = seed
            self.draws = 0
            # The key of the next draw, on the device, as traced functions left it; see _jit.py.
            self.device_key: Optional[Tensor] = None
            self.device_draws = -1
        return self

    def word(self) -> int:
        """The seed, as Threefry's first key word."""
        return (self.seed ^ (self.seed >> 32)) % _WORD

    def key(self) -> Tensor:
        """The key of the next draw."""
        trace = mode.trace
        if trace is not None:
            key: Tensor = trace.random_key(self)
            return key
        with self._lock:
            self.draws += 1
            return Tensor(np.array([self.word(), (self.draws - 1) % _WORD], np.uint32))


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seeds the generator that all random functions use by default."""
    return default_generator.manual_seed(seed)


def random_bits(*shape: Any, generator: Optional[Generator] = None) -> Tensor:
    """Uniform uint32."""
    key = (generator or default_generator).key()
    return wrap(make("random_bits", (key._node,), (("shape", sizes(shape)),)))


def rand(*shape: Any, dtype: Any = None, generator: Optional[Generator] = None) -> Tensor:
    """Uniform in [0, 1), in steps of 2**-24."""
    return _draw("random_uniform", sizes(shape), dtype, generator)


def uniform(*shape: Any, low: float = 0.0, high: float = 1.0, dtype: Any = None,
            generator: Optional[Generator] = None) -> Tensor:
    """Uniform in [low, high)."""
    return rand(*shape, dtype=dtype, generator=generator) * (high - low) + low


def randn(*shape: Any, dtype: Any = None, generator: Optional[Generator] = None) -> Tensor:
    """Normal with mean 0 and variance 1."""
    return _draw("random_normal", sizes(shape), dtype, generator)


def _draw(name: str, shape: Any, dtype: Any, generator: Optional[Generator]) -> Tensor:
    key = (generator or default_generator).key()
    drawn = wrap(make(name, (key._node,), (("shape", shape),)))
    return drawn.cast(dtype or _dtypes.float32)


def normal(mean: float, std: float, shape: Any, generator: Optional[Generator] = None) -> Tensor:
    """Normal with this mean and standard deviation."""
    return randn(shape, generator=generator) * std + mean


def randint(low: int, high: Optional[int] = None, shape: Any = (), dtype: Any = None,
            generator: Optional[Generator] = None) -> Tensor:
    """Uniform integers in [low, high); one argument is `high`, with low 0."""
    if high is None:
        low, high = 0, low
    span = high - low
    if not 0 < span <= _WORD:
        raise InvalidArgument(f"randint from {low} to {high}; 1 to 2**32 values are possible")
    kind = _dtypes.as_dtype(dtype or _dtypes.int64)
    wanted = sizes((shape,)) if not isinstance(shape, int) else (shape,)
    bits = random_bits(wanted, generator=generator).cast(_dtypes.uint64)
    # The high word of bits * span: uniform but for one part in 2**32 / span. (Lemire, 2019.)
    return (bits * span >> 32).cast(kind) + low


def bernoulli(probability: float, shape: Any, generator: Optional[Generator] = None) -> Tensor:
    """True with a probability."""
    return rand(shape, generator=generator) < probability


def randperm(n: int, generator: Optional[Generator] = None) -> Tensor:
    """0 to n - 1 in random order. Drawn in this process, since the daemon does not sort."""
    chosen = generator or default_generator
    if mode.trace is not None:
        raise InvalidArgument(
            "randperm inside kiln.jit; draw it outside and pass it as an argument")
    with chosen._lock:
        chosen.draws += 1
        source = np.random.Generator(np.random.Philox(key=[chosen.word(), chosen.draws]))
    return Tensor(source.permutation(n))


def get_state() -> Any:
    """What set_state() continues from."""
    return default_generator.seed, default_generator.draws


def set_state(state: Any) -> None:
    """Continues from an earlier get_state()."""
    default_generator.manual_seed(state[0]).draws = state[1]
