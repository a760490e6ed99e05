"""Modules and parameters in lists and dicts, named as PyTorch names them."""

from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from kiln._errors import InvalidArgument
from kiln.nn.module import Module
from kiln.nn.parameter import Parameter
from kiln.tensor import Tensor


class Sequential(Module):
    """Modules (or functions of a tensor) one after another; a dict names them.

    >>> kiln.nn.Sequential(kiln.nn.Linear(4, 8), kiln.nn.ReLU(), kiln.nn.Linear(8, 2))
    Sequential(
      (0): Linear(4, 8, bias=True)
      (1): ReLU()
      (2): Linear(8, 2, bias=True)
    )
    """

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], dict):
            self._layers: Dict[str, Any] = dict(layers[0])
        else:
            self._layers = {str(i): layer for i, layer in enumerate(layers)}

    def named_children(self) -> Iterator[Tuple[str, Module]]:
        """The layers, by number or name."""
        return ((name, layer) for name, layer in self._layers.items() if isinstance(layer, Module))

    def forward(self, x: Any) -> Any:
        """The last layer's result."""
        for layer in self._layers.values():
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self._layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._layers.values())

    def __getitem__(self, index: Any) -> Any:
        part = list(self._layers.values())[index]
        return Sequential(*part) if isinstance(index, slice) else part

    def append(self, layer: Any) -> "Sequential":
        """Adds a layer at the end."""
        self._layers[str(len(self._layers))] = layer
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

    def __getitem__(self, index: Any) -> Any:
        part = self._items[index]
        return ModuleList(part) if isinstance(index, slice) else part

    def __setitem__(self, index: int, module: Module) -> None:
        self._items[index] = module

    def __iter__(self) -> Iterator[Module]:
        return iter(self._items)

    def append(self, module: Module) -> "ModuleList":
        """Adds a module at the end."""
        self._items.append(module)
        return self

    def extend(self, modules: Iterable[Module]) -> "ModuleList":
        """Adds modules at the end."""
        self._items.extend(modules)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Adds a module before another one."""
        self._items.insert(index, module)


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Optional[Mapping[str, Module]] = None) -> None:
        super().__init__()
        self._items: Dict[str, Module] = dict(modules or {})

    def named_children(self) -> Iterator[Tuple[str, Module]]:
        """The modules, by name."""
        return iter(self._items.items())

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, name: str) -> Module:
        return self._items[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self._items[name] = module

    def __delitem__(self, name: str) -> None:
        del self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._items.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._items.values()

    def items(self) -> Iterable[Tuple[str, Module]]:
        """Names and modules."""
        return self._items.items()

    def update(self, modules: Mapping[str, Module]) -> None:
        """Adds or replaces modules."""
        self._items.update(modules)


def _parameter(value: Any) -> Tensor:
    if isinstance(value, Parameter):
        return value
    if isinstance(value, Tensor):
        return Parameter(value)
    raise InvalidArgument(f"a parameter of type {type(value).__name__}; it must be a tensor")


class ParameterList(Module):
    """A list of Parameters; tensors become Parameters."""

    def __init__(self, values: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self._items: List[Tensor] = [_parameter(value) for value in values]

    def own_tensors(self) -> Iterator[Tuple[str, Tensor]]:
        """The Parameters, by number."""
        return ((str(i), item) for i, item in enumerate(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        part = self._items[index]
        return ParameterList(part) if isinstance(index, slice) else part

    def __setitem__(self, index: int, value: Tensor) -> None:
        self._items[index] = _parameter(value)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._items)

    def append(self, value: Tensor) -> "ParameterList":
        """Adds a Parameter at the end."""
        self._items.append(_parameter(value))
        return self

    def extend(self, values: Iterable[Tensor]) -> "ParameterList":
        """Adds Parameters at the end."""
        self._items.extend(_parameter(value) for value in values)
        return self


class ParameterDict(Module):
    """Parameters by name; tensors become Parameters."""

    def __init__(self, values: Optional[Mapping[str, Tensor]] = None) -> None:
        super().__init__()
        self._items: Dict[str, Tensor] = {
            name: _parameter(value) for name, value in (values or {}).items()}

    def own_tensors(self) -> Iterator[Tuple[str, Tensor]]:
        """The Parameters, by name."""
        return iter(self._items.items())

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, name: str) -> Tensor:
        return self._items[name]

    def __setitem__(self, name: str, value: Tensor) -> None:
        self._items[name] = _parameter(value)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._items.keys()

    def values(self) -> Iterable[Tensor]:
        """The Parameters."""
        return self._items.values()

    def items(self) -> Iterable[Tuple[str, Tensor]]:
        """Names and Parameters."""
        return self._items.items()
