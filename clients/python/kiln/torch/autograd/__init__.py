"""torch.autograd: gradients."""

from typing import Any, List, Optional, Tuple

from kiln import autograd as _autograd
from kiln._graph.gradient_mode import enable_grad, no_grad
from kiln.torch import _creation
from kiln.torch._grad import inference_mode, set_grad_enabled
from kiln.torch._tensor import backward as _backward


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:  # noqa: N802
    """Returns a tensor of data, as before PyTorch 0.4."""
    made = _creation.as_tensor(data)
    return made.requires_grad_() if requires_grad else made


def _listed(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: Optional[bool] = None,
             create_graph: bool = False, grad_variables: Any = None, inputs: Any = None) -> None:
    """Adds the gradients of several tensors to the grad of every leaf."""
    ends = _listed(tensors)
    seeds = [None] * len(ends) if grad_tensors is None else _listed(grad_tensors)
    for end, seed in zip(ends, seeds):
        _backward(end, seed, create_graph, inputs)


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Optional[bool] = None,
         create_graph: bool = False, only_inputs: bool = True,
         allow_unused: Optional[bool] = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> Tuple[Any, ...]:
    """Returns the gradients of outputs with respect to inputs, summed over the outputs."""
    ends, starts = _listed(outputs), _listed(inputs)
    seeds = [None] * len(ends) if grad_outputs is None else _listed(grad_outputs)
    seeds = [_creation.ones_like(end) if seed is None and end.ndim and end.numel() == 1 else seed
             for end, seed in zip(ends, seeds)]
    found = _autograd.grad(ends, starts, seeds, retain_graph, create_graph,
                           bool(allow_unused) or materialize_grads)
    if not materialize_grads:
        return tuple(found)
    return tuple(_creation.zeros_like(start) if slope is None else slope
                 for slope, start in zip(found, starts))


class detect_anomaly:  # noqa: N801
    """A context without effect: errors name the line that made a node anyway."""

    def __init__(self, check_nan: bool = True) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


def set_detect_anomaly(mode: bool, check_nan: bool = True) -> None:
    """Does nothing: errors name the line that made a node anyway."""


__all__ = [
    "Variable", "backward", "detect_anomaly", "enable_grad", "grad", "inference_mode", "no_grad",
    "set_detect_anomaly", "set_grad_enabled",
]
