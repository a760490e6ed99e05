"""torch.autograd.functional: derivatives of functions of one tensor or a tuple of them."""

from typing import Any, Callable, List, Tuple

from kiln._graph.gradient_mode import enable_grad
from kiln.torch._derivatives import Call, flatten, pushed
from kiln.torch._derivatives import jacobian as _jacobian
from kiln.torch._flow import End, Flow


def _call(func: Callable[..., Any], inputs: Any) -> Tuple[Call, Callable[[List[Any]], Any]]:
    """Returns a call, and what makes a result of a value for each input."""
    several = isinstance(inputs, (tuple, list))
    args = tuple(inputs) if several else (inputs,)
    return Call(func, range(len(args)), args, {}), (
        (lambda parts: tuple(parts)) if several else lambda parts: parts[0])


def _finished(call: Call, part: Any, create_graph: bool) -> Any:
    return call.settled(part) if create_graph else part.detach()


def _output(call: Call, create_graph: bool) -> Any:
    return call.build_output([_finished(call, part, create_graph) for part in call.outputs])


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Any:
    """Returns a function's result, and the product of v with its Jacobian."""
    call, build = _call(func, inputs)
    seeds = [None] * len(call.outputs) if v is None else flatten(v)[0]
    return _output(call, create_graph), build(
        [_finished(call, slope, create_graph) for slope in call.slopes(seeds)])


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Any:
    """Returns a function's result, and the product of its Jacobian with v."""
    call, _ = _call(func, inputs)
    tangents = [1.0] * len(call.inputs) if v is None else flatten(v)[0]
    return _output(call, create_graph), call.build_output(
        [_finished(call, part, create_graph) for part in pushed(call, tangents)])


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False,
             strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:
    """Returns the Jacobian: of the result's shape and the input's, for each result and input.

    >>> torch.autograd.functional.jacobian(lambda x: x ** 2, torch.ones(2)).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    call, build = _call(func, inputs)
    return call.build_output([build([_finished(call, part, create_graph) for part in row])
                              for row in _jacobian(call)])


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False,
            strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """Returns the second derivatives of a function whose result is a scalar."""

    def slopes(*args: Any) -> Any:
        found = jacobian(func, args, create_graph=True)
        return found if isinstance(inputs, (tuple, list)) else found[0]

    return jacobian(slopes, inputs, create_graph)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Any:
    """Returns a function's result, and the product of v with its second derivatives."""
    call, build = _call(func, inputs)
    given = [1.0] * len(call.inputs) if v is None else flatten(v)[0]
    with enable_grad():
        total: Any = 0
        for slope, direction in zip(call.slopes([None]), given):
            total = total + (slope * direction).sum()
        flow = Flow([End(total._node, None)] if total.requires_grad else [])
        found = [flow.slope(variable._node) for variable in call.inputs]
    return _output(call, create_graph), build([
        variable.detach() * 0 if slope is None else _finished(call, slope, create_graph)
        for slope, variable in zip(found, call.inputs)])


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Any:
    """Returns a function's result, and the product of its second derivatives with v."""
    return vhp(func, inputs, v, create_graph, strict)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
