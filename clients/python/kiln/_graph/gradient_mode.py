"""Whether results record their expression, so that gradients flow through them."""

import functools
from types import TracebackType
from typing import Any, Callable, List, Optional, Type

from kiln._graph.node import mode


class GradientMode:
    """Sets the mode of the current thread; a context manager and a decorator."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._before: List[bool] = []

    def __enter__(self) -> "GradientMode":
        self._before.append(mode.gradients)
        mode.gradients = self._wanted
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        mode.gradients = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with GradientMode(self._wanted):
                return function(*args, **kwargs)

        return wrapped


def no_grad() -> GradientMode:
    """Turns recording off: no gradient flows through results made inside.

    A context manager and a decorator.

    >>> x = kiln.ones(2, requires_grad=True)
    >>> with kiln.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """
    return GradientMode(False)


def enable_grad() -> GradientMode:
    """Turns recording on, also within no_grad().

    >>> with kiln.no_grad(), kiln.enable_grad():
    ...     kiln.is_grad_enabled()
    True
    """
    return GradientMode(True)


def is_grad_enabled() -> bool:
    """Returns whether gradients flow through results made here.

    >>> kiln.is_grad_enabled()
    True
    """
    return mode.gradients
