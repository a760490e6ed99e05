"""Gradients: requests in the graph, which the daemon differentiates."""

import functools
from typing import Any, Callable, List, Optional, Sequence, Set, Tuple, Union, overload

from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import GradientMode, enable_grad, is_grad_enabled, no_grad
from kiln._graph.node import Node, calls, make, mode
from kiln._tensor.gradients import backward, check_flow, check_output, request
from kiln.tensor import Tensor, wrap


def gradients(output: Tensor, inputs: Sequence[Tensor],
              upstream: Optional[Tensor] = None) -> List[Tensor]:
    """Returns d output / d input for each input; zeros if output does not depend on it.

    `upstream` is the gradient of the output, of its shape; without it the output must be a scalar.

    >>> x = kiln.tensor([1.0, 2.0], requires_grad=True)
    >>> [slope.tolist() for slope in kiln.autograd.gradients((x * x).sum(), [x])]
    [[2.0, 4.0]]
    """
    check_output(output, upstream)
    return [wrap(request(output._node, tensor._node, upstream)) for tensor in inputs]


Argnums = Union[int, Sequence[int]]
Tensors = Union[Tensor, Sequence[Tensor]]


def value_and_grad(function: Callable[..., Tensor], argnums: Argnums = 0) -> Callable[..., Any]:
    """Returns a function that returns (value, gradient) of a scalar function.

    `argnums` are the positions of the arguments to differentiate, which are floats; gradients have
    their shapes. With an int the gradient is a tensor, else a tuple. The function raises
    InvalidArgument if `function` does not return a scalar tensor, or if an argument is not a float.

    >>> value, slope = kiln.value_and_grad(lambda x: (x * x).sum())(kiln.tensor([1.0, 2.0]))
    >>> value.item(), slope.tolist()
    (5.0, [2.0, 4.0])
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    # Kept short, since kiln.jit watches everything that a given function names.
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, found = _value_and_gradients(function, numbers, args, kwargs)
        return value, found[0] if isinstance(argnums, int) else tuple(found)

    return wrapped


def _value_and_gradients(function: Callable[..., Tensor], numbers: Sequence[int],
                         args: Sequence[Any], kwargs: Any) -> Tuple[Tensor, List[Tensor]]:
    given = list(args)
    before = next(calls)
    with enable_grad():
        for number in numbers:
            given[number] = _variable(args[number])
        value = function(*given, **kwargs)
        if not isinstance(value, Tensor) or value.shape:
            raise InvalidArgument("kiln.grad needs a function that returns a scalar tensor")
        check_flow(value, before)
        found = [wrap(request(value._node, given[number]._node, None)) for number in numbers]
    if mode.gradients:
        return value, found
    return value.detach(), [gradient.detach() for gradient in found]


def _variable(argument: Any) -> Tensor:
    """Returns a separate variable for an argument, even if others read the same tensor."""
    tensor = argument if isinstance(argument, Tensor) else Tensor(argument)
    if not tensor.dtype.is_float:
        raise InvalidArgument(f"only floats have gradients; this argument is {tensor.dtype.name}")
    # A detached node can be the variable itself; if an outer gradient must flow on, a copy is.
    node = make("contiguous" if tensor._node.tracked else "detach", (tensor._node,))
    node.tracked = node.variable = True
    return wrap(node)


@overload
def grad(outputs: Callable[..., Tensor], inputs: Optional[Argnums] = None, *,
         argnums: Argnums = 0) -> Callable[..., Any]: ...


@overload
def grad(outputs: Tensors, inputs: Tensors, grad_outputs: Any = None,
         retain_graph: Optional[bool] = None, create_graph: bool = False,
         allow_unused: bool = False) -> Tuple[Optional[Tensor], ...]: ...


def grad(outputs: Any, inputs: Any = None, grad_outputs: Any = None,
         retain_graph: Optional[bool] = None, create_graph: bool = False,
         allow_unused: bool = False, *, argnums: Argnums = 0) -> Any:
    """Returns the gradient of a scalar function, as JAX's grad, or of tensors, as PyTorch's grad.

    grad(function, argnums) returns a function that returns the gradient; it can be nested.

    grad(outputs, inputs, grad_outputs) returns a tuple of d outputs / d input for each input,
    summed over the outputs, which are scalars or have a gradient each in `grad_outputs`. Gradients
    flow through the result only with `create_graph`. For an input that no output depends on it
    raises InvalidArgument or, with `allow_unused`, returns None. `retain_graph` is ignored: a graph
    can always be differentiated again.

    >>> slope = kiln.grad(lambda x: x**3)
    >>> slope(kiln.tensor(2.0)).item(), kiln.grad(slope)(kiln.tensor(2.0)).item()
    (12.0, 12.0)
    >>> x = kiln.tensor(2.0, requires_grad=True)
    >>> (slope,) = kiln.autograd.grad(x**3, x, create_graph=True)
    >>> slope.item(), kiln.autograd.grad(slope, x)[0].item()
    (12.0, 12.0)
    """
    if callable(outputs):
        return _gradient_of(outputs, argnums if inputs is None else inputs)
    ends, starts = _listed(outputs), _listed(inputs)
    seeds = [None] * len(ends) if grad_outputs is None else _listed(grad_outputs)
    if len(seeds) != len(ends):
        raise InvalidArgument(f"{len(seeds)} grad_outputs for {len(ends)} outputs")
    for output, seed in zip(ends, seeds):
        check_output(output, seed)
    under = [_under(output._node) for output in ends]
    with GradientMode(create_graph):
        return tuple([
            _sum_of_gradients(position, tensor, [
                (output, seed) for output, seed, nodes in zip(ends, seeds, under)
                if tensor._node in nodes], allow_unused)
            for position, tensor in enumerate(starts)])


def _gradient_of(function: Callable[..., Tensor], argnums: Argnums) -> Callable[..., Any]:
    with_value = value_and_grad(function, argnums)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return with_value(*args, **kwargs)[1]

    return wrapped


def _listed(tensors: Any) -> List[Any]:
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def _under(root: Node) -> Set[Node]:
    """Returns a node and all nodes that its gradient can flow to."""
    found = {root}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.op != "detach":
            new = [operand for operand in node.operands if operand not in found]
            found.update(new)
            stack.extend(new)
    return found


def _sum_of_gradients(position: int, tensor: Tensor, ends: Sequence[Tuple[Tensor, Any]],
                      allow_unused: bool) -> Optional[Tensor]:
    if not ends:
        if allow_unused:
            return None
        raise InvalidArgument(
            f"no output depends on input {position}, of shape {tensor.shape}; give an input that "
            "the outputs were computed from, or allow_unused=True for None in its place")
    found = [wrap(request(output._node, tensor._node, seed)) for output, seed in ends]
    return functools.reduce(lambda one, other: one + other, found)


__all__ = [
    "backward", "enable_grad", "grad", "gradients", "is_grad_enabled", "no_grad",
    "value_and_grad",
]
