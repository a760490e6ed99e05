"""Modes of gradients, as contexts, decorators and functions."""

import functools
from typing import Any, Callable

from kiln._graph.gradient_mode import enable_grad, is_grad_enabled, no_grad
from kiln._graph.node import mode


class set_grad_enabled:  # noqa: N801
    """Switches gradients on or off: at once, within a context, or in a decorated function."""

    def __init__(self, mode_wanted: bool) -> None:
        self._before = mode.gradients
        self._wanted = bool(mode_wanted)
        mode.gradients = self._wanted

    def __enter__(self) -> None:
        mode.gradients = self._wanted

    def __exit__(self, *_: Any) -> None:
        mode.gradients = self._before

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function, which runs in this mode."""
        wanted = self._wanted
        mode.gradients = self._before

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with set_grad_enabled(wanted):
                return function(*args, **kwargs)

        return wrapped


class inference_mode:  # noqa: N801
    """As no_grad(): a context and a decorator, with or without brackets."""

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):
            return no_grad()(mode)
        return super().__new__(cls)

    def __init__(self, mode: Any = True) -> None:
        self._inner: Any = no_grad() if mode else enable_grad()
        self._wanted = bool(mode)

    def __enter__(self) -> None:
        self._inner.__enter__()

    def __exit__(self, *details: Any) -> None:
        self._inner.__exit__(*details)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function, which runs in this mode."""
        return self._inner(function)  # type: ignore[no-any-return]


def is_inference_mode_enabled() -> bool:
    """Returns whether gradients are off."""
    return not is_grad_enabled()
