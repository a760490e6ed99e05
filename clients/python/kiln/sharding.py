"""Placement of tensors, modules and optimizers on a mesh of devices.

    mesh = kiln.Mesh("data", [device.name for device in kiln.devices()])
    kiln.shard(model, mesh)                                # a copy of the weights on each device
    x, y = kiln.shard((x, y), mesh, ("data",))             # a part of the batch on each

Operations on tensors on a mesh run there, on all of its devices. The results equal those of one
device up to rounding.
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
from kiln._tensor.device_transfer import place
from kiln.nn import Module
from kiln.optim import EMA, GradientAccumulation, Optimizer
from kiln.tensor import Tensor

__all__ = ["Mesh", "shard"]

Spec = Optional[Union[str, Sequence[Optional[Union[str, Sequence[str]]]]]]
"""By dimension: None, or the name of the axis that splits it, or several. Others are not split."""

Rule = Union[Spec, Mapping[str, Spec], Callable[[str, Tensor], Spec]]
"""The placement of each tensor of a module or an optimizer; see `shard`."""

T = TypeVar("T")

_STATEFUL = (Module, Optimizer, GradientAccumulation, EMA)


def shard(x: T, mesh: Mesh, spec: Rule = None) -> T:
    """Places a tensor, or all tensors of a structure, a module or an optimizer, on a mesh.

    `spec` names the axes of the mesh that split each dimension: ("data", None) splits the first by
    "data", (("data", "model"),) by both, the first one varying slowest. Parts have equal sizes; if
    the dimension does not divide evenly, the last devices have less of it, or nothing: three
    devices split 10 rows as 4, 4 and 2. Devices that differ only in axes that are not in the spec
    have the same part; without a spec each device has the whole tensor.

    For a tensor it returns a new one. Host data is uploaded part by part; within kiln.jit, and for
    a lazy tensor, it tells the daemon how to place the value, and gradients flow through. Lists,
    tuples and dicts are placed item by item, and arrays become tensors.

    The parameters and buffers of a module, and the state of an optimizer, are placed in place, and
    `x` is returned. Optimizer state that is made later is placed like its parameters. Here `spec`
    may be a rule as well:

    - the name of an axis: it splits each tensor along the first dimension that divides evenly; a
      tensor without such a dimension is copied;
    - a dict of specs by patterns of names, as in fnmatch; the first match counts, other tensors are
      copied;
    - a function of the name and the tensor that returns a spec.

    Raises InvalidArgument for an axis that the mesh does not have, for a dimension with a variable,
    for a pattern that matches no name, and for another type of `x`.

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
                f"no tensor has a name like {pattern!r}; names are {', '.join(names[:6])}"
                f"{', …' * (len(names) > 6)}")
