"""Operators and methods that change the tensor itself, as in PyTorch.

Tensors built from it before keep the old value. Shape and dtype stay: a result that does not fit
raises InvalidArgument, and so does a leaf that requires a gradient outside of kiln.no_grad().
"""

from typing import TYPE_CHECKING, Any, Callable

from kiln._tensor.base import TensorBase
from kiln._tensor.temporaries import refuses_temporaries

if TYPE_CHECKING:
    from kiln.tensor import Tensor


def _changing(name: str) -> Callable[..., Any]:
    """Returns a method that replaces the tensor's value by the result of the method `name`."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._in_place(getattr(self, name)(*args, **kwargs))

    method.__name__ = name + "_"
    method.__qualname__ = f"Tensor.{name}_"
    method.__doc__ = f"As {name}(), but changes the tensor itself."
    return refuses_temporaries(method)


class InPlace(TensorBase):
    """In-place operators and methods, such as `x += 1` and x.add_(1)."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _in_place(self, result: "Tensor") -> "Tensor": ...

    def __iadd__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor + other)

    def __isub__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor - other)

    def __imul__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor * other)

    def __itruediv__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor / other)

    def __ifloordiv__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor // other)

    def __imod__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor % other)

    def __ipow__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor ** other)

    def __iand__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor & other)

    def __ior__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor | other)

    def __ixor__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor ^ other)

    def __ilshift__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor << other)

    def __irshift__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor >> other)

    def __imatmul__(self, other: Any) -> "Tensor":
        return self._in_place(self._tensor._tensor @ other)

    abs_ = _changing("abs")
    absolute_ = _changing("absolute")
    acos_ = _changing("acos")
    add_ = _changing("add")
    addcdiv_ = _changing("addcdiv")
    addcmul_ = _changing("addcmul")
    addmm_ = _changing("addmm")
    asin_ = _changing("asin")
    atan_ = _changing("atan")
    bitwise_and_ = _changing("bitwise_and")
    bitwise_left_shift_ = _changing("bitwise_left_shift")
    bitwise_not_ = _changing("bitwise_not")
    bitwise_or_ = _changing("bitwise_or")
    bitwise_right_shift_ = _changing("bitwise_right_shift")
    bitwise_xor_ = _changing("bitwise_xor")
    ceil_ = _changing("ceil")
    clamp_ = _changing("clamp")
    clamp_max_ = _changing("clamp_max")
    clamp_min_ = _changing("clamp_min")
    clip_ = _changing("clip")
    copysign_ = _changing("copysign")
    cos_ = _changing("cos")
    cosh_ = _changing("cosh")
    cumprod_ = _changing("cumprod")
    cumsum_ = _changing("cumsum")
    div_ = _changing("div")
    divide_ = _changing("divide")
    erf_ = _changing("erf")
    erfc_ = _changing("erfc")
    exp2_ = _changing("exp2")
    exp_ = _changing("exp")
    expm1_ = _changing("expm1")
    fix_ = _changing("fix")
    floor_ = _changing("floor")
    floor_divide_ = _changing("floor_divide")
    fmod_ = _changing("fmod")
    frac_ = _changing("frac")
    hypot_ = _changing("hypot")
    index_add_ = _changing("index_add")
    index_copy_ = _changing("index_copy")
    index_put_ = _changing("index_put")
    index_reduce_ = _changing("index_reduce")
    lerp_ = _changing("lerp")
    log10_ = _changing("log10")
    log1p_ = _changing("log1p")
    log2_ = _changing("log2")
    log_ = _changing("log")
    logical_and_ = _changing("logical_and")
    logical_not_ = _changing("logical_not")
    logical_or_ = _changing("logical_or")
    logical_xor_ = _changing("logical_xor")
    masked_fill_ = _changing("masked_fill")
    mul_ = _changing("mul")
    multiply_ = _changing("multiply")
    neg_ = _changing("neg")
    negative_ = _changing("negative")
    pow_ = _changing("pow")
    reciprocal_ = _changing("reciprocal")
    relu_ = _changing("relu")
    remainder_ = _changing("remainder")
    round_ = _changing("round")
    rsqrt_ = _changing("rsqrt")
    scatter_ = _changing("scatter")
    scatter_add_ = _changing("scatter_add")
    scatter_reduce_ = _changing("scatter_reduce")
    sigmoid_ = _changing("sigmoid")
    sign_ = _changing("sign")
    sin_ = _changing("sin")
    sinh_ = _changing("sinh")
    sqrt_ = _changing("sqrt")
    square_ = _changing("square")
    sub_ = _changing("sub")
    subtract_ = _changing("subtract")
    tan_ = _changing("tan")
    tanh_ = _changing("tanh")
    tril_ = _changing("tril")
    triu_ = _changing("triu")
    true_divide_ = _changing("true_divide")
    trunc_ = _changing("trunc")
