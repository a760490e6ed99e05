"""Containers of modules and Parameters, with PyTorch's names."""

import operator
from collections import OrderedDict
from typing import Any, Iterable, Iterator, List, Mapping, Optional

from kiln.nn import containers as _kiln
from kiln.tensor import Tensor as KilnTensor
from kiln.torch.nn._module import CONVERSIONS, COUNTERPARTS, Module, adopted
from kiln.torch.nn.parameter import Parameter


class _Numbered(Module):
    """The base of containers whose modules are numbered."""

    def _key(self, index: Any) -> str:
        number = operator.index(index)
        size = len(self._modules)
        if not -size <= number < size:
            raise IndexError(f"index {number} is out of range")
        return list(self._modules)[number % size]

    def _renumber(self, modules: Iterable[Any]) -> None:
        made = OrderedDict((str(i), adopted(module)) for i, module in enumerate(modules))
        vars(self)["_modules"] = made

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def _part(self, modules: Any) -> Any:
        raise NotImplementedError

    def __setitem__(self, index: Any, module: Any) -> None:
        self._modules[self._key(index)] = adopted(module)

    def __delitem__(self, index: Any) -> None:
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        self._renumber([module for key, module in self._modules.items() if key not in keys])

    def append(self, module: Any) -> Any:
        """Adds a module at the end; returns self."""
        self.add_module(str(len(self._modules)), module)
        return self

    def extend(self, modules: Iterable[Any]) -> Any:
        """Adds modules at the end; returns self."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> Any:
        """Inserts a module before another one."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: Any = -1) -> Any:
        """Removes a module and returns it."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Numbered):
    """Applies modules one after the other; an OrderedDict names them.

    >>> len(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU()))
    2
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _part(self, modules: Any) -> Any:
        return type(self)(modules)

    def forward(self, input: Any) -> Any:
        """Returns the last module's result."""
        for module in self:
            input = module(input)
        return input

    def __add__(self, other: Any) -> "Sequential":
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> "Sequential":
        return self.extend(other)  # type: ignore[no-any-return]

    def __mul__(self, count: int) -> "Sequential":
        return Sequential(*list(self) * count)


class ModuleList(_Numbered):
    """A list of modules.

    >>> len(torch.nn.ModuleList([torch.nn.ReLU()]))
    1
    """

    def __init__(self, modules: Optional[Iterable[Any]] = None) -> None:
        super().__init__()
        self.extend(modules or [])

    def _part(self, modules: Any) -> Any:
        return type(self)(modules.values())

    def __add__(self, other: Any) -> "ModuleList":
        return ModuleList([*self, *other])

    def __iadd__(self, other: Any) -> "ModuleList":
        return self.extend(other)  # type: ignore[no-any-return]


class ModuleDict(Module):
    """Modules by name.

    >>> list(torch.nn.ModuleDict({"act": torch.nn.ReLU()}))
    ['act']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Removes a module and returns it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """Returns the names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """Returns the modules."""
        return self._modules.values()

    def items(self) -> Iterable[Any]:
        """Returns names and modules."""
        return self._modules.items()

    def update(self, modules: Any) -> None:
        """Adds or replaces modules."""
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for name, module in pairs:
            self.add_module(name, module)


def _parameter(value: Any) -> Any:
    return value if isinstance(value, Parameter) or not isinstance(value, KilnTensor) else (
        Parameter(value))


class ParameterList(Module):
    """A list of Parameters; tensors become Parameters.

    >>> len(torch.nn.ParameterList([torch.ones(2)]))
    1
    """

    def __init__(self, values: Optional[Iterable[Any]] = None) -> None:
        super().__init__()
        self.extend(values or [])

    def _list(self) -> List[Any]:
        return list(self._parameters.values())

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._list())

    def __getitem__(self, index: Any) -> Any:
        found = self._list()[index]
        return ParameterList(found) if isinstance(index, slice) else found

    def __setitem__(self, index: int, value: Any) -> None:
        self._parameters[str(range(len(self))[index])] = _parameter(value)

    def append(self, value: Any) -> "ParameterList":
        """Adds a Parameter at the end; returns self."""
        self.register_parameter(str(len(self)), _parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> "ParameterList":
        """Adds Parameters at the end; returns self."""
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> "ParameterList":
        return self.extend(values)

    def extra_repr(self) -> str:
        """Returns the text within the brackets of repr()."""
        return "\n".join(f"({i}): Parameter of shape {tuple(value.shape)}"
                         for i, value in enumerate(self))


class ParameterDict(Module):
    """Parameters by name; tensors become Parameters.

    >>> list(torch.nn.ParameterDict({"scale": torch.ones(2)}))
    ['scale']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._parameters[key] = _parameter(value)

    def __delitem__(self, key: str) -> None:
        del self._parameters[key]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, key: object) -> bool:
        return key in self._parameters

    def keys(self) -> Iterable[str]:
        """Returns the names."""
        return self._parameters.keys()

    def values(self) -> Iterable[Any]:
        """Returns the Parameters."""
        return self._parameters.values()

    def items(self) -> Iterable[Any]:
        """Returns names and Parameters."""
        return self._parameters.items()

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a Parameter, or `default`."""
        return self._parameters.get(key, default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Returns a Parameter; adds it if it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Removes a Parameter and returns it."""
        return self._parameters.pop(key)

    def clear(self) -> None:
        """Removes all Parameters."""
        self._parameters.clear()

    def copy(self) -> "ParameterDict":
        """Returns another dict of the same Parameters."""
        return ParameterDict(dict(self._parameters))

    def update(self, parameters: Any) -> None:
        """Adds or replaces Parameters."""
        pairs = parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else (
            parameters)
        for name, value in pairs:
            self[name] = value


COUNTERPARTS.update({
    _kiln.Sequential: Sequential, _kiln.ModuleList: ModuleList, _kiln.ModuleDict: ModuleDict,
    _kiln.ParameterList: ParameterList, _kiln.ParameterDict: ParameterDict})
CONVERSIONS.update({
    _kiln.Sequential: lambda value: Sequential(OrderedDict(value.named_children())),
    _kiln.ModuleList: lambda value: ModuleList(list(value)),
    _kiln.ModuleDict: lambda value: ModuleDict(dict(value.items())),
})  # fmt: skip
