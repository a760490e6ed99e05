"""Gradients: requests in the graph. The daemon differentiates."""

import functools
from types import TracebackType
from typing import Any, Callable, List, Optional, Sequence, Tuple, Type, Union

from kiln._errors import InvalidArgument
from kiln._node import Node, make, mode
from kiln.tensor import Tensor, wrap


class _GradientMode:
    """A context manager and a decorator."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._before: List[bool] = []

    def __enter__(self) -> "_GradientMode":
        self._before.append(mode.gradients)
        mode.gradients = self._wanted
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        mode.gradients = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with _GradientMode(self._wanted):
                return function(*args, **kwargs)

        return wrapped


def no_grad() -> _GradientMode:
    """Inside, results do not remember how they came about: no gradient flows through them.

    A context manager and a decorator.

    >>> x = kiln.ones(2, requires_grad=True)
    >>> with kiln.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """
    return _GradientMode(False)


def enable_grad() -> _GradientMode:
    """Inside, gradients flow, whatever no_grad() says outside.

    >>> with kiln.no_grad(), kiln.enable_grad():
    ...     kiln.is_grad_enabled()
    True
    """
    return _GradientMode(True)


def is_grad_enabled() -> bool:
    """Whether gradients flow here.

    >>> kiln.is_grad_enabled()
    True
    """
    return mode.gradients


def _check_output(output: Tensor, upstream: Optional[Tensor]) -> None:
    if not output.requires_grad:
        raise InvalidArgument(
            "backward() of a tensor that no gradient flows through: nothing under it has "
            "requires_grad, or it was made in no_grad() or detached")
    if upstream is None and output.shape:
        raise InvalidArgument(
            f"backward() of a tensor of shape {output.shape}; reduce it to a scalar (sum, mean) or "
            "give backward() a gradient of this shape")


def leaves(root: Node) -> List[Tuple[Node, Any]]:
    """The leaves under a node that want a gradient, with their tensors."""
    found = []
    seen = {root}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.leaf is not None:
            tensor = node.leaf()
            if tensor is not None and tensor._requires_grad:
                found.append((node, tensor))
            continue
        for operand in node.operands:
            if operand.tracked and operand not in seen:
                seen.add(operand)
                stack.append(operand)
    found.reverse()
    return found


def _request(y: Node, x: Node, upstream: Optional[Tensor]) -> Node:
    operands = (y, x) if upstream is None else (y, x, upstream._node)
    return make("gradient", operands)


def backward(output: Tensor, upstream: Optional[Tensor] = None) -> None:
    """Adds d output / d leaf to the grad of every leaf. Lazy."""
    _check_output(output, upstream)
    with no_grad():
        for node, tensor in leaves(output._node):
            gradient = wrap(_request(output._node, node, upstream))
            before = tensor._grad
            tensor._grad = gradient if before is None else before + gradient
    _recent_outputs.append(output)


class _Recent:
    """The last output that backward() was called on, so that an eager step computes it too."""

    def __init__(self) -> None:
        self._reference: Any = None

    def append(self, output: Tensor) -> None:
        import weakref

        self._reference = weakref.ref(output)

    def take(self) -> List[Tensor]:
        """The output, if it is still alive."""
        output = self._reference() if self._reference is not None else None
        self._reference = None
        return [] if output is None else [output]


_recent_outputs = _Recent()


def gradients(output: Tensor, inputs: Sequence[Tensor],
              upstream: Optional[Tensor] = None) -> List[Tensor]:
    """d output / d input for each of the inputs, as PyTorch's autograd.grad.

    >>> x = kiln.tensor([1.0, 2.0], requires_grad=True)
    >>> [slope.tolist() for slope in kiln.autograd.gradients((x * x).sum(), [x])]
    [[2.0, 4.0]]
    """
    _check_output(output, upstream)
    return [wrap(_request(output._node, tensor._node, upstream)) for tensor in inputs]


Argnums = Union[int, Sequence[int]]


def value_and_grad(function: Callable[..., Tensor], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns (value, gradient) of a scalar function.

    `argnums` are the positions of the arguments that vary, floats; gradients have their shapes.
    Raises InvalidArgument if the function gives no scalar.

    >>> value, slope = kiln.value_and_grad(lambda x: (x * x).sum())(kiln.tensor([1.0, 2.0]))
    >>> value.item(), slope.tolist()
    (5.0, [2.0, 4.0])
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        with enable_grad():
            for position, number in enumerate(numbers):
                repeated = sum(args[other] is args[number] for other in numbers[:position])
                given[number] = _variable(args[number], repeated)
            value = function(*given, **kwargs)
            if not isinstance(value, Tensor) or value.shape:
                raise InvalidArgument("kiln.grad needs a function that returns a scalar tensor")
            found = [wrap(_request(value._node, given[number]._node, None)) for number in numbers]
        return value, found[0] if isinstance(argnums, int) else tuple(found)

    return wrapped


def _variable(argument: Any, repeated: int) -> Tensor:
    """A variable of its own for an argument, whatever else reads the same tensor.

    `repeated` tells arguments apart that are one tensor, since equal nodes become one.
    """
    tensor = argument if isinstance(argument, Tensor) else Tensor(argument)
    if not tensor.dtype.is_float:
        raise InvalidArgument(f"only floats have gradients; this argument is {tensor.dtype.name}")
    # A detached node is a variable; where an outer gradient flows on, an own copy is one.
    name = "contiguous" if tensor._node.tracked else "detach"
    node = tensor._node
    for _ in range(repeated + 1):
        node = make(name, (node,))
    node.tracked = True
    return wrap(node)


def grad(function: Callable[..., Tensor], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the gradient of a scalar function; may be nested.

    >>> slope = kiln.grad(lambda x: x**3)
    >>> slope(kiln.tensor(2.0)).item(), kiln.grad(slope)(kiln.tensor(2.0)).item()
    (12.0, 12.0)
    """
    with_value = value_and_grad(function, argnums)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return with_value(*args, **kwargs)[1]

    return wrapped


__all__ = [
    "backward", "enable_grad", "grad", "gradients", "is_grad_enabled", "no_grad",
    "value_and_grad",
]
