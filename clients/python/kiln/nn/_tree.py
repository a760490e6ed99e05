"""The modules, parameters and buffers under a module, by name."""

from typing import TYPE_CHECKING, Any, Iterable, Iterator, Tuple, cast

from kiln._basics.errors import NotFound
from kiln.nn.parameter import Parameter
from kiln.tensor import Tensor

if TYPE_CHECKING:
    from kiln.nn.module import Module


class Tree:
    """The part of a module that finds modules and tensors in its attributes."""

    def named_children(self) -> Iterator[Tuple[str, "Module"]]:
        """Yields the modules among the attributes, with their names.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> [name for name, _ in net.named_children()]
        ['0', '1']
        """
        for name, value in vars(self).items():
            yield from _modules_in(name, value)

    def children(self) -> Iterator["Module"]:
        """Yields the modules among the attributes.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> list(net.children())
        [Linear(2, 1, bias=True), ReLU()]
        """
        return (child for _, child in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[Tuple[str, "Module"]]:
        """Yields this module and all under it, each once, with their names.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> [name for name, _ in net.named_modules()]
        ['', '0', '1']
        """
        return unique(self._walk(prefix))

    def _walk(self, prefix: str) -> Iterator[Tuple[str, "Module"]]:
        yield prefix, cast("Module", self)
        for name, child in self.named_children():
            yield from child._walk(joined(prefix, name))

    def modules(self) -> Iterator["Module"]:
        """Yields this module and all under it, each once.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> len(list(net.modules()))
        3
        """
        return (module for _, module in self.named_modules())

    def get_submodule(self, target: str) -> "Module":
        """Returns the module of a name such as "layer1.0.conv1". Raises NotFound if there is none.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> net.get_submodule("0")
        Linear(2, 1, bias=True)
        """
        found = dict(self._walk("")).get(target)
        if found is None:
            raise NotFound(f"{type(self).__name__} has no module {target!r}")
        return found

    def own_tensors(self) -> Iterator[Tuple[str, Tensor]]:
        """Yields the tensors of only this module: Parameters and buffers by their attribute's name.

        >>> [name for name, _ in kiln.nn.Linear(2, 1).own_tensors()]
        ['weight', 'bias']
        """
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                yield name, value

    def _named_tensors(self, prefix: str = "",
                       recurse: bool = True) -> Iterator[Tuple[str, Tensor]]:
        for path, module in self._walk(prefix) if recurse else ((prefix, cast("Module", self)),):
            for name, value in module.own_tensors():
                yield joined(path, name), value

    def named_parameters(self, prefix: str = "",
                         recurse: bool = True) -> Iterator[Tuple[str, Parameter]]:
        """Yields all Parameters, each once; without `recurse` only those of this module.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> [(name, value.shape) for name, value in net.named_parameters()]
        [('0.weight', (1, 2)), ('0.bias', (1,))]
        """
        return unique((name, value) for name, value in self._named_tensors(prefix, recurse)
                       if isinstance(value, Parameter))

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields all Parameters, each once; without `recurse` only those of this module.

        >>> [value.shape for value in kiln.nn.Linear(2, 1).parameters()]
        [(1, 2), (1,)]
        """
        return (value for _, value in self.named_parameters("", recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[Tuple[str, Tensor]]:
        """Yields all tensors that are state but not Parameters, such as running statistics.

        >>> [name for name, _ in kiln.nn.BatchNorm1d(2).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return unique((name, value) for name, value in self._named_tensors(prefix, recurse)
                       if not isinstance(value, Parameter))

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields all tensors that are state but not Parameters.

        >>> [value.shape for value in kiln.nn.BatchNorm1d(2).buffers()][:2]
        [(2,), (2,)]
        """
        return (value for _, value in self.named_buffers("", recurse))


def joined(prefix: str, name: str) -> str:
    """Returns the name of a member, with the prefix if there is one."""
    return f"{prefix}.{name}" if prefix else name


def unique(pairs: Iterable[Tuple[str, Any]]) -> Iterator[Tuple[str, Any]]:
    """Yields each value once, with its first name."""
    seen = set()
    for name, value in pairs:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value


def _modules_in(name: str, value: Any) -> Iterator[Tuple[str, "Module"]]:
    if isinstance(value, Tree):
        yield name, cast("Module", value)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _modules_in(f"{name}.{i}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _modules_in(f"{name}.{key}", item)
