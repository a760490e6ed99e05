"""torch.nn.init: initial values of Parameters."""

from typing import Any, Callable, Tuple

from kiln.nn import init as _init
from kiln.nn.init import calculate_gain
from kiln.torch._tensor import Tensor


def _calculate_fan_in_and_fan_out(tensor: Any) -> Tuple[int, int]:
    """Returns the sizes of a weight's input and output."""
    return _init.fans(tensor)


def _filling(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function, which takes a generator as well."""

    def fill(tensor: Any, *args: Any, generator: Any = None, **kwargs: Any) -> Any:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{function.__name__} of {type(tensor).__name__}; give a tensor")
        return function(tensor, *args, **kwargs)

    fill.__name__ = fill.__qualname__ = function.__name__
    fill.__doc__ = (function.__doc__ or "").partition("\n\n    >>>")[0]
    return fill


constant_, zeros_, ones_ = (
    _filling(_init.constant_), _filling(_init.zeros_), _filling(_init.ones_))
eye_, dirac_, sparse_ = _filling(_init.eye_), _filling(_init.dirac_), _filling(_init.sparse_)
uniform_, normal_ = _filling(_init.uniform_), _filling(_init.normal_)
trunc_normal_, orthogonal_ = _filling(_init.trunc_normal_), _filling(_init.orthogonal_)
xavier_uniform_, xavier_normal_ = _filling(_init.xavier_uniform_), _filling(_init.xavier_normal_)
kaiming_uniform_, kaiming_normal_ = (
    _filling(_init.kaiming_uniform_), _filling(_init.kaiming_normal_))

# Older names.
constant, eye, dirac, sparse = constant_, eye_, dirac_, sparse_
uniform, normal, orthogonal = uniform_, normal_, orthogonal_
xavier_uniform, xavier_normal = xavier_uniform_, xavier_normal_
kaiming_uniform, kaiming_normal = kaiming_uniform_, kaiming_normal_

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal",
    "kaiming_normal_", "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_",
    "orthogonal", "orthogonal_", "sparse", "sparse_", "trunc_normal_", "uniform", "uniform_",
    "xavier_normal", "xavier_normal_", "xavier_uniform", "xavier_uniform_", "zeros_",
]  # fmt: skip
