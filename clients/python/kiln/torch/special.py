"""torch.special: special functions, under their names there."""

from typing import Any

from kiln.torch._functions import FUNCTIONS
from kiln.torch._pointwise import polygamma, xlog1py
from kiln.torch._tensor import convert

digamma = psi = FUNCTIONS["digamma"]
erf, erfc, erfinv = FUNCTIONS["erf"], FUNCTIONS["erfc"], FUNCTIONS["erfinv"]
exp2, expm1, log1p = FUNCTIONS["exp2"], FUNCTIONS["expm1"], FUNCTIONS["log1p"]
gammaln, i0, logit = FUNCTIONS["lgamma"], FUNCTIONS["i0"], FUNCTIONS["logit"]
logsumexp, round = FUNCTIONS["logsumexp"], FUNCTIONS["round"]
multigammaln, sinc, xlogy = FUNCTIONS["mvlgamma"], FUNCTIONS["sinc"], FUNCTIONS["xlogy"]


def expit(input: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return convert(input).sigmoid()


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """exp(x), scaled to sum to 1 along `dim`."""
    return convert(input).softmax(dim, dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of softmax."""
    return convert(input).log_softmax(dim, dtype)


def entr(input: Any) -> Any:
    """-x * log(x); 0 at 0 and -inf below."""
    x = convert(input)
    inside = -x * x.where(x > 0, 1.0).log()
    return inside.where(x >= 0, -float("inf")).where(~x.isnan(), float("nan"))


def ndtr(input: Any) -> Any:
    """The cumulative distribution function of the normal distribution."""
    return (convert(input) * -(0.5 ** 0.5)).erfc() / 2


__all__ = [
    "digamma", "entr", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "log1p",
    "log_softmax", "logit", "logsumexp", "multigammaln", "ndtr", "polygamma", "psi", "round",
    "sinc", "softmax", "xlog1py", "xlogy",
]  # fmt: skip
