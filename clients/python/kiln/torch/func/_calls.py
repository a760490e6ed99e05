"""Calls of modules with other state."""

from typing import Any, Dict, Optional, Sequence, Tuple

from kiln.torch import _shaping
from kiln.torch.nn.utils import stateless


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None,
                    kwargs: Optional[Dict[str, Any]] = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """Calls a module with these tensors, a dict or several, in place of its own ones."""
    given: Dict[str, Any] = {}
    for part in (parameter_and_buffer_dicts,) if isinstance(parameter_and_buffer_dicts, dict) else (
            parameter_and_buffer_dicts):
        given.update(part)
    return stateless.functional_call(module, given, args, kwargs, tie_weights=tie_weights,
                                     strict=strict)


def stack_module_state(models: Sequence[Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Returns the Parameters and the buffers of modules of one kind, stacked, for vmap()."""
    found = []
    for named in ("named_parameters", "named_buffers"):
        states = [dict(getattr(model, named)()) for model in models]
        stacked = {name: _shaping.stack([state[name].detach() for state in states])
                   for name in states[0]}
        found.append({name: tensor.requires_grad_(states[0][name].requires_grad)
                      for name, tensor in stacked.items()})
    return found[0], found[1]


__all__ = ["functional_call", "stack_module_state"]
