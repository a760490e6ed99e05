"""Lists and dicts of modules and parameters, with PyTorch's names."""

from typing import (
    Any,
    Dict,
    Generic,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Tuple,
    TypeVar,
)

from kiln._basics.errors import InvalidArgument
from kiln.nn.module import Module
from kiln.nn.parameter import Parameter
from kiln.tensor import Tensor

Item = TypeVar("Item")
Container = TypeVar("Container", bound="_List[Any]")


class Sequential(Module):
    """Applies modules (or functions of a tensor) one after the other; a dict names them.

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
        """Yields the layers, by number or name.

        >>> list(kiln.nn.Sequential(kiln.nn.ReLU()).named_children())
        [('0', ReLU())]
        """
        # Not under the attribute's name, `_layers`, so that a state_dict has PyTorch's names.
        return ((name, layer) for name, layer in self._layers.items() if isinstance(layer, Module))

    def forward(self, x: Any) -> Any:
        """Returns the last layer's result."""
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
        """Adds a layer at the end; returns self.

        >>> len(kiln.nn.Sequential(kiln.nn.ReLU()).append(kiln.nn.Tanh()))
        2
        """
        self._layers[str(len(self._layers))] = layer
        return self


class _List(Module, Generic[Item]):
    """The base of lists of modules and of Parameters."""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        super().__init__()
        self._items: List[Item] = [self._checked(item) for item in items]

    @staticmethod
    def _checked(item: Any) -> Any:
        raise NotImplementedError

    def _named(self) -> Iterator[Tuple[str, Item]]:
        return ((str(i), item) for i, item in enumerate(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        part = self._items[index]
        return type(self)(part) if isinstance(index, slice) else part

    def __setitem__(self, index: int, item: Item) -> None:
        self._items[index] = self._checked(item)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def append(self: Container, item: Any) -> Container:
        """Adds an item at the end; returns self.

        >>> layers = kiln.nn.ModuleList().append(kiln.nn.ReLU())
        >>> len(layers)
        1
        """
        return self.extend([item])

    def extend(self: Container, items: Iterable[Any]) -> Container:
        """Adds items at the end; returns self.

        >>> len(kiln.nn.ParameterList().extend([kiln.ones(2), kiln.zeros(3)]))
        2
        """
        self._items.extend([self._checked(item) for item in items])
        return self

    def insert(self, index: int, item: Item) -> None:
        """Inserts an item before another one.

        >>> layers = kiln.nn.ModuleList([kiln.nn.ReLU()])
        >>> layers.insert(0, kiln.nn.Linear(3, 2))
        >>> layers[0]
        Linear(3, 2, bias=True)
        """
        self._items.insert(index, self._checked(item))


class _Dict(Module, Generic[Item]):
    """The base of dicts of modules and of Parameters."""

    def __init__(self, items: Optional[Mapping[str, Item]] = None) -> None:
        super().__init__()
        self._items: Dict[str, Item] = {}
        self.update(items or {})

    @staticmethod
    def _checked(item: Any) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, name: str) -> Item:
        return self._items[name]

    def __setitem__(self, name: str, item: Item) -> None:
        self._items[name] = self._checked(item)

    def __delitem__(self, name: str) -> None:
        del self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def keys(self) -> Iterable[str]:
        """Returns the names.

        >>> list(kiln.nn.ModuleDict({"act": kiln.nn.ReLU()}).keys())
        ['act']
        """
        return self._items.keys()

    def values(self) -> Iterable[Item]:
        """Returns the items.

        >>> list(kiln.nn.ModuleDict({"act": kiln.nn.ReLU()}).values())
        [ReLU()]
        """
        return self._items.values()

    def items(self) -> Iterable[Tuple[str, Item]]:
        """Returns names and items.

        >>> list(kiln.nn.ModuleDict({"act": kiln.nn.ReLU()}).items())
        [('act', ReLU())]
        """
        return self._items.items()

    def update(self, items: Mapping[str, Item]) -> None:
        """Adds or replaces items.

        >>> weights = kiln.nn.ParameterDict()
        >>> weights.update({"scale": kiln.ones(3)})
        >>> weights["scale"].tolist()
        [1.0, 1.0, 1.0]
        """
        self._items.update({name: self._checked(item) for name, item in items.items()})


def _module(item: Any) -> Module:
    if isinstance(item, Module):
        return item
    raise InvalidArgument(f"a module of type {type(item).__name__}; it must be a kiln.nn.Module")


def _parameter(item: Any) -> Parameter:
    if isinstance(item, Parameter):
        return item
    if isinstance(item, Tensor):
        return Parameter(item)
    raise InvalidArgument(f"a parameter of type {type(item).__name__}; it must be a tensor")


class ModuleList(_List[Module]):
    """A list of modules.

    >>> layers = kiln.nn.ModuleList([kiln.nn.Linear(3, 3), kiln.nn.Linear(3, 1)])
    >>> [name for name, _ in layers.named_parameters()]
    ['0.weight', '0.bias', '1.weight', '1.bias']
    """

    _checked = staticmethod(_module)

    def named_children(self) -> Iterator[Tuple[str, Module]]:
        """Yields the modules, by number.

        >>> list(kiln.nn.ModuleList([kiln.nn.ReLU()]).named_children())
        [('0', ReLU())]
        """
        return self._named()


class ModuleDict(_Dict[Module]):
    """Modules by name.

    >>> heads = kiln.nn.ModuleDict({"value": kiln.nn.Linear(3, 1)})
    >>> heads["value"](kiln.ones(2, 3)).shape
    (2, 1)
    """

    _checked = staticmethod(_module)

    def named_children(self) -> Iterator[Tuple[str, Module]]:
        """Yields the modules, by name.

        >>> list(kiln.nn.ModuleDict({"act": kiln.nn.ReLU()}).named_children())
        [('act', ReLU())]
        """
        return iter(self._items.items())


class ParameterList(_List[Parameter]):
    """A list of Parameters; tensors become Parameters.

    >>> [name for name, _ in kiln.nn.ParameterList([kiln.ones(2)]).named_parameters()]
    ['0']
    """

    _checked = staticmethod(_parameter)

    def own_tensors(self) -> Iterator[Tuple[str, Tensor]]:
        """Yields the Parameters, by number.

        >>> [name for name, _ in kiln.nn.ParameterList([kiln.ones(2)]).own_tensors()]
        ['0']
        """
        return self._named()


class ParameterDict(_Dict[Parameter]):
    """Parameters by name; tensors become Parameters.

    >>> kiln.nn.ParameterDict({"scale": kiln.ones(2)})["scale"].requires_grad
    True
    """

    _checked = staticmethod(_parameter)

    def own_tensors(self) -> Iterator[Tuple[str, Tensor]]:
        """Yields the Parameters, by name.

        >>> [name for name, _ in kiln.nn.ParameterDict({"scale": kiln.ones(2)}).own_tensors()]
        ['scale']
        """
        return iter(self._items.items())
