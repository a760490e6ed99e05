"""Tensors, modules and optimizers laid out on a mesh of devices.

    mesh = kiln.Mesh("data", [device.name for device in kiln.devices()])
    kiln.shard(model, mesh)                                # a copy of the weights on each device
    x, y = kiln.shard((x, y), mesh, ("data",))             # a part of the batch on each

What is computed from tensors on a mesh is computed there, by all of its devices, and the results
are those of one device but for rounding.
"""

import fnmatch
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln._graph import realize
from kiln._placement import spec as specs
from kiln._placement.mesh import Mesh
from kiln._placement.placement import Placement, on_mesh, placed
from kiln._tensor.base import wrap
from kiln._tensor.moving import place
from kiln.nn import Module
from kiln.optim import EMA, GradientAccumulation, Optimizer
from kiln.tensor import Tensor

__all__ = ["Mesh", "shard"]

Spec = Optional[Union[str, Sequence[Optional[Union[str, Sequence[str]]]]]]
"""By dimension: None, or the name of the axis that splits it, or several. Others are not split."""

Rule = Union[Spec, Mapping[str, Spec], Callable[[str, Tensor], Spec]]
"""How each tensor of a module or an optimizer lies; see `shard`."""

T = TypeVar("T")

_STATEFUL = (Module, Optimizer, GradientAccumulation, EMA)


def shard(x: T, mesh: Mesh, spec: Rule = None) -> T:
    """Lays out a tensor, or all tensors of a structure, a module or an optimizer, on a mesh.

    `spec` says by which axes of the mesh each dimension is split: ("data", None) splits the first
    by "data", (("data", "model"),) by both, the first counting slowest. Parts are equal; where the
    size does not come out even, the last devices have less of it, or nothing: of 10 rows three have
    4, 4 and 2. Devices that differ in no such axis have the same part; without a spec all have all
    of it.

    Of a tensor it gives a new one. Data of this process is uploaded part by part; within kiln.jit,
    and of what is lazy, it says how the daemon is to lay out the value, and gradients flow through.
    Lists, tuples and dicts are laid out item by item, and arrays become tensors.

    The parameters and buffers of a module, and the state of an optimizer, are laid out in place,
    and `x` comes back. State of an optimizer that is made afterwards lies as its parameters do.
    Here `spec` may be a rule as well:

    - the name of an axis: it splits each tensor along the first dimension that comes out even; what
      has none is copied;
    - a dict with specs by patterns of names, as in fnmatch, the first that matches; others are
      copied;
    - a function of the name and the tensor that gives a spec.

    Raises InvalidArgument for an axis that the mesh does not have, and for a dimension with a
    variable in it.

    >>> mesh = kiln.Mesh("data", ["cpu:0"])
    >>> kiln.shard(kiln.ones(4, 2), mesh, ("data",)).sum().item()
    8.0
    >>> model = kiln.shard(kiln.nn.Linear(2, 4), mesh, {"weight": ("data", None)})
    >>> model.weight.device
    ('cpu:0',)
    """
    if isinstance(x, _STATEFUL):
        _lay_out(x, mesh, spec)
        return x
    return _sharded(x, mesh, spec)  # type: ignore[no-any-return]


def _sharded(x: Any, mesh: Mesh, spec: Any) -> Any:
    if isinstance(x, (np.ndarray, np.generic)):
        x = Tensor(x)
    if isinstance(x, Tensor):
        return wrap(realize.elsewhere(x._node, on_mesh(mesh, spec, x.shape)))
    if isinstance(x, Mapping):
        return {key: shard(value, mesh, spec) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        items = [shard(item, mesh, spec) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    raise InvalidArgument(
        f"shard() of {type(x).__name__}; it takes tensors and arrays, lists, tuples and dicts of "
        "them, modules and optimizers")


def _lay_out(holder: Any, mesh: Mesh, rule: Any) -> None:
    tensors = list(_state_of(holder))
    # All specs first, so that nothing has changed if one is wrong.
    placements = [_placement(name, tensor, mesh, rule) for name, tensor in tensors]
    if isinstance(rule, Mapping):
        _check_patterns(rule, [name for name, _ in tensors])
    for (_, tensor), placement in zip(tensors, placements):
        place(tensor, placement)


def _state_of(holder: Any) -> Iterable[Tuple[str, Tensor]]:
    if isinstance(holder, Module):
        yield from holder.named_parameters()
        yield from holder.named_buffers()
    else:
        yield from holder.named_state()


def _placement(name: str, tensor: Tensor, mesh: Mesh, rule: Any) -> Placement:
    if isinstance(rule, str):
        on_mesh(mesh, None, tensor.shape)
        return placed(mesh, specs.first_that_divides(rule, mesh, tensor.shape))
    spec = rule
    if isinstance(rule, Mapping):
        spec = next((rule[pattern] for pattern in rule if fnmatch.fnmatchcase(name, pattern)), None)
    elif callable(rule):
        spec = rule(name, tensor)
    try:
        return on_mesh(mesh, spec, tensor.shape)
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error.message}") from None


def _check_patterns(rule: Mapping[str, Any], names: Sequence[str]) -> None:
    for pattern in rule:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            raise InvalidArgument(
                f"no tensor has a name like {pattern!r}; there are {', '.join(names[:6])}"
                f"{', …' * (len(names) > 6)}")
