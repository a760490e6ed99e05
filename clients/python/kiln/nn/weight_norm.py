"""Splits a layer's weight into a length and a direction. (Salimans and Kingma, 2016.)"""

from typing import Any, Optional

from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import no_grad
from kiln.nn.module import Module
from kiln.nn.parameter import Parameter
from kiln.tensor import Tensor


def _norm(direction: Tensor, dim: Optional[int]) -> Tensor:
    """Returns the norm of each slice along dim, or of the whole tensor if dim is None."""
    axes = tuple(i for i in range(direction.ndim) if dim is None or i != dim % direction.ndim)
    if not axes:
        return direction.abs()
    return direction._op("vector_norm", axes=axes, keepdims=dim is not None, ord=2.0)


def weight_norm(module: Module, name: str = "weight", dim: Optional[int] = 0) -> Module:
    """Makes `module`'s Parameter `name` the direction name_v times the length name_g.

    Returns the module, which has the two as Parameters with the same product as before, and
    computes `name` from them whenever it is read. There is a length for each slice along `dim`, or
    one for all if it is None. The state_dict has PyTorch's names. Raises InvalidArgument if there
    is no such Parameter or dimension.

    >>> layer = kiln.nn.utils.weight_norm(kiln.nn.Linear(3, 2))
    >>> [(name, parameter.shape) for name, parameter in layer.named_parameters()]
    [('bias', (2,)), ('weight_g', (2, 1)), ('weight_v', (2, 3))]
    >>> layer(kiln.ones(1, 3)).shape
    (1, 2)
    """
    weight = vars(module).get(name)
    if not isinstance(weight, Parameter):
        raise InvalidArgument(
            f"weight_norm of {type(module).__name__}.{name}; it must be a Parameter of the module")
    if dim is not None and not -weight.ndim <= dim < weight.ndim:
        raise InvalidArgument(
            f"weight_norm with dim {dim} of a weight of shape {weight.shape}; it must be in "
            f"[{-weight.ndim}, {weight.ndim}), or None")
    delattr(module, name)
    with no_grad():
        length = _norm(weight, dim)
    setattr(module, f"{name}_g", Parameter(length, weight._requires_grad))
    setattr(module, f"{name}_v", Parameter(weight, weight._requires_grad))

    def computed(self: Any) -> Tensor:
        direction = getattr(self, f"{name}_v")
        product: Tensor = direction * (getattr(self, f"{name}_g") / _norm(direction, dim))
        return product

    kind = type(module)
    # A subclass of the same name, for this module only, whose attribute is computed.
    module.__class__ = type(kind.__name__, (kind,), {
        name: property(computed), "__module__": kind.__module__, "__doc__": kind.__doc__,
        "_normalized": {**getattr(kind, "_normalized", {}), name: dim}})
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Merges a Parameter that weight_norm has split, with its current value; returns the module.

    Raises InvalidArgument unless it was the last one that weight_norm split.

    >>> layer = kiln.nn.utils.weight_norm(kiln.nn.Linear(3, 2))
    >>> layer = kiln.nn.utils.remove_weight_norm(layer)
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight']
    """
    kind = type(module)
    if list(getattr(kind, "_normalized", {}))[-1:] != [name]:
        raise InvalidArgument(
            f"remove_weight_norm of {kind.__name__}.{name}, which weight_norm did not split last")
    with no_grad():
        value = getattr(module, name)
    wanted = getattr(module, f"{name}_v")._requires_grad
    # The class that weight_norm derived this one from.
    module.__class__ = kind.__mro__[1]
    delattr(module, f"{name}_g")
    delattr(module, f"{name}_v")
    setattr(module, name, Parameter(value, wanted))
    return module


__all__ = ["remove_weight_norm", "weight_norm"]
