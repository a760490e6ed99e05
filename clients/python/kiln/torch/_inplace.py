"""The methods whose names end with an underscore: they change the tensor itself."""

from typing import Any, Callable

from kiln.tensor import Tensor as KilnTensor
from kiln.torch._size import words
from kiln.torch._tensor import Tensor

_NAMES = words(
    "abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr arccos arccosh arcsin "
    "arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh baddbmm bitwise_and "
    "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp "
    "clamp_max clamp_min clip conj_physical copysign cos cosh cumprod cumsum deg2rad digamma div "
    "divide eq erf erfc erfinv exp exp2 expm1 fix float_power floor floor_divide fmod frac gcd ge "
    "greater greater_equal gt heaviside hypot i0 index_add index_copy index_fill index_put "
    "index_reduce lcm ldexp le lerp less less_equal lgamma log log10 log1p log2 logical_and "
    "logical_not logical_or logical_xor logit lt masked_fill masked_scatter mul multiply mvlgamma "
    "nan_to_num ne neg negative nextafter not_equal polygamma pow put rad2deg reciprocal relu "
    "remainder renorm round rsqrt scatter scatter_add scatter_reduce sgn sigmoid sign sin sinc "
    "sinh sqrt square sub subtract tan tanh tril triu true_divide trunc xlogy"
)
# They change only the shape: the tensor becomes a view of its former self.
_RESHAPING = words("as_strided squeeze unsqueeze t transpose swapaxes swapdims")
_COMPARING = frozenset(words(
    "eq ge greater greater_equal gt le less less_equal lt ne not_equal logical_and logical_not "
    "logical_or logical_xor"))


def _changing(name: str) -> Callable[..., Any]:
    casts = name in _COMPARING or name == "float_power"

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = getattr(self, name)(*args, **kwargs)
        if casts:
            result = KilnTensor.cast(result, self.dtype)
        return self._in_place(result)

    return _named(method, name)


def _reshaping(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        changed = getattr(self, name)(*args, **kwargs)
        self._node = changed._node
        self._share, self._steps, self._seen = changed._share, changed._steps, changed._seen
        if self._share is not None:
            self._share.add(self)
        return self

    return _named(method, name)


def _named(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    method.__name__ = f"{name}_"
    method.__qualname__ = f"Tensor.{name}_"
    method.__doc__ = f"As {name}(), but changes the tensor itself."
    return method


NAMES = tuple(f"{name}_" for name in _NAMES)

for _name in _NAMES:
    setattr(Tensor, f"{_name}_", _changing(_name))
for _name in _RESHAPING:
    setattr(Tensor, f"{_name}_", _reshaping(_name))
