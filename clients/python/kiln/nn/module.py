"""Module: a function with parameters and state."""

from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Tuple

from kiln._errors import InvalidArgument, NotFound
from kiln.tensor import Tensor


class Parameter(Tensor):
    """A tensor that training changes. Requires a gradient unless said otherwise."""

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        super().__init__(0.0)
        self._node = (data if isinstance(data, Tensor) else Tensor(data)).detach()._node
        if requires_grad:
            self.requires_grad_()


class Module:
    """Base of layers and models: attributes that are Parameters, tensors or modules are its state.

    Subclasses define forward(). Lists, tuples and dicts of modules are found, too.
    """

    def __init__(self) -> None:
        self.training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return self.forward(*args, **kwargs)

    # Walking.

    def named_children(self) -> Iterator[Tuple[str, "Module"]]:
        """The modules among the attributes."""
        for name, value in vars(self).items():
            yield from _modules_in(name, value)

    def children(self) -> Iterator["Module"]:
        """The modules among the attributes."""
        return (child for _, child in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[Tuple[str, "Module"]]:
        """This module and all under it, each once."""
        return _unique(self._walk(prefix))

    def _walk(self, prefix: str) -> Iterator[Tuple[str, "Module"]]:
        yield prefix, self
        for name, child in self.named_children():
            yield from child._walk(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator["Module"]:
        """This module and all under it, each once."""
        return (module for _, module in self.named_modules())

    def _named_tensors(self) -> Iterator[Tuple[str, Tensor]]:
        for prefix, module in self.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Tensor):
                    yield (f"{prefix}.{name}" if prefix else name), value

    def named_parameters(self) -> Iterator[Tuple[str, Parameter]]:
        """All Parameters, each once."""
        return _unique(
            (name, value) for name, value in self._named_tensors() if isinstance(value, Parameter))

    def parameters(self) -> Iterator[Parameter]:
        """All Parameters, each once."""
        return (value for _, value in self.named_parameters())

    def named_buffers(self) -> Iterator[Tuple[str, Tensor]]:
        """All tensors that are state but no Parameters, such as running statistics."""
        return _unique(
            (name, value) for name, value in self._named_tensors()
            if not isinstance(value, Parameter))

    def buffers(self) -> Iterator[Tensor]:
        """All tensors that are state but no Parameters."""
        return (value for _, value in self.named_buffers())

    def register_buffer(self, name: str, tensor: Tensor) -> None:
        """Sets a tensor attribute; plain assignment does the same."""
        setattr(self, name, tensor)

    # State.

    def state_dict(self) -> Dict[str, Tensor]:
        """All Parameters and buffers by name."""
        return {name: value.detach() for name, value in self._named_tensors()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Gives Parameters and buffers the values of `state` (tensors or arrays)."""
        mine = dict(self._named_tensors())
        missing = sorted(set(mine) - set(state))
        unexpected = sorted(set(state) - set(mine))
        if strict and (missing or unexpected):
            raise NotFound(
                f"the state does not fit {type(self).__name__}: missing {missing}, unexpected "
                f"{unexpected}; strict=False loads what fits")
        for name, tensor in mine.items():
            if name not in state:
                continue
            value = state[name]
            value = value.detach() if isinstance(value, Tensor) else Tensor(value)
            if value.shape != tensor.shape:
                raise InvalidArgument(
                    f"{name} has shape {tensor.shape}, the state's has {value.shape}")
            tensor.assign(value.cast(tensor.dtype))

    # Modes.

    def train(self, mode: bool = True) -> "Module":
        """Switches to training (dropout, the batch's own statistics)."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> "Module":
        """Switches to inference."""
        return self.train(False)

    def requires_grad_(self, wanted: bool = True) -> "Module":
        """Freezes or unfreezes all Parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(wanted)
        return self

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for parameter in self.parameters():
            parameter.grad = None

    def apply(self, function: Callable[["Module"], Any]) -> "Module":
        """Calls a function with each module."""
        for module in self.modules():
            function(module)
        return self

    def extra_repr(self) -> str:
        """What stands in the brackets of repr()."""
        return ""

    def __repr__(self) -> str:
        children = list(self.named_children())
        if not children:
            return f"{type(self).__name__}({self.extra_repr()})"
        lines = [f"({name}): {child!r}".replace("\n", "\n  ") for name, child in children]
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


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


class Sequential(Module):
    """Modules (or functions of a tensor) one after another."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        self._layers: List[Any] = list(layers)

    def named_children(self) -> Iterator[Tuple[str, Module]]:
        """The layers, by number."""
        return ((str(i), layer) for i, layer in enumerate(self._layers) if (
            isinstance(layer, Module)))

    def forward(self, x: Any) -> Any:
        """The last layer's result."""
        for layer in self._layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self._layers)

    def __getitem__(self, index: Any) -> Any:
        part = self._layers[index]
        return Sequential(*part) if isinstance(index, slice) else part

    def append(self, layer: Any) -> "Sequential":
        """Adds a layer at the end."""
        self._layers.append(layer)
        return self


class ModuleList(Module):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self._items: List[Module] = list(modules)

    def named_children(self) -> Iterator[Tuple[str, Module]]:
        """The modules, by number."""
        return ((str(i), item) for i, item in enumerate(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Module:
        return self._items[index]

    def __iter__(self) -> Iterator[Module]:
        return iter(self._items)

    def append(self, module: Module) -> "ModuleList":
        """Adds a module at the end."""
        self._items.append(module)
        return self
