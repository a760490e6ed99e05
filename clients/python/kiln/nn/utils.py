"""Operations on gradients and parameters between backward() and step()."""

import functools
import math
from typing import Callable, Iterable, List, Tuple, Union

from kiln._array_api.creation import zeros
from kiln._array_api.manipulation import cat
from kiln._basics.dtypes import float64
from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import no_grad
from kiln._tensor.device_transfer import beside
from kiln.nn.weight_norm import remove_weight_norm, weight_norm
from kiln.tensor import Tensor

Tensors = Union[Tensor, Iterable[Tensor]]


def _with_gradients(parameters: Tensors) -> List[Tuple[Tensor, Tensor]]:
    """Returns the parameters that have a gradient, and their gradients."""
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [(parameter, parameter.grad) for parameter in given if parameter.grad is not None]


def _reduced(combine: Callable[[Tensor, Tensor], Tensor], values: List[Tensor]) -> Tensor:
    return functools.reduce(lambda total, value: combine(total, beside(value, total)), values)


def _norm(tensors: List[Tensor], norm_type: float) -> Tensor:
    """Returns the norm of all elements together, float32. No power overflows or underflows: squares
    of shorter floats are float64, and other powers are taken relative to the largest element.
    """
    if norm_type == 2 and all(tensor.dtype is not float64 for tensor in tensors):
        squares = [tensor.double().square().sum() for tensor in tensors]
        return _reduced(Tensor.add, squares).sqrt().float()
    tensors = [x if x.dtype is float64 else x.float() for x in tensors]
    largest = _reduced(Tensor.maximum, [tensor.abs().max() for tensor in tensors])
    if norm_type == math.inf:
        return largest.float()
    scale = largest.where((largest > 0) & largest.isfinite(), 1.0)
    powers = [((tensor / beside(scale, tensor)).abs() ** norm_type).sum()
              for tensor in tensors]
    return (_reduced(Tensor.add, powers) ** (1.0 / norm_type) * scale).float()


def clip_grad_norm_(parameters: Tensors, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scales all gradients so that their common norm is at most max_norm.

    Returns the norm before scaling, a float32 scalar; nothing is read, so it works inside kiln.jit.
    norm_type may be math.inf; it must be above 0, or InvalidArgument is raised. (Pascanu et al.,
    2013.)

    >>> weight = kiln.nn.Parameter([3.0, 4.0])
    >>> (weight.square().sum() / 2).backward()
    >>> kiln.nn.utils.clip_grad_norm_([weight], 1.0).item()
    5.0
    >>> [round(x, 3) for x in weight.grad.tolist()]
    [0.6, 0.8]
    """
    if not norm_type > 0:
        raise InvalidArgument(f"a norm of type {norm_type}; it must be above 0")
    found = _with_gradients(parameters)
    with no_grad():
        if not found:
            return zeros(())
        total = _norm([gradient for _, gradient in found], norm_type)
        # The 1e-6 is PyTorch's, and prevents a division by a norm of 0.
        share = (max_norm / (total + 1e-6)).minimum(1.0)
        for parameter, gradient in found:
            parameter.grad = gradient * beside(share, gradient).cast(gradient.dtype)
    return total


def clip_grad_value_(parameters: Tensors, clip_value: float) -> None:
    """Limits each element of the gradients to [-clip_value, clip_value].

    >>> w = kiln.ones(2, requires_grad=True)
    >>> (w * 5).sum().backward()
    >>> kiln.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad.tolist()
    [1.0, 1.0]
    """
    with no_grad():
        for parameter, gradient in _with_gradients(parameters):
            parameter.grad = gradient.clamp(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenates all elements of the parameters to a vector.

    >>> kiln.nn.utils.parameters_to_vector([kiln.ones(2), kiln.zeros(1, 1)]).tolist()
    [1.0, 1.0, 0.0]
    """
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vector: Tensor, parameters: Iterable[Tensor]) -> None:
    """Sets parameters to consecutive parts of a vector.

    Raises InvalidArgument if the vector has more elements than the parameters.

    >>> w = kiln.zeros(2)
    >>> kiln.nn.utils.vector_to_parameters(kiln.tensor([1.0, 2.0]), [w])
    >>> w.tolist()
    [1.0, 2.0]
    """
    place = 0
    for parameter in parameters:
        part = vector.narrow(0, place, parameter.numel()).reshape(parameter.shape)
        parameter.assign(part.detach())
        place += parameter.numel()
    if place != vector.numel():
        raise InvalidArgument(f"a vector of {vector.numel()} for {place} elements")


__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "remove_weight_norm",
    "vector_to_parameters", "weight_norm",
]  # fmt: skip
