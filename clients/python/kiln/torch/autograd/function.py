"""torch.autograd.Function: functions with a backward of their own."""

import functools
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import no_grad
from kiln._graph.node import Node, mode
from kiln._tensor.base import wrap
from kiln.torch import _creation, _flow
from kiln.torch._tensor import Tensor, convert


class FunctionCtx:
    """The context that forward() and backward() of one call share; it takes attributes."""

    def __init__(self) -> None:
        self.needs_input_grad: Tuple[bool, ...] = ()
        self.materialize_grads = True
        self._saved: Sequence[Any] = ()
        self._kept: Tuple[Any, ...] = ()
        self._undifferentiable: Tuple[Any, ...] = ()
        self._dirty: Tuple[Any, ...] = ()
        self._function: Optional[_flow.Function] = None  # while its backward() runs

    def save_for_backward(self, *tensors: Any) -> None:
        """Saves inputs, results and other tensors, or None, for backward()."""
        self._saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Does nothing: there is no forward mode."""

    @property
    def saved_tensors(self) -> Tuple[Any, ...]:
        """The saved tensors, with the values that they had at the end of forward()."""
        return tuple([
            wrap(kept) if isinstance(kept, Node) else
            wrap(_again(self._function, kept)) if isinstance(kept, _Result) else kept
            for kept in self._kept])

    saved_variables = saved_tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Makes no gradient flow through these results."""
        self._undifferentiable = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Names the inputs that forward() has changed in place, and returns."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Sets whether backward() gets zeros, not None, for a result that nothing depends on."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing."""

    def _keep(self, results: Dict[int, "_Result"]) -> None:
        """Keeps the saved tensors; `results` has those that are results, by the tensor's id."""
        self._kept = tuple([
            results.get(id(saved), saved._node) if isinstance(saved, Tensor) else saved
            for saved in self._saved])
        self._saved = ()


class _Result(NamedTuple):
    """A result that is saved: not its node, which holds the function, but the value."""

    place: int
    value: Node


def _again(function: Any, result: _Result) -> Node:
    """Returns the node of a result; it is made again if it is no longer used."""
    reference = function.results[result.place]
    node: Optional[Node] = None if reference is None else reference()
    if node is not None:
        return node
    order = function.order
    node = function.result(*result)
    # Its own functions run before it, as they did when it was called.
    function.order = order
    return node


class Function:
    """A function whose derivative is computed by its own backward().

    Subclasses define forward(ctx, *args), or forward(*args) and setup_context(ctx, inputs, output),
    and backward(ctx, *gradients), which returns a gradient or None for each argument. Called as
    apply(*args). Gradients of gradients flow through what backward() computes.

    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, slope):
    ...         return slope * 5
    >>> x = torch.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad.tolist()
    [5.0, 5.0]
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    vjp: Optional[Callable[..., Any]] = None
    generate_vmap_rule = False

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        """Saves what backward() needs, if forward() takes no ctx."""
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls the function. Arguments that are not tensors get no gradient."""
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple(
            isinstance(arg, Tensor) and arg.requires_grad for arg in args)
        wanted = mode.gradients and any(ctx.needs_input_grad)
        inputs = [arg._node if needs else None for arg, needs in zip(args, ctx.needs_input_grad)]
        with no_grad():
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args, **kwargs)
            else:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
        results = list(output) if isinstance(output, (tuple, list)) else [output]
        saved: Dict[int, _Result] = {}
        if wanted:
            results, saved = _made(cls, ctx, args, inputs, results)
        ctx._keep(saved)
        if isinstance(output, (tuple, list)):
            return tuple(results)
        return results[0]


def _made(cls: Any, ctx: FunctionCtx, args: Sequence[Any], inputs: Sequence[Optional[Node]],
          results: List[Any]) -> Tuple[List[Any], Dict[int, _Result]]:
    """Returns the results, through which gradients flow; and as saved, by the tensor's id."""
    shapes = [(tuple(part.shape), part.dtype) if isinstance(part, Tensor) else None
              for part in results]
    sizes = [tuple(arg.shape) if isinstance(arg, Tensor) else () for arg in args]

    count = len(inputs)
    dtypes = [None if node is None else node.dtype for node in inputs]

    def backward(function: _flow.Function, slopes: List[Any]) -> Sequence[Any]:
        if ctx.materialize_grads:
            slopes = [
                _creation.zeros(*like[0], dtype=like[1]) if slope is None and like is not None
                else slope for slope, like in zip(slopes, shapes)]
        ctx._function = function
        try:
            given = cls.backward(ctx, *slopes)
        finally:
            ctx._function = None
        listed = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(listed) < count or any(extra is not None for extra in listed[count:]):
            raise InvalidArgument(
                f"{cls.__name__}.backward returned {len(listed)} gradients; it must return one, or "
                f"None, for each of the {count} arguments of forward")
        return [None if slope is None or dtype is None else _fitted(cls, slope, size, dtype)
                for slope, dtype, size in zip(listed, dtypes, sizes)]

    call = _flow.Function(cls.__name__, inputs, len(results), backward)
    fixed = {id(part) for part in ctx._undifferentiable}
    dirty = {id(part) for part in ctx._dirty}
    saved: Dict[int, _Result] = {}
    made: List[Any] = []
    for place, part in enumerate(results):
        if not isinstance(part, Tensor) or id(part) in fixed or not part.dtype.is_float:
            made.append(part)
            continue
        saved[id(part)] = _Result(place, part._node)
        node = call.result(place, part._node)
        if id(part) in dirty:
            part._node = node
            made.append(part)
        else:
            made.append(wrap(node))
    return made, saved


def _fitted(cls: Any, slope: Any, shape: Tuple[int, ...], dtype: Any) -> Any:
    """Returns a gradient in the shape and the dtype of the input."""
    found = convert(slope)
    if tuple(found.shape) != shape:
        try:
            found = found.sum_to_size(*shape)
        except InvalidArgument:
            raise InvalidArgument(
                f"{cls.__name__}.backward returned a gradient of shape {tuple(found.shape)} for an "
                f"argument of shape {shape}") from None
    return found if found.dtype is dtype else found._cast(dtype)


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a backward through which no gradient flows."""

    @functools.wraps(function)
    def wrapped(ctx: Any, *slopes: Any) -> Any:
        with no_grad():
            given = function(ctx, *slopes)
        if not mode.gradients or not any(
                isinstance(slope, Tensor) and slope.requires_grad for slope in slopes):
            return given
        several = isinstance(given, (tuple, list))
        fixed = [_undifferentiable(part) if isinstance(part, Tensor) else part
                 for part in (given if several else [given])]
        return tuple(fixed) if several else fixed[0]

    return wrapped


def _undifferentiable(tensor: Any) -> Any:
    """Returns a tensor, through which the flow of a gradient is an error."""

    def refuse(*_: Any) -> Any:
        raise InvalidArgument(
            "a second derivative of a function whose backward is marked with @once_differentiable")

    return wrap(_flow.Function("once_differentiable", (), 1, refuse).result(0, tensor._node))


InplaceFunction = Function

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
