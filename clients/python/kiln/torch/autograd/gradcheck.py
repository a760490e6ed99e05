"""torch.autograd.gradcheck: compares gradients with differences."""

from typing import Any, Callable, List

import numpy as np

from kiln.torch._derivatives import Call, flatten, jacobian
from kiln.torch._tensor import Tensor, convert


class GradcheckError(RuntimeError):
    """A gradient differs from the difference quotient."""


def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5,
              rtol: float = 1e-3, raise_exception: bool = True, **_: Any) -> bool:
    """Returns whether gradients are those of differences; use float64 inputs.

    Raises GradcheckError, unless raise_exception is False, if they are not.
    """
    args = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    numbers = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and arg.requires_grad]
    call = Call(func, numbers, args, {})
    slopes = [[part.detach().numpy() for part in row] for row in jacobian(call)]
    for number, place in enumerate(numbers):
        for output, row in enumerate(slopes):
            expected = _differences(func, args, place, output, eps)
            if not np.allclose(row[number], expected.reshape(row[number].shape), rtol, atol):
                if not raise_exception:
                    return False
                raise GradcheckError(
                    f"the Jacobian of output {output} with respect to input {place} is\n"
                    f"{row[number]}\nand differences give\n"
                    f"{expected.reshape(row[number].shape)}")
    return True


def _differences(func: Callable[..., Any], args: List[Any], place: int, output: int,
                 eps: float) -> Any:
    """Returns central differences, a column for each element of the argument."""
    start = args[place].detach().numpy()
    columns = []
    for index in np.ndindex(start.shape):
        ends = []
        for step in (eps, -eps):
            moved = start.copy()
            moved[index] += step
            given = [arg.detach() if isinstance(arg, Tensor) else arg for arg in args]
            given[place] = convert(moved, args[place].dtype)
            ends.append(flatten(func(*given))[0][output].detach().numpy())
        columns.append((ends[0] - ends[1]) / (2 * eps))
    return np.stack(columns, -1) if columns else np.zeros(0)


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *,
                  eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  raise_exception: bool = True, **_: Any) -> bool:
    """Returns whether gradients of gradients are those of differences."""
    args = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    numbers = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and arg.requires_grad]

    def slopes(*given: Any) -> Any:
        call = Call(func, numbers, given, {})
        seeds = [None] * len(call.outputs) if grad_outputs is None else flatten(grad_outputs)[0]
        if grad_outputs is None:
            seeds = [convert(np.cos(np.arange(part.numel()).reshape(part.shape)), part.dtype)
                     for part in call.outputs]
        return tuple(call.slopes(seeds))

    return gradcheck(slopes, args, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
