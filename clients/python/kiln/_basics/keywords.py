"""Alternative names of keyword arguments, as in other libraries."""

import functools
from typing import Any, Callable, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def also(**names: str) -> Callable[[Function], Function]:
    """Lets a function take keywords by other names as well: also(axis="dim")."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                for name, own in names.items():
                    if name in kwargs:
                        kwargs[own] = kwargs.pop(name)
            return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    return decorate


# Methods use PyTorch's names and accept NumPy's; functions of the array API do the reverse.
numpy_names = also(axis="dim", keepdims="keepdim")
torch_names = also(dim="axis", keepdim="keepdims")
