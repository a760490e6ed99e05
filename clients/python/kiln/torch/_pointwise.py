"""Functions of single elements that Kiln lacks, or that PyTorch defines otherwise."""

import math
from typing import Any, Callable, Optional

import numpy as np

from kiln._array_api.elementwise import numbers, special
from kiln._basics import conversion, dtypes
from kiln._basics.errors import InvalidArgument
from kiln.tensor import Tensor as KilnTensor
from kiln.torch._dialect import kind
from kiln.torch._scalars import as_rows
from kiln.torch._tensor import Tensor, adopt, convert


def _float(x: Any) -> Any:
    """Returns x as floats."""
    x = convert(x)
    return x if x.dtype.is_float else x._cast(dtypes.float32)


def _full(x: Any, value: Any) -> Any:
    """Returns a tensor of x's shape and dtype filled with a number."""
    return x * 0 + value if not x.dtype.is_float else (x == x).where(x == x, True)._cast(
        x.dtype) * 0 + value


def _host(function: Callable[..., Any], *tensors: Any) -> Any:
    """Computes a NumPy function of values; no gradient flows through the result."""
    given = [convert(tensor) for tensor in tensors]
    if any(tensor.requires_grad for tensor in given):
        raise InvalidArgument(f"the gradient of {function.__name__}; detach() its argument")
    array = np.asarray(function(*[tensor.numpy() for tensor in given]))
    dtype = given[0].dtype
    return adopt(KilnTensor(array, dtype if array.dtype.kind in "fiu" else None))


def logit(input: Any, eps: Optional[float] = None) -> Any:
    """log(x / (1 - x)), with x limited to [eps, 1 - eps] if eps is given."""
    x = _float(input)
    if eps is not None:
        x = KilnTensor.clamp(x, eps, 1 - eps)
    given = x.detach()
    result = given.log() - (1 - given).log() if x.dtype is dtypes.float64 else (
        given / (1 - given)).log()
    # The rule of the quotient would give 0 / 0 at 0 and 1.
    return result._op("with_derivative", x, 1 / (x * (1 - x)))


def xlogy(input: Any, other: Any) -> Any:
    """x * log(y); 0 where x is 0, unless y is NaN."""
    if not isinstance(input, KilnTensor):
        input = convert(other) * 0 + input
    y = _float(other) if isinstance(other, KilnTensor) else convert(float(other))
    product = input * y.where(_counts(input, y), 1.0).log()
    return product.where(y == y, math.nan)


def xlog1py(input: Any, other: Any) -> Any:
    """x * log(1 + y); 0 where x is 0, unless y is NaN."""
    y = _float(other) if isinstance(other, KilnTensor) else convert(float(other))
    if not isinstance(input, KilnTensor):
        input = y * 0 + input
    return (input * y.where(_counts(input, y + 1), 0.0).log1p()).where(y == y, math.nan)


def _counts(input: Any, y: Any) -> Any:
    """Returns where input * log(y) is the value, and log(y) the derivative by input."""
    return (input != 0) | ((y > 0) & (y < math.inf))


def sinc(input: Any) -> Any:
    """sin(pi x) / (pi x); 1 at 0."""
    x = _float(input) * math.pi
    safe = x.where(x != 0, 1.0)
    return (safe.sin() / safe).where(x != 0, 1.0)


def rad2deg(input: Any) -> Any:
    """Converts radians to degrees."""
    return _float(input) * (180 / math.pi)


def deg2rad(input: Any) -> Any:
    """Converts degrees to radians."""
    return _float(input) * (math.pi / 180)


def heaviside(input: Any, values: Any) -> Any:
    """0 below 0, 1 above it, and `values` at 0."""
    x = convert(input)
    ones = (x > 0)._cast(x.dtype)
    return convert(values).expand(ones.shape).where(x == 0, ones)


def fmax(input: Any, other: Any) -> Any:
    """Returns the larger of two; the other one if one is NaN."""
    x, y = convert(input), convert(other)
    larger = x.maximum(y)
    return x.where(y.isnan(), y.where(x.isnan(), larger))


def fmin(input: Any, other: Any) -> Any:
    """Returns the smaller of two; the other one if one is NaN."""
    x, y = convert(input), convert(other)
    smaller = x.minimum(y)
    return x.where(y.isnan(), y.where(x.isnan(), smaller))


def float_power(input: Any, exponent: Any) -> Any:
    """Raises to a power in float64."""
    return convert(input).double() ** (
        exponent.double() if isinstance(exponent, KilnTensor) else float(exponent))


def ldexp(input: Any, other: Any) -> Any:
    """x * 2 to the power of other."""
    return convert(input) * _float(other).exp2()


def frexp(input: Any) -> Any:
    """Returns the mantissa in [0.5, 1) and the exponent of 2, as int32."""
    x = _float(input)
    usable = (x != 0) & x.isfinite()
    size = x.abs().where(usable, 1.0)
    power = size.log2().floor() + 1
    mantissa = size / power.exp2()
    # The logarithm is rounded: next to a power of 2 it may be one off.
    power = (power + 1).where(mantissa >= 1, (power - 1).where(mantissa < 0.5, power))
    mantissa = (size / power.exp2()) * x.sign()
    return Frexp(mantissa.where(usable, x),
                 power.where(usable, 0.0)._cast(dtypes.BY_NAME["int32"]))


class Frexp(tuple):  # type: ignore[type-arg]
    """The result of frexp: (mantissa, exponent)."""

    def __new__(cls, mantissa: Any, exponent: Any) -> "Frexp":
        return super().__new__(cls, (mantissa, exponent))

    mantissa = property(lambda self: self[0])
    exponent = property(lambda self: self[1])


def sgn(input: Any) -> Any:
    """-1, 0 or 1."""
    return convert(input).sign()


def sign(input: Any) -> Any:
    """-1, 0 or 1; a bool's is itself."""
    x = convert(input)
    return x.clone() if x.dtype is dtypes.bool_ else KilnTensor.sign(x)


def isposinf(input: Any) -> Any:
    """Returns whether it is infinite and above 0."""
    return convert(input) == math.inf if convert(input).dtype.is_float else convert(input).isinf()


def isneginf(input: Any) -> Any:
    """Returns whether it is infinite and below 0."""
    return convert(input) == -math.inf if convert(input).dtype.is_float else convert(input).isinf()


def isreal(input: Any) -> Any:
    """Returns true everywhere: there are no complex dtypes."""
    x = convert(input)
    return (x == x) | (x != x)


def angle(input: Any) -> Any:
    """pi below 0, NaN of NaN, else 0."""
    x = _float(input)
    return (x * 0 + math.pi).where(x < 0, x.where(x.isnan(), 0.0 * x.where(x.isfinite(), 0.0)))


def conj(input: Any) -> Any:
    """Returns the tensor itself: it is real."""
    return convert(input)


def round(input: Any, *, decimals: int = 0) -> Any:
    """Rounds to that many decimals; ties to even."""
    x = convert(input)
    if not decimals:
        return KilnTensor.round(x)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return KilnTensor.round(x * scale) / scale
    return KilnTensor.round(x / scale) * scale


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """other - alpha * input."""
    return other - convert(input) * alpha


def nan_to_num(input: Any, nan: float = 0.0, posinf: Optional[float] = None,
               neginf: Optional[float] = None) -> Any:
    """Replaces NaN and infinities by numbers."""
    return numbers.nan_to_num(convert(input), nan, posinf, neginf)


def mvlgamma(input: Any, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p."""
    x = _float(input)
    total = x * 0 + math.log(math.pi) * p * (p - 1) / 4
    for i in range(p):
        total = total + (x - i / 2).lgamma()
    return total


def polygamma(n: Any, input: Any = None) -> Any:
    """The n-th derivative of digamma, for x above 0."""
    if isinstance(n, KilnTensor):
        n, input = input, n
    x = _float(input)
    if n == 0:
        return x.digamma()
    # The recurrence up to x + 8, and the asymptotic series there. (Abramowitz, Stegun, 6.4.)
    sign = (-1) ** (n + 1)
    factorial = float(math.factorial(n))
    wide = x.double()
    total = wide * 0
    for i in range(10):
        total = total + factorial * (wide + i) ** float(-(n + 1))
    far = wide + 10
    series = math.factorial(n - 1) * far ** float(-n) + factorial / 2 * far ** float(-(n + 1))
    for k, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66), 1):
        series = series + bernoulli * math.factorial(2 * k + n - 1) / math.factorial(
            2 * k) * far ** float(-(2 * k + n))
    return (sign * (total + series))._cast(x.dtype)


def gcd(input: Any, other: Any) -> Any:
    """The greatest common divisor, computed by NumPy in this process."""
    return _host(np.gcd, input, other)


def lcm(input: Any, other: Any) -> Any:
    """The least common multiple, computed by NumPy in this process."""
    return _host(np.lcm, input, other)


def i0(input: Any) -> Any:
    """The modified Bessel function of the first kind of order 0, computed by NumPy."""
    return _host(np.i0, _float(input))


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Limits the values to [min, max]; integers with a float bound become floats."""
    x = convert(input)
    if min is None and max is None:
        raise InvalidArgument("clamp without min and max; give at least one")
    bounds = [convert(bound) if isinstance(bound, KilnTensor) else bound for bound in (min, max)]
    if kind(x.dtype) < 2 and any(isinstance(bound, float) for bound in bounds):
        x = x._cast(dtypes.float32)
    if x.dtype is dtypes.bool_:
        x = x._cast(dtypes.int64)
    if x.dtype.is_integer:
        bounds = _needed(bounds, x.dtype)
        if bounds == [None, None]:
            return x.clone()
    if not any(part.requires_grad for part in (x, *bounds) if isinstance(part, KilnTensor)):
        return KilnTensor.clamp(x, *bounds)
    if any(isinstance(bound, KilnTensor) for bound in bounds):
        return _clamped_by_tensors(x, *bounds)
    # As in PyTorch, a bound itself gets no gradient, and neither does NaN.
    least, most = bounds
    inside = x < most if least is None else x > least if most is None else (x > least) & (x < most)
    return x.where(inside, KilnTensor.clamp(x.detach(), *bounds))


def _clamped_by_tensors(x: Any, least: Any, most: Any) -> Any:
    """Returns x limited; elements that equal a bound share the gradient with it."""
    if most is None:
        return x.maximum(least)
    if least is None:
        return x.minimum(most)
    least, most = (convert(bound, x.dtype) for bound in (least, most))
    result = x.maximum(least).minimum(most)
    result = least.where((least == most) & (x < least), result)
    return x.where(x.isnan() | ((x == least) & (x == most)), result)


def clamp_min(input: Any, min: Any) -> Any:
    """Limits the values to at least `min`."""
    return clamp(input, min)


def clamp_max(input: Any, max: Any) -> Any:
    """Limits the values to at most `max`."""
    return clamp(input, None, max)


def _needed(bounds: Any, dtype: Any) -> Any:
    """Returns [min, max] without those that limit no number of an integer dtype."""
    low, high = conversion.integer_range(dtype)
    for bound, name in zip(bounds, ("min", "max")):
        if isinstance(bound, int) and (bound > high if name == "min" else bound < low):
            raise InvalidArgument(f"clamp: {name} {bound} is not a value of {dtype.name}")
    least, most = bounds
    return [None if isinstance(least, int) and least < low else least,
            None if isinstance(most, int) and most > high else most]


def square(input: Any) -> Any:
    """x * x."""
    return KilnTensor.square(convert(input))


def copysign(input: Any, other: Any) -> Any:
    """Returns the magnitude of input with the sign of other."""
    return numbers.copysign(_float(input), other if isinstance(other, KilnTensor) else (
        convert(float(other))))


def erfinv(input: Any) -> Any:
    """The inverse of erf."""
    return special.erfinv(_float(input))


@as_rows
def softmax(input: Any, dim: Optional[int] = None, dtype: Any = None) -> Any:
    """exp(x), scaled to sum to 1 along `dim`."""
    x = convert(input, dtype)
    return KilnTensor.softmax(x, _usual_dim(x) if dim is None else dim)


@as_rows
def log_softmax(input: Any, dim: Optional[int] = None, dtype: Any = None) -> Any:
    """The logarithm of softmax."""
    x = convert(input, dtype)
    return KilnTensor.log_softmax(x, _usual_dim(x) if dim is None else dim)


def _usual_dim(x: Any) -> int:
    return 0 if x.ndim in (0, 1, 3) else 1


def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """x; 0 where |x| <= lambd."""
    return convert(input)._op("hardshrink", lambd=float(lambd))


def prelu(input: Any, weight: Any) -> Any:
    """x above 0, weight * x elsewhere."""
    return convert(input)._op("prelu", weight)


def lerp(input: Any, end: Any, weight: Any) -> Any:
    """input + weight * (end - input)."""
    x = convert(input)
    return x + (convert(end) - x) * weight


# Functions that are methods of Tensor as well.
METHODS = (
    logit, xlogy, sinc, rad2deg, deg2rad, heaviside, fmax, fmin, float_power, ldexp, frexp, sgn,
    sign, isposinf, isneginf, isreal, angle, conj, round, nan_to_num, mvlgamma, gcd, lcm, i0, clamp,
    clamp_min, clamp_max, square, copysign, erfinv, softmax, log_softmax, hardshrink, prelu, lerp,
)  # fmt: skip
FUNCTIONS = (rsub, polygamma, xlog1py)

for _function in METHODS:
    setattr(Tensor, _function.__name__, _function)

# Other names of methods.
ALIASES = {
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "conj_physical": "conj",
    "resolve_conj": "conj", "resolve_neg": "conj", "adjoint": "mT", "fix": "trunc",
}  # fmt: skip
for _alias, _name in ALIASES.items():
    if _name != "mT":
        setattr(Tensor, _alias, getattr(Tensor, _name))


def polygamma_method(self: Any, n: int) -> Any:
    """The n-th derivative of digamma, for x above 0."""
    return polygamma(n, self)


Tensor.polygamma = polygamma_method  # type: ignore[attr-defined]
