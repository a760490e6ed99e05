"""Gradients: requests in the graph. The daemon differentiates."""

import functools
from typing import Any, Callable, List, Optional, Sequence, Set, Tuple, Union, overload

from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import GradientMode, enable_grad, is_grad_enabled, no_grad
from kiln._graph.node import Node, calls, make, mode
from kiln._tensor.gradients import backward, check_flow, check_output, request
from kiln.tensor import Tensor, wrap


def gradients(output: Tensor, inputs: Sequence[Tensor],
              upstream: Optional[Tensor] = None) -> List[Tensor]:
    """d output / d input for each of the inputs; zeros where output does not depend on one.

    >>> x = kiln.tensor([1.0, 2.0], requires_grad=True)
    >>> [slope.tolist() for slope in kiln.autograd.gradients((x * x).sum(), [x])]
    [[2.0, 4.0]]
    """
    check_output(output, upstream)
    return [wrap(request(output._node, tensor._node, upstream)) for tensor in inputs]


Argnums = Union[int, Sequence[int]]
Tensors = Union[Tensor, Sequence[Tensor]]


def value_and_grad(function: Callable[..., Tensor], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns (value, gradient) of a scalar function.

    `argnums` are the positions of the arguments to differentiate, which are floats; gradients have
    their shapes.
    Raises InvalidArgument if the function gives no scalar.

    >>> value, slope = kiln.value_and_grad(lambda x: (x * x).sum())(kiln.tensor([1.0, 2.0]))
    >>> value.item(), slope.tolist()
    (5.0, [2.0, 4.0])
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    # Short, since kiln.jit watches everything that a function it is given names.
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
    """A variable of its own for an argument, whatever else reads the same tensor."""
    tensor = argument if isinstance(argument, Tensor) else Tensor(argument)
    if not tensor.dtype.is_float:
        raise InvalidArgument(f"only floats have gradients; this argument is {tensor.dtype.name}")
    # A detached node can be the variable itself; where an outer gradient must flow on, a copy is.
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
    """The gradient of a scalar function, as JAX's grad, or of tensors, as PyTorch's.

    grad(function, argnums) is a function that returns the gradient; may be nested.

    grad(outputs, inputs, grad_outputs) is the tuple of d outputs / d input for each of the inputs,
    summed over the outputs, which are scalars or come with a gradient each. Gradients flow through
    it only with `create_graph`. An input that no output depends on is an InvalidArgument, or None
    with `allow_unused`. Nothing needs `retain_graph`: a graph can be differentiated again.

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
    """A node and all that its gradient can flow to."""
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
