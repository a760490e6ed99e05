"""torch.utils.checkpoint: functions whose activations are computed again for the gradient."""

from typing import Any, Sequence


def checkpoint(function: Any, *args: Any, use_reentrant: Any = None, **kwargs: Any) -> Any:
    """Calls the function: the daemon chooses what to keep and what to compute again."""
    kwargs.pop("preserve_rng_state", None)
    return function(*args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, **_: Any) -> Any:
    """Applies functions one after the other."""
    layers: Sequence[Any] = list(functions)
    for layer in layers:
        input = layer(input)
    return input


__all__ = ["checkpoint", "checkpoint_sequential"]
