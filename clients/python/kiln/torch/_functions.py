"""The functions of `torch` that are methods of Tensor as well, with `input` and `out`."""

from typing import Any, Callable, Dict

from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _inplace, _pointwise, _products, _reducing, _scalars, _shaping
from kiln.torch._size import words
from kiln.torch._tensor import Tensor, convert

# Methods of Tensor, those of Kiln and those that other modules have attached.
_METHODS = words(
    "abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr adjoint all allclose amax "
    "amin aminmax angle any arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin "
    "argsort argwhere as_strided asin asinh atan atan2 atanh baddbmm bincount bitwise_and "
    "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm ceil cholesky "
    "chunk clamp clamp_max clamp_min clip clone conj conj_physical copysign corrcoef cos cosh "
    "count_nonzero cov cross cummax cummin cumprod cumsum deg2rad det detach diag diag_embed "
    "diagflat diagonal diagonal_scatter diff digamma dist div divide dot dsplit eq equal erf erfc "
    "erfinv exp exp2 expm1 fix flatten flip fliplr flipud float_power floor floor_divide fmax fmin "
    "fmod frac frexp gather gcd ge ger greater greater_equal gt heaviside histc histogram hsplit "
    "hypot i0 index_add index_copy index_fill index_put index_reduce index_select inner inverse "
    "isclose isfinite isinf isnan isneginf isposinf isreal is_complex is_conj is_floating_point "
    "is_inference is_neg is_nonzero is_same_size is_signed is_distributed kron kthvalue lcm ldexp "
    "le lerp less less_equal lgamma log log10 log1p log2 logaddexp logaddexp2 logcumsumexp logdet "
    "logical_and logical_not logical_or logical_xor logit logsumexp lt masked_fill masked_scatter "
    "masked_select matmul matrix_power maximum mean median minimum mm mode moveaxis movedim msort "
    "mul multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow narrow_copy "
    "ne neg negative nextafter nonzero norm not_equal numel outer permute positive pow prod put qr "
    "quantile rad2deg ravel reciprocal remainder renorm repeat_interleave reshape resolve_conj "
    "resolve_neg roll rot90 round rsqrt scatter scatter_add scatter_reduce select select_scatter "
    "sgn sign signbit sin sinc sinh slice_scatter slogdet sort split split_with_sizes sqrt square "
    "squeeze std sub subtract sum swapaxes swapdims t take take_along_dim tan tensor_split tile "
    "topk trace transpose tril triu true_divide trunc unbind unflatten unique unique_consecutive "
    "unsqueeze var vdot vsplit xlogy"
)
# In-place methods that are functions, too.
_CHANGING = words(
    "abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ "
    "asin_ asinh_ "
    "atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ deg2rad_ erf_ erfc_ exp_ "
    "exp2_ expm1_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log_ log10_ log1p_ log2_ "
    "logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ round_ rsqrt_ sigmoid_ sin_ sinc_ "
    "sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ conj_physical_ fill_ zero_ detach_ relu_"
)


def _function(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function of a method: the tensor is its first argument, `input`."""

    def function(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if args:
            result = method(convert(args[0]), *args[1:], **kwargs)
        else:
            result = method(convert(kwargs.pop("input")), **kwargs)
        return result if out is None else into(out, result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (method.__doc__ or f"As Tensor.{name}.").partition("\n\n        >>>")[0]
    function.__module__ = "kiln.torch"
    return function


def into(out: Any, result: Any) -> Any:
    """Sets the tensors given as `out` to the result; returns them."""
    if isinstance(out, (tuple, list)):
        for target, value in zip(out, result):
            into(target, value)
        return out
    if tuple(out.shape) != tuple(result.shape):
        out.resize_(*result.shape)
    return out.copy_(result)


def with_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function with the argument `out`."""

    def wrapped(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result if out is None else into(out, result)

    wrapped.__name__ = wrapped.__qualname__ = function.__name__
    wrapped.__doc__ = function.__doc__
    wrapped.__module__ = "kiln.torch"
    return wrapped


def _extreme(name: str) -> Callable[..., Any]:
    method = getattr(KilnTensor, name)
    along_rows = _scalars.as_rows(method)

    def extreme(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None,
                out: Any = None, axis: Any = None) -> Any:
        along = other if other is not None else dim if axis is None else axis
        if isinstance(along, KilnTensor):
            result = method(convert(input), convert(along), keepdim)
        else:
            result = along_rows(convert(input), along, keepdim)
        return result if out is None else into(out, result)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = (
        f"Returns the {name}imum; along a dim also its index; of two tensors, elementwise.")
    extreme.__module__ = "kiln.torch"
    return extreme


def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8,
            equal_nan: bool = False) -> Any:
    """Returns which elements are close to each other."""
    return KilnTensor.isclose(convert(input), convert(other), rtol, atol, equal_nan)


def is_tensor(obj: Any) -> bool:
    """Returns whether an object is a tensor."""
    return isinstance(obj, KilnTensor)


def is_storage(obj: Any) -> bool:
    """Returns False: tensors have no storages to share."""
    return False


def typename(obj: Any) -> str:
    """Returns the name of an object's type."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}".replace("builtins.", "")


setattr(Tensor, "isclose", isclose)  # noqa: B010
Tensor.max = _extreme("max")  # type: ignore[method-assign]
Tensor.min = _extreme("min")  # type: ignore[method-assign]
for _name in _scalars.NAMES:
    setattr(Tensor, _name, _scalars.as_rows(getattr(Tensor, _name)))

FUNCTIONS: Dict[str, Any] = {
    name: _function(name, getattr(Tensor, name)) for name in (*_METHODS, *_CHANGING)}
for _found in (*_pointwise.FUNCTIONS, *_shaping.FUNCTIONS, *_reducing.FUNCTIONS,
               *_products.FUNCTIONS):
    FUNCTIONS[_found.__name__] = with_out(_found)
FUNCTIONS.update({name: with_out(function) for name, function in _shaping.ALIASES.items()})
FUNCTIONS.update({
    "max": Tensor.max, "min": Tensor.min, "trapz": _reducing.trapezoid, "is_tensor": is_tensor,
    "is_storage": is_storage, "typename": typename, "isclose": isclose,
    "unsafe_chunk": FUNCTIONS["chunk"], "unsafe_split": FUNCTIONS["split"],
    "unsafe_split_with_sizes": FUNCTIONS["split_with_sizes"],
    "fill": FUNCTIONS["fill_"],
})  # fmt: skip
# Copies of views.
for _name in ("as_strided", "detach", "diagonal", "expand", "permute", "select", "split", "t",
              "split_with_sizes", "squeeze", "transpose", "unbind", "unfold", "unsqueeze", "view"):
    _view = getattr(Tensor, _name)

    def _copy(*args: Any, _view: Any = _view, **kwargs: Any) -> Any:
        made = _view(*args, **kwargs)
        return tuple(part.clone() for part in made) if isinstance(made, tuple) else made.clone()

    _copy.__name__ = _copy.__qualname__ = f"{_name}_copy"
    _copy.__doc__ = f"As {_name}(), but always a copy."
    FUNCTIONS[f"{_name}_copy"] = _copy


def fill(input: Any, value: Any) -> Any:
    """Returns a tensor of the same shape filled with a number."""
    return convert(input).detach().clone().fill_(value)


FUNCTIONS["fill"] = fill
for _name in ("unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes"):
    setattr(Tensor, _name, getattr(Tensor, _name[len("unsafe_"):]))
IN_PLACE = _inplace.NAMES
