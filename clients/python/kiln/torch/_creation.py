"""Functions that make tensors, with PyTorch's arguments."""

import math
from typing import Any, Callable, Dict, Optional

import numpy as np

from kiln import random as kiln_random
from kiln._array_api import creation
from kiln._basics import dtypes
from kiln._basics.dtypes import DType
from kiln._basics.errors import InvalidArgument
from kiln._tensor.constructors import filled
from kiln._tensor.selection import required
from kiln._tensor.shapes import sizes
from kiln.random import Generator as KilnGenerator
from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _defaults, _device
from kiln.torch._tensor import Tensor, adopt, convert, from_python


class Generator(KilnGenerator):
    """A source of random numbers: a seed and the number of draws made.

    >>> generator = torch.Generator().manual_seed(7)
    >>> torch.rand(3, generator=generator).shape
    torch.Size([3])
    """

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__()
        self.device = _device.device(device)

    def initial_seed(self) -> int:
        """Returns the seed."""
        return int(self.seed)

    def get_state(self) -> Any:
        """Returns the state, for set_state()."""
        return state_of(self)

    def set_state(self, state: Any) -> None:
        """Restores a state."""
        restore(self, state)


def state_of(generator: KilnGenerator) -> Any:
    """Returns the seed and the number of draws of a generator as a tensor of bytes."""
    words = np.array([generator.seed % (1 << 64), generator.draws], np.uint64)
    return convert(words.view(np.uint8))


def restore(generator: KilnGenerator, state: Any) -> None:
    """Restores the state of a generator."""
    words = convert(state).numpy().view(np.uint64)
    generator.manual_seed(int(words[0])).draws = int(words[1])


default_generator = kiln_random.default_generator


def finish(result: Any, device: Any = None, requires_grad: bool = False) -> Any:
    """Returns a new tensor of kiln.torch on a device, as a leaf."""
    made = adopt(result)
    wanted = device if device is not None else _device._default["device"]
    if wanted is not None:
        made = made._on(wanted)
    if requires_grad:
        made = (made if made.is_leaf else made.detach()).requires_grad_()
    return made


def _dtype(dtype: Any) -> Optional[DType]:
    return None if dtype is None else _defaults.as_dtype(dtype)


def _float(dtype: Any) -> DType:
    return _defaults.get_default_dtype() if dtype is None else _defaults.as_dtype(dtype)


def _shape(size: Any, named: Any) -> Any:
    wanted = size if named is None else (named,)
    return sizes(tuple(wanted))


def _with_out(out: Any, result: Any) -> Any:
    if out is None:
        return result
    if tuple(out.shape) != tuple(result.shape):
        out.resize_(*result.shape)
    return out.copy_(result)


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Any:
    """Returns a tensor of a number, nested lists, an array or a tensor; the data is copied."""
    kind = _dtype(dtype)
    if kind is not None and kind.is_integer:
        data = _fitting(data, kind)
    made = convert(data, kind)
    if made is data:
        made = made.detach().clone()
    return finish(made, device, requires_grad)


def _fitting(data: Any, kind: DType) -> Any:
    """Returns Python data for an integer dtype; raises InvalidArgument if a number does not fit."""
    if isinstance(data, (list, tuple)):
        return [_fitting(part, kind) for part in data]
    return _defaults.number_for(data, kind) if isinstance(data, (int, float)) else data


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """Returns data as a tensor; a tensor of that dtype and device is returned itself."""
    return finish(convert(data, _dtype(dtype)), device) if not isinstance(data, Tensor) else (
        data.to(device=device, dtype=dtype))


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: Optional[bool] = None,
            requires_grad: bool = False) -> Any:
    """Returns data as a tensor, copied if `copy`."""
    made = as_tensor(obj, dtype, device)
    made = made.clone() if copy and made is obj else made
    return made.requires_grad_() if requires_grad else made


def from_numpy(array: Any) -> Any:
    """Returns a tensor with a copy of an array; later changes of it do not reach the tensor."""
    return convert(array)


def from_dlpack(ext_tensor: Any) -> Any:
    """Returns a tensor with a copy of another library's array."""
    return convert(creation.from_dlpack(ext_tensor))


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0,
               requires_grad: bool = False) -> Any:
    """Returns a tensor with a copy of a buffer's bytes."""
    wanted = _defaults.as_dtype(dtype)
    return finish(convert(np.frombuffer(buffer, wanted.numpy, count, offset).copy()), None,
                  requires_grad)


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, out: Any = None,
         layout: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Any:
    """Returns a tensor filled with one number."""
    if isinstance(fill_value, KilnTensor):
        fill_value = fill_value.item()
    kind = _dtype(dtype)
    if kind is None and isinstance(fill_value, float):
        kind = _defaults.get_default_dtype()
    wanted = (size,) if isinstance(size, int) else size
    if kind is not None:
        fill_value = _defaults.number_for(fill_value, kind)
    return _with_out(out, finish(filled(sizes((tuple(wanted),)), fill_value, kind), device,
                                 requires_grad))


def _filling(name: str, value: int) -> Callable[..., Any]:
    def make(*size: Any, dtype: Any = None, device: Any = None, out: Any = None,
             layout: Any = None, requires_grad: bool = False, pin_memory: bool = False,
             memory_format: Any = None, names: Any = None, **named: Any) -> Any:
        shape = _shape(size, named.get("size"))
        return _with_out(out, finish(filled(shape, value, _float(dtype)), device, requires_grad))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Returns {name if value or name == 'zeros' else 'zeros'} of a shape."
    return make


zeros, ones, empty = _filling("zeros", 0), _filling("ones", 1), _filling("empty", 0)


def empty_strided(size: Any, stride: Any, **options: Any) -> Any:
    """Returns zeros of a shape: Kiln's values have no strides."""
    return empty(*size, **options)


def empty_permuted(size: Any, physical_layout: Any, **options: Any) -> Any:
    """Returns zeros of a shape: Kiln's values have no strides."""
    return empty(*size, **options)


def full_like(input: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,
              layout: Any = None, requires_grad: bool = False, memory_format: Any = None,
              pin_memory: bool = False) -> Any:
    """Returns a tensor filled with one number, with another tensor's shape, dtype and device."""
    x = convert(input)
    return _like(x, full(tuple(x.shape), fill_value, dtype=dtype or x.dtype), device,
                 requires_grad)


def _like(x: Any, made: Any, device: Any, requires_grad: bool) -> Any:
    if device is None and isinstance(x._node.home, str):
        made = made.to_device(x._node.home)
    return finish(made, device, requires_grad)


def zeros_like(input: Any, **options: Any) -> Any:
    """Returns zeros of another tensor's shape, dtype and device."""
    return full_like(input, 0, **options)


def ones_like(input: Any, **options: Any) -> Any:
    """Returns ones of another tensor's shape, dtype and device."""
    return full_like(input, 1, **options)


def empty_like(input: Any, **options: Any) -> Any:
    """Returns zeros of another tensor's shape, dtype and device."""
    return full_like(input, 0, **options)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, KilnTensor) else value


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None,
           out: Any = None, layout: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Any:
    """Returns numbers from start up to, not including, end; int64 of integers."""
    start, end, step = _number(start), _number(end), _number(step)
    if end is None:
        start, end = 0, start
    _check_span("arange", start, end, step)
    exact = all(isinstance(value, (int, np.integer)) for value in (start, end, step))
    kind = _dtype(dtype) or (dtypes.int64 if exact else _defaults.get_default_dtype())
    if exact or kind.is_float:
        made = creation.arange(start, end, step, dtype=kind)
    else:
        made = KilnTensor(np.arange(start, end, step), kind)
    return _with_out(out, finish(made, device, requires_grad))


def _check_span(name: str, start: Any, end: Any, step: Any) -> None:
    if not all(math.isfinite(value) for value in (start, end, step)):
        raise InvalidArgument(f"{name} from {start} to {end} by {step}; they must be finite")
    if step == 0 or (end - start) * step < 0:
        raise InvalidArgument(
            f"{name} from {start} to {end} by {step}, which never gets there; the step must not be "
            "0 and have the sign of the difference")


def range_(start: Any = 0, end: Any = None, step: Any = 1, **options: Any) -> Any:
    """Returns numbers from start up to and including end."""
    if end is None:
        start, end = 0, start
    _check_span("range", start, end, step)
    count = math.floor((end - start) / step) + 1
    options["dtype"] = _float(options.get("dtype"))
    return arange(0, count, **options) * step + start


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None,
             out: Any = None, layout: Any = None, requires_grad: bool = False,
             pin_memory: bool = False) -> Any:
    """Returns `steps` numbers from start to end."""
    kind = _float(dtype)
    made = creation.linspace(float(_number(start)), float(_number(end)), int(steps),
                             dtype=kind if kind.is_float else dtypes.float64)
    return _with_out(out, finish(made.cast(kind), device, requires_grad))


def logspace(start: float, end: float, steps: int, base: float = 10.0, **options: Any) -> Any:
    """Returns base to the powers from start to end."""
    kind = _float(options.pop("dtype", None))
    powers = base ** linspace(start, end, steps, dtype=dtypes.float64)
    return finish(powers._cast(kind), options.get("device"), options.get("requires_grad", False))


def eye(n: int, m: Optional[int] = None, *, dtype: Any = None, device: Any = None, out: Any = None,
        layout: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Any:
    """Returns the identity matrix."""
    return _with_out(out, finish(creation.eye(n, m, dtype=_float(dtype)), device, requires_grad))


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, **options: Any) -> Any:
    """Returns a tensor without dimensions, in the default dtype."""
    return tensor(s, dtype=_float(dtype), device=device)


def vander(x: Any, N: Optional[int] = None, increasing: bool = False) -> Any:
    """Returns the powers of a vector's elements."""
    values = convert(x)
    count = values.shape[0] if N is None else N
    powers = arange(count) if increasing else arange(count - 1, -1, -1)
    return values.unsqueeze(-1) ** powers._cast(values.dtype)


# Random numbers.


def _drawn(name: str, draw: Callable[..., KilnTensor], doc: str) -> Callable[..., Any]:
    def make(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None,
             out: Any = None, layout: Any = None, requires_grad: bool = False,
             pin_memory: bool = False, names: Any = None, **named: Any) -> Any:
        shape = _shape(size, named.get("size"))
        made = draw(shape, dtype=_float(dtype), generator=generator)
        return _with_out(out, finish(made, device, requires_grad))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    return make


rand = _drawn("rand", kiln_random.rand, "Draws uniform numbers in [0, 1).")
randn = _drawn("randn", kiln_random.randn, "Draws from the normal distribution.")


def randint(low: int, high: Any = None, size: Any = None, *, generator: Any = None,
            dtype: Any = None, device: Any = None, out: Any = None, layout: Any = None,
            requires_grad: bool = False, pin_memory: bool = False) -> Any:
    """Draws integers in [low, high), or [0, low): torch.randint(10, (2, 3))."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    kind = _dtype(dtype) or dtypes.int64
    made = kiln_random.randint(int(low), int(high), tuple(size), dtypes.int64, generator)
    return _with_out(out, finish(made.cast(kind), device, requires_grad))


def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None,
             out: Any = None, layout: Any = None, requires_grad: bool = False,
             pin_memory: bool = False) -> Any:
    """Returns 0 to n - 1 in random order."""
    made = kiln_random.randperm(n, generator).cast(_dtype(dtype) or dtypes.int64)
    return _with_out(out, finish(made, device))


def rand_like(input: Any, *, dtype: Any = None, device: Any = None, generator: Any = None,
              layout: Any = None, requires_grad: bool = False, memory_format: Any = None) -> Any:
    """Draws uniform numbers with another tensor's shape, dtype and device."""
    x = convert(input)
    return _like(x, rand(*x.shape, dtype=dtype or x.dtype, generator=generator), device,
                 requires_grad)


def randn_like(input: Any, *, dtype: Any = None, device: Any = None, generator: Any = None,
               layout: Any = None, requires_grad: bool = False, memory_format: Any = None) -> Any:
    """Draws from the normal distribution with another tensor's shape, dtype and device."""
    x = convert(input)
    return _like(x, randn(*x.shape, dtype=dtype or x.dtype, generator=generator), device,
                 requires_grad)


def randint_like(input: Any, low: int, high: Any = None, *, dtype: Any = None, device: Any = None,
                 layout: Any = None, requires_grad: bool = False,
                 memory_format: Any = None) -> Any:
    """Draws integers with another tensor's shape, dtype and device."""
    x = convert(input)
    if high is None:
        low, high = 0, low
    return _like(x, randint(low, high, tuple(x.shape), dtype=dtype or x.dtype), device,
                 requires_grad)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None,
           out: Any = None, dtype: Any = None, device: Any = None,
           requires_grad: bool = False) -> Any:
    """Draws from normal distributions; mean and std are numbers or tensors."""
    if size is None:
        shaped = [convert(part) for part in (mean, std) if isinstance(part, KilnTensor)]
        shape = np.broadcast_shapes(*[tuple(part.shape) for part in shaped])
    else:
        shape = tuple(size)
    drawn = randn(*shape, dtype=dtype, device=device, generator=generator)
    if isinstance(std, KilnTensor):
        drawn = required(drawn, convert(std) < 0, "normal", "std must not be negative")
    else:
        _check("normal", "std", std, std >= 0, "not be negative")
    return _with_out(out, finish(drawn * std + mean, None, requires_grad))


def _check(name: str, argument: str, value: Any, holds: bool, must: str) -> None:
    if not holds:
        raise InvalidArgument(f"{name}: {argument} is {value}; it must {must}")


def bernoulli(input: Any, p: Any = None, *, generator: Any = None, out: Any = None) -> Any:
    """Draws 1 with the probability that each element gives, else 0."""
    x = convert(input)
    drawn = rand(*x.shape, generator=generator)
    chance = x if p is None else convert(p)
    drawn = required(drawn, ~((chance >= 0) & (chance <= 1)), "bernoulli",
                     "probabilities must be in [0, 1]")
    return _with_out(out, (drawn < chance)._cast(x.dtype))


def multinomial(input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None,
                out: Any = None) -> Any:
    """Draws classes from each row of weights."""
    weights = convert(input)
    if not weights.dtype.is_float or weights.ndim not in (1, 2) or num_samples < 1:
        raise InvalidArgument(
            f"multinomial draws {num_samples} of {weights.dtype.name} of shape "
            f"{tuple(weights.shape)}; it draws at least one of a vector or rows of floats")
    refused = ~((weights >= 0) & (weights < math.inf)).all(-1) | (weights.sum(-1) <= 0)
    drawn = kiln_random.multinomial(weights, num_samples, replacement, generator)
    return _with_out(out, required(drawn, refused, "multinomial", (
        "probabilities must be finite and not negative, and a row must not be all 0")))


def poisson(input: Any, generator: Any = None) -> Any:
    """Draws from Poisson distributions; for rates up to some hundreds, by counting arrivals."""
    x = convert(input)
    limit = int(x.max().item()) if x.numel() else 0
    count = limit + 10 * math.isqrt(limit) + 30
    waits = -(1 - rand(count, *x.shape, generator=generator)).log()
    return (waits.cumsum(0) <= x).sum(0)._cast(x.dtype)


def binomial(count: Any, prob: Any, generator: Any = None) -> Any:
    """Draws from binomial distributions, by counting draws."""
    n, p = convert(count), convert(prob)
    most = max(int(n.max().item()), 0) if n.numel() else 0
    shape = np.broadcast_shapes(tuple(n.shape), tuple(p.shape))
    hits = rand(most, *shape, generator=generator) < p
    rows = arange(most).reshape(-1, *[1] * len(shape)) < n
    return (hits & rows).sum(0)._cast(p.dtype)


def manual_seed(seed: int) -> KilnGenerator:
    """Seeds the generator that all random functions use by default; returns it."""
    return kiln_random.manual_seed(int(seed) % (1 << 64))


def seed() -> int:
    """Seeds the default generator from the operating system; returns the seed."""
    made = KilnGenerator()
    manual_seed(made.seed)
    return made.seed


def initial_seed() -> int:
    """Returns the seed of the default generator."""
    return int(default_generator.seed)


def get_rng_state() -> Any:
    """Returns the state of the default generator."""
    return state_of(default_generator)


def set_rng_state(new_state: Any) -> None:
    """Restores a state of the default generator."""
    restore(default_generator, new_state)


# Methods.


def _into(self: Any, drawn: Any) -> Any:
    return self.copy_(drawn) if not self._requires_grad else self.assign(
        adopt(drawn)._cast(self.dtype))


def normal_(self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Draws its elements from a normal distribution. Returns self."""
    _check("normal_", "std", std, std >= 0, "not be negative")
    return _into(self, randn(*self.shape, generator=generator) * std + mean)


def uniform_(self: Any, a: float = 0.0, b: float = 1.0, *, generator: Any = None,
             **named: float) -> Any:
    """Draws its elements uniformly from [a, b). Returns self."""
    low, high = named.get("from", a), named.get("to", b)
    _check("uniform_", "from", low, low <= high, f"not be above to, {high}")
    return _into(self, rand(*self.shape, generator=generator) * (high - low) + low)


def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Draws its elements: 1 with probability p, else 0. Returns self."""
    if not isinstance(p, KilnTensor):
        _check("bernoulli_", "p", p, 0 <= p <= 1, "be in [0, 1]")
    return _into(self, (rand(*self.shape, generator=generator) < p).float())


def exponential_(self: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Draws its elements from an exponential distribution. Returns self."""
    _check("exponential_", "lambd", lambd, lambd > 0, "be above 0")
    return _into(self, -(1 - rand(*self.shape, generator=generator)).log() / lambd)


def log_normal_(self: Any, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
    """Draws its elements from a log-normal distribution. Returns self."""
    _check("log_normal_", "std", std, std > 0, "be above 0")
    return _into(self, (randn(*self.shape, generator=generator) * std + mean).exp())


def cauchy_(self: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    """Draws its elements from a Cauchy distribution. Returns self."""
    _check("cauchy_", "sigma", sigma, sigma > 0, "be above 0")
    drawn = rand(*self.shape, generator=generator)
    return _into(self, (math.pi * (drawn - 0.5)).tan() * sigma + median)


def geometric_(self: Any, p: float, *, generator: Any = None) -> Any:
    """Draws its elements from a geometric distribution. Returns self."""
    _check("geometric_", "p", p, 0 < p < 1, "be above 0 and below 1")
    drawn = 1 - rand(*self.shape, generator=generator)
    return _into(self, (drawn.log() / math.log1p(-p)).ceil().clamp(min=1))


def random_(self: Any, *bounds: Any, generator: Any = None, **named: Any) -> Any:
    """Draws its elements from the integers [low, high), or [0, high). Returns self."""
    if len(bounds) == 2 or "from" in named:
        low, high = (*bounds, named.get("from"), named.get("to"))[:2] if bounds else (
            named["from"], named["to"])
    else:
        low = 0
        high = bounds[0] if bounds else named.get("to")
    if high is None:
        high = 1 << 24 if self.dtype.is_float else min(
            1 << 32, 1 << (8 * self.dtype.itemsize - int(self.dtype.is_signed)))
    return _into(self, randint(low, high, tuple(self.shape), generator=generator))


def _new(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, dtype: Any = None, device: Any = None,
               requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
               **named: Any) -> Any:
        made = make(*args, dtype=dtype or self.dtype, **named)
        return _like(self, made, device, requires_grad)

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = "Returns a new tensor in this tensor's dtype and on its device."
    return method


METHODS: Dict[str, Callable[..., Any]] = {
    "new_zeros": _new("new_zeros", zeros), "new_ones": _new("new_ones", ones),
    "new_empty": _new("new_empty", empty), "new_full": _new("new_full", full),
    "new_tensor": _new("new_tensor", tensor),
    "new_empty_strided": _new("new_empty_strided", empty_strided),
    "new": _new("new", lambda *args, **options: tensor(*args, **options) if args and not (
        isinstance(args[0], int)) else empty(*args, **options)),
    "multinomial": multinomial, "bernoulli": bernoulli,
}  # fmt: skip
METHODS.update({method.__name__: method for method in (
    normal_, uniform_, bernoulli_, exponential_, log_normal_, cauchy_, geometric_, random_)})
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)


class _LegacyType(type):
    """The type of torch.FloatTensor and so on: they make tensors and recognize them."""

    _of_dtype: DType

    def __call__(cls, *data: Any, device: Any = None) -> Any:
        value = data[0] if len(data) == 1 else data
        if data and all(isinstance(size, int) for size in data):
            return zeros(*data, dtype=cls._of_dtype)
        if not data:
            value = []
        return adopt(KilnTensor(from_python(value), cls._of_dtype))

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls._of_dtype


LEGACY: Dict[str, Any] = {
    name: _LegacyType(name, (), {"_of_dtype": dtype, "__doc__": f"Tensors of {dtype.name}."})
    for name, dtype in _defaults.CLASSES.items()}
