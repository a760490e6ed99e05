"""Module: a function with parameters and state."""

from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
)

from kiln import _dtypes, _realize
from kiln._errors import InvalidArgument, NotFound
from kiln._node import alias
from kiln.autograd import no_grad
from kiln.nn._hooks import Hooks
from kiln.nn.parameter import Parameter
from kiln.tensor import Tensor


class Incompatible(NamedTuple):
    """What `load_state_dict` did not find, and what it had no use for."""

    missing_keys: List[str]
    unexpected_keys: List[str]


class Module(Hooks):
    """Base of layers and models: attributes that are Parameters, tensors or modules are its state.

    Subclasses define forward(). Lists, tuples and dicts of modules are found, too. Parameters are
    what training changes; other tensors (running statistics) are buffers.

    >>> class Net(kiln.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = kiln.nn.Linear(4, 2)
    ...     def forward(self, x):
    ...         return self.layer(x).relu()
    >>> net = Net()
    >>> net(kiln.ones(3, 4)).shape
    (3, 2)
    >>> [name for name, _ in net.named_parameters()]
    ['layer.weight', 'layer.bias']
    """

    training = True

    def __init__(self) -> None:
        self.training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        if self._forward_hooks or self._forward_pre_hooks:
            return self._call_with_hooks(self.forward, args, kwargs)
        return self.forward(*args, **kwargs)

    # Walking.

    def named_children(self) -> Iterator[Tuple[str, "Module"]]:
        """The modules among the attributes.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> [name for name, _ in net.named_children()]
        ['0', '1']
        """
        for name, value in vars(self).items():
            yield from _modules_in(name, value)

    def children(self) -> Iterator["Module"]:
        """The modules among the attributes.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> list(net.children())
        [Linear(2, 1, bias=True), ReLU()]
        """
        return (child for _, child in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[Tuple[str, "Module"]]:
        """This module and all under it, each once.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> [name for name, _ in net.named_modules()]
        ['', '0', '1']
        """
        return _unique(self._walk(prefix))

    def _walk(self, prefix: str) -> Iterator[Tuple[str, "Module"]]:
        yield prefix, self
        for name, child in self.named_children():
            yield from child._walk(_joined(prefix, name))

    def modules(self) -> Iterator["Module"]:
        """This module and all under it, each once.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> len(list(net.modules()))
        3
        """
        return (module for _, module in self.named_modules())

    def get_submodule(self, target: str) -> "Module":
        """The module of a name such as "layer1.0.conv1".

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> net.get_submodule("0")
        Linear(2, 1, bias=True)
        """
        found = dict(self._walk("")).get(target)
        if found is None:
            raise NotFound(f"{type(self).__name__} has no module {target!r}")
        return found

    def own_tensors(self) -> Iterator[Tuple[str, Tensor]]:
        """The tensors of this module alone: Parameters and buffers by their attribute's name.

        >>> [name for name, _ in kiln.nn.Linear(2, 1).own_tensors()]
        ['weight', 'bias']
        """
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                yield name, value

    def _named_tensors(self, prefix: str = "",
                       recurse: bool = True) -> Iterator[Tuple[str, Tensor]]:
        for path, module in self._walk(prefix) if recurse else ((prefix, self),):
            for name, value in module.own_tensors():
                yield _joined(path, name), value

    def named_parameters(self, prefix: str = "",
                         recurse: bool = True) -> Iterator[Tuple[str, Parameter]]:
        """All Parameters, each once; without `recurse` those of this module alone.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> [(name, value.shape) for name, value in net.named_parameters()]
        [('0.weight', (1, 2)), ('0.bias', (1,))]
        """
        return _unique((name, value) for name, value in self._named_tensors(prefix, recurse)
                       if isinstance(value, Parameter))

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All Parameters, each once.

        >>> [value.shape for value in kiln.nn.Linear(2, 1).parameters()]
        [(1, 2), (1,)]
        """
        return (value for _, value in self.named_parameters("", recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[Tuple[str, Tensor]]:
        """All tensors that are state but no Parameters, such as running statistics.

        >>> [name for name, _ in kiln.nn.BatchNorm1d(2).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return _unique((name, value) for name, value in self._named_tensors(prefix, recurse)
                       if not isinstance(value, Parameter))

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All tensors that are state but no Parameters.

        >>> [value.shape for value in kiln.nn.BatchNorm1d(2).buffers()][:2]
        [(2,), (2,)]
        """
        return (value for _, value in self.named_buffers("", recurse))

    # Making.

    def register_buffer(self, name: str, tensor: Optional[Tensor], persistent: bool = True) -> None:
        """Sets a tensor attribute, as plain assignment does.

        One that is not persistent is no part of state_dict().

        >>> net = kiln.nn.Module()
        >>> net.register_buffer("count", kiln.zeros(1))
        >>> list(net.state_dict())
        ['count']
        """
        setattr(self, name, tensor)
        if not persistent:
            vars(self).setdefault("_transient", set()).add(name)

    def register_parameter(self, name: str, parameter: Optional[Parameter]) -> None:
        """Sets a Parameter attribute, as plain assignment does.

        >>> net = kiln.nn.Module()
        >>> net.register_parameter("scale", kiln.nn.Parameter(kiln.ones(1)))
        >>> list(net.state_dict())
        ['scale']
        """
        setattr(self, name, parameter)

    def add_module(self, name: str, module: Optional["Module"]) -> None:
        """Sets a module attribute, as plain assignment does.

        >>> net = kiln.nn.Module()
        >>> net.add_module("layer", kiln.nn.Linear(2, 1))
        >>> list(net.state_dict())
        ['layer.weight', 'layer.bias']
        """
        setattr(self, name, module)

    # State.

    def state_dict(self, prefix: str = "") -> Dict[str, Tensor]:
        """All Parameters and persistent buffers by name; a shared one by each of its names.

        >>> list(kiln.nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        return {name: value.detach() for name, value in self._state(prefix)}

    def _state(self, prefix: str = "") -> Iterator[Tuple[str, Tensor]]:
        for path, module in self._walk(prefix):
            transient = vars(module).get("_transient", ())
            for name, value in module.own_tensors():
                if name not in transient:
                    yield _joined(path, name), value

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Incompatible:
        """Gives Parameters and buffers the values of `state` (tensors or arrays).

        Values are cast to the dtypes that are here. Raises NotFound when names are missing or left
        over (unless `strict` is False) and InvalidArgument when shapes differ; then nothing has
        changed. Returns the names that were missing and left over.

        >>> net = kiln.nn.Linear(2, 1)
        >>> net.load_state_dict({"weight": kiln.ones(1, 2), "bias": kiln.zeros(1)})
        Incompatible(missing_keys=[], unexpected_keys=[])
        >>> net.weight.tolist()
        [[1.0, 1.0]]
        """
        mine = dict(self._state())
        missing = [name for name in mine if name not in state]
        unexpected = [name for name in state if name not in mine]
        if strict and (missing or unexpected):
            raise NotFound(
                f"the state does not fit {type(self).__name__}: missing {missing}, unexpected "
                f"{unexpected}; strict=False loads what fits")
        found = {name: state[name] for name in mine if name in state}
        values = {name: value.detach() if isinstance(value, Tensor) else Tensor(value)
                  for name, value in found.items()}
        wrong = [f"{name} has shape {mine[name].shape}, the state's has {value.shape}"
                 for name, value in values.items() if value.shape != mine[name].shape]
        if wrong:
            raise InvalidArgument(
                f"the state does not fit {type(self).__name__}: " + "; ".join(wrong))
        for name, value in values.items():
            mine[name].assign(value.cast(mine[name].dtype))
        return Incompatible(missing, unexpected)

    # Modes.

    def train(self, mode: bool = True) -> "Module":
        """Switches to training (dropout, the batch's own statistics).

        >>> kiln.nn.Dropout().eval().train().training
        True
        """
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> "Module":
        """Switches to inference.

        >>> kiln.nn.Dropout().eval().training
        False
        """
        return self.train(False)

    def requires_grad_(self, wanted: bool = True) -> "Module":
        """Freezes or unfreezes all Parameters.

        >>> kiln.nn.Linear(2, 1).requires_grad_(False).weight.requires_grad
        False
        """
        for parameter in self.parameters():
            parameter.requires_grad_(wanted)
        return self

    def zero_grad(self) -> None:
        """Forgets all gradients.

        >>> net = kiln.nn.Linear(2, 1)
        >>> net(kiln.ones(1, 2)).sum().backward()
        >>> net.zero_grad()
        >>> net.weight.grad is None
        True
        """
        for parameter in self.parameters():
            parameter.grad = None

    def apply(self, function: Callable[["Module"], Any]) -> "Module":
        """Calls a function with each module, with a module after those under it.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> _ = net.apply(lambda module: print(type(module).__name__))
        Linear
        ReLU
        Sequential
        """
        for _, child in _unique(self.named_children()):
            child.apply(function)
        function(self)
        return self

    def to(self, dtype: Any) -> "Module":
        """Casts Parameters and buffers of floats to a dtype, in place; gradients are forgotten.

        An optimizer is made afterwards, since its state has the dtype of its parameters.

        >>> kiln.nn.Linear(2, 1).to("float16").weight.dtype
        kiln.float16
        """
        wanted = _dtypes.as_dtype(dtype)
        if not wanted.is_float:
            raise InvalidArgument(f"a module in {wanted.name}; it needs a float dtype")
        for tensor in {id(tensor): tensor for _, tensor in self._named_tensors()}.values():
            if tensor.dtype.is_float and tensor.dtype is not wanted:
                _recast(tensor, wanted)
        return self

    def float(self) -> "Module":
        """In float32.

        >>> kiln.nn.Linear(2, 1).half().float().weight.dtype
        kiln.float32
        """
        return self.to(_dtypes.float32)

    def double(self) -> "Module":
        """In float64.

        >>> kiln.nn.Linear(2, 1).double().weight.dtype
        kiln.float64
        """
        return self.to(_dtypes.float64)

    def half(self) -> "Module":
        """In float16.

        >>> kiln.nn.Linear(2, 1).half().weight.dtype
        kiln.float16
        """
        return self.to(_dtypes.float16)

    def bfloat16(self) -> "Module":
        """In bfloat16.

        >>> kiln.nn.Linear(2, 1).bfloat16().weight.dtype
        kiln.bfloat16
        """
        return self.to(_dtypes.bfloat16)

    def extra_repr(self) -> str:
        """What stands in the brackets of repr()."""
        return ""

    def __repr__(self) -> str:
        children = list(self.named_children())
        if not children:
            return f"{type(self).__name__}({self.extra_repr()})"
        lines = [f"({name}): {child!r}".replace("\n", "\n  ") for name, child in children]
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _recast(tensor: Tensor, dtype: _dtypes.DType) -> None:
    with no_grad():
        tensor._node = alias(tensor.cast(dtype)._node)
    tensor._grad = None
    tensor._mark_leaf()
    _realize.assigned(tensor)


def _modules_in(name: str, value: Any) -> Iterator[Tuple[str, Module]]:
    if isinstance(value, Module):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _modules_in(f"{name}.{i}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _modules_in(f"{name}.{key}", item)


def _unique(pairs: Iterable[Tuple[str, Any]]) -> Iterator[Tuple[str, Any]]:
    seen = set()
    for name, value in pairs:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value
