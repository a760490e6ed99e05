"""torch.func: functions that differentiate, vectorize and call functions."""

from typing import Any, Callable, List, Sequence, Tuple, Union

from kiln._basics.errors import InvalidArgument
from kiln.torch import _shaping
from kiln.torch._derivatives import Call, flatten, jacobian, pushed
from kiln.torch._tensor import Tensor
from kiln.torch.func._calls import functional_call, stack_module_state

Argnums = Union[int, Sequence[int]]


def _numbers(argnums: Argnums) -> Tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def _chosen(argnums: Argnums, parts: Sequence[Any]) -> Any:
    return parts[0] if isinstance(argnums, int) else tuple(parts)


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0,
                   has_aux: bool = False) -> Callable[..., Any]:
    """Returns a function that returns (gradient, value) of a function whose result is a scalar.

    >>> slope, value = torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.0))
    >>> slope.item(), value.item()
    (6.0, 9.0)
    """

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call = Call(func, _numbers(argnums), args, kwargs, has_aux)
        if len(call.outputs) != 1 or not isinstance(call.outputs[0], Tensor) or (
                call.outputs[0].ndim):
            raise InvalidArgument("grad needs a function that returns a tensor without dimensions")
        slopes = [call.settled(slope) for slope in call.slopes([None])]
        found = _chosen(argnums, call.arguments(slopes))
        return (found, (call.output(), call.aux)) if has_aux else (found, call.output())

    return wrapped


def grad(func: Callable[..., Any], argnums: Argnums = 0,
         has_aux: bool = False) -> Callable[..., Any]:
    """Returns a function that returns the gradient of a function whose result is a scalar.

    >>> torch.func.grad(torch.func.grad(lambda x: x ** 3))(torch.tensor(2.0)).item()
    12.0
    """
    with_value = grad_and_value(func, argnums, has_aux)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        slope, value = with_value(*args, **kwargs)
        return (slope, value[1]) if has_aux else slope

    return wrapped


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Returns a function's result, and a function that returns gradients, given the result's."""
    call = Call(func, range(len(primals)), primals, {}, has_aux)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool = True) -> Any:
        seeds, _ = flatten(cotangents)
        slopes = [call.settled(slope) for slope in call.slopes(seeds)]
        return tuple(call.arguments(slopes))

    return (call.output(), pull, call.aux) if has_aux else (call.output(), pull)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
        has_aux: bool = False) -> Any:
    """Returns a function's result, and its derivative along tangents of the arguments."""
    call = Call(func, range(len(primals)), primals, {}, has_aux)
    given, _ = flatten(tangents)
    found = call.build_output([call.settled(part) for part in pushed(call, given)])
    return (call.output(), found, call.aux) if has_aux else (call.output(), found)


def linearize(func: Callable[..., Any], *primals: Any) -> Any:
    """Returns a function's result, and the function of tangents that jvp() would return."""
    return (jvp(func, primals, tuple(primals))[0],
            lambda *tangents: jvp(func, primals, tangents)[1])


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           chunk_size: Any = None, _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """Returns a function that returns the Jacobian: of the result's shape and the argument's.

    >>> torch.func.jacrev(torch.sin)(torch.zeros(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call = Call(func, _numbers(argnums), args, kwargs, has_aux)
        rows = [_chosen(argnums, call.arguments([call.settled(part) for part in row]))
                for row in jacobian(call)]
        found = call.build_output(rows)
        return (found, call.aux) if has_aux else found

    return wrapped


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:
    """Returns a function that returns the Jacobian. As jacrev: there is no forward mode."""
    return jacrev(func, argnums, has_aux)


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Returns a function that returns the matrix of second derivatives.

    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.ones(2)).tolist()
    [[6.0, 0.0], [0.0, 6.0]]
    """
    return jacfwd(jacrev(func, argnums), argnums)


def vmap(func: Any, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: Any = None) -> Callable[..., Any]:
    """Returns a function that applies `func` to each entry along a dimension, and stacks.

    The graph has a part for each entry.

    >>> torch.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2)).tolist()
    [2.0, 2.0, 2.0]
    """

    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, build = flatten(args)
        dims = _dims_of(in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args),
                        args)
        sizes = {leaf.shape[dim] for leaf, dim in zip(leaves, dims) if dim is not None}
        if len(sizes) != 1:
            raise InvalidArgument(f"vmap over dimensions of sizes {sorted(sizes)}; they must be "
                                  "equal, and there must be one")
        results = [
            func(*build([leaf if dim is None else leaf.select(dim, i)
                         for leaf, dim in zip(leaves, dims)]), **kwargs)
            for i in range(sizes.pop())]
        parts = [flatten(result) for result in results]
        wanted = _dims_of(out_dims, results[0])
        return parts[0][1]([
            rows[0] if dim is None else _shaping.stack([*rows], dim)
            for dim, rows in zip(wanted, zip(*[part for part, _ in parts]))])

    return mapped


def _dims_of(dims: Any, tree: Any) -> List[Any]:
    """Returns a dimension for each leaf of a tree; `dims` may be nested as it is, or less."""
    if dims is None or isinstance(dims, int):
        return [dims if isinstance(leaf, Tensor) else None for leaf in flatten(tree)[0]]
    parts = tree.values() if isinstance(tree, dict) else tree
    given = [dims[key] for key in tree] if isinstance(dims, dict) else list(dims)
    if len(given) != len(parts):
        raise InvalidArgument(f"{len(given)} dimensions for {len(parts)} values")
    return [dim for one, part in zip(given, parts) for dim in _dims_of(one, part)]


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Returns the function itself: graphs have no changes in place."""
    return func


__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev",
    "jvp", "linearize", "stack_module_state", "vjp", "vmap",
]
