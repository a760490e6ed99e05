"""torch.nn.utils.stateless: modules with other Parameters for one call."""

from typing import Any, Dict, Optional


def functional_call(module: Any, parameters_and_buffers: Any, args: Any = None,
                    kwargs: Optional[Dict[str, Any]] = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """Calls a module with these tensors in place of its own ones of the same names."""
    given = args if isinstance(args, tuple) else () if args is None else (args,)
    before = []
    for name, value in parameters_and_buffers.items():
        path, _, last = name.rpartition(".")
        owner = module.get_submodule(path)
        kind = "_parameters" if last in owner._parameters else "_buffers"
        if last not in vars(owner)[kind]:
            if strict:
                raise RuntimeError(f"Unexpected key(s): {name}.")
            continue
        before.append((vars(owner)[kind], last, vars(owner)[kind][last]))
        vars(owner)[kind][last] = value
    try:
        return module(*given, **(kwargs or {}))
    finally:
        for where, last, value in reversed(before):
            where[last] = value


__all__ = ["functional_call"]
