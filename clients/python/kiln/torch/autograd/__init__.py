"""torch.autograd: gradients."""

from typing import Any, List, Optional, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import enable_grad, no_grad
from kiln.torch import _creation, _shaping
from kiln.torch._flow import Flow
from kiln.torch._grad import inference_mode, set_grad_enabled
from kiln.torch._tensor import GradientMode, ends_of, hooked
from kiln.torch._tensor import backward as _backward
from kiln.torch.autograd import functional
from kiln.torch.autograd.function import Function
from kiln.torch.autograd.gradcheck import gradcheck, gradgradcheck


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:  # noqa: N802
    """Returns a tensor of data, as before PyTorch 0.4."""
    made = _creation.as_tensor(data)
    return made.requires_grad_() if requires_grad else made


def _listed(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: Optional[bool] = None,
             create_graph: bool = False, grad_variables: Any = None, inputs: Any = None) -> None:
    """Adds the gradients of several tensors to the grad of every leaf."""
    _backward(_with_seeds(tensors, grad_tensors), create_graph, inputs)


def _with_seeds(outputs: Any, grad_outputs: Any) -> List[Tuple[Any, Any]]:
    ends = _listed(outputs)
    seeds = [None] * len(ends) if grad_outputs is None else _listed(grad_outputs)
    if len(seeds) != len(ends):
        raise InvalidArgument(f"{len(seeds)} gradients for {len(ends)} outputs")
    return list(zip(ends, seeds))


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Optional[bool] = None,
         create_graph: bool = False, only_inputs: bool = True,
         allow_unused: Optional[bool] = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> Tuple[Any, ...]:
    """Returns the gradients of outputs with respect to inputs, summed over the outputs."""
    pairs, starts = _with_seeds(outputs, grad_outputs), _listed(inputs)
    if is_grads_batched:
        rows = [grad([end for end, _ in pairs], starts, [seed[i] for _, seed in pairs], None,
                     create_graph, True, allow_unused, False, materialize_grads)
                for i in range(len(pairs[0][1]))]
        return tuple(None if parts[0] is None else _shaping.stack(parts) for parts in zip(*rows))
    found: List[Any] = []
    ends = ends_of(pairs)
    with GradientMode(create_graph):
        flow = Flow(ends)
        for place, start in enumerate(starts):
            slope = hooked(start, flow.slope(start._node))
            if slope is None and materialize_grads:
                slope = _creation.zeros_like(start)
            elif slope is None and not allow_unused:
                raise InvalidArgument(
                    f"no output depends on input {place}, of shape {tuple(start.shape)}; give an "
                    "input that requires a gradient and that the outputs were computed from, or "
                    "allow_unused=True for None in its place")
            found.append(slope)
    return tuple(found)


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
    "Function", "Variable", "backward", "detect_anomaly", "enable_grad", "functional", "grad",
    "gradcheck", "gradgradcheck", "inference_mode", "no_grad", "set_detect_anomaly",
    "set_grad_enabled",
]  # fmt: skip
