"""Hooks: functions that a module calls before and after its forward(), as in PyTorch."""

from types import MappingProxyType
from typing import Any, Callable, Dict, Mapping

Hook = Callable[..., Any]


class RemovableHandle:
    """Returned by register_forward_hook(); remove() removes the hook."""

    def __init__(self, hooks: Dict[int, Hook], number: int) -> None:
        self._hooks = hooks
        self._number = number

    def remove(self) -> None:
        """Removes the hook. May be called again."""
        self._hooks.pop(self._number, None)


class Hooks:
    """The part of a module that manages its hooks."""

    # Replaced by the instance's own dict when the first hook is registered.
    _forward_hooks: Mapping[int, Hook] = MappingProxyType({})
    _forward_pre_hooks: Mapping[int, Hook] = MappingProxyType({})

    def register_forward_hook(self, hook: Hook) -> RemovableHandle:
        """Registers hook(module, arguments, result), called after forward().

        If it does not return None, that becomes the result. Within kiln.jit the hook is traced as
        well, and so must not change Python state.

        >>> layer = kiln.nn.Linear(2, 3)
        >>> handle = layer.register_forward_hook(lambda module, arguments, result: result > 9)
        >>> layer(kiln.zeros(1, 2)).tolist()
        [[False, False, False]]
        >>> handle.remove()
        """
        return self._register("_forward_hooks", hook)

    def register_forward_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Registers hook(module, arguments), called before forward().

        If it does not return None, that replaces the positional arguments: a tuple of them, or the
        only one.

        >>> layer = kiln.nn.ReLU()
        >>> handle = layer.register_forward_pre_hook(lambda module, arguments: -arguments[0])
        >>> layer(kiln.tensor([1.0, -2.0])).tolist()
        [0.0, 2.0]
        """
        return self._register("_forward_pre_hooks", hook)

    def _register(self, kind: str, hook: Hook) -> RemovableHandle:
        hooks: Dict[int, Hook] = vars(self).setdefault(kind, {})
        number = max(hooks, default=-1) + 1
        hooks[number] = hook
        return RemovableHandle(hooks, number)

    def _call_with_hooks(self, forward: Hook, args: Any, kwargs: Any) -> Any:
        for hook in list(self._forward_pre_hooks.values()):
            given = hook(self, args)
            if given is not None:
                args = given if isinstance(given, tuple) else (given,)
        result = forward(*args, **kwargs)
        for hook in list(self._forward_hooks.values()):
            instead = hook(self, args, result)
            result = result if instead is None else instead
        return result
