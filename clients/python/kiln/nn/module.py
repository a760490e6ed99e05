"""Module: a function with parameters and state."""

from typing import Any, Callable, Optional

from kiln.nn._hooks import Hooks
from kiln.nn._precision import Precision
from kiln.nn._state import Incompatible, State
from kiln.nn._tree import unique
from kiln.nn.parameter import Parameter
from kiln.tensor import Tensor

__all__ = ["Incompatible", "Module"]


class Module(Hooks, State, Precision):
    """The base class of layers and models.

    Attributes that are Parameters, tensors or modules are state. Subclasses define forward().
    Modules in lists, tuples and dicts are found, too. Training changes Parameters; other tensors
    (running statistics) are buffers.

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
        """Computes the module's result. Subclasses override it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls forward() and the registered hooks."""
        if self._forward_hooks or self._forward_pre_hooks:
            return self._call_with_hooks(self.forward, args, kwargs)
        return self.forward(*args, **kwargs)

    def register_buffer(self, name: str, tensor: Optional[Tensor], persistent: bool = True) -> None:
        """Sets a tensor attribute, as plain assignment does.

        A buffer that is not persistent is left out of state_dict().

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

    def train(self, mode: bool = True) -> "Module":
        """Switches to training (dropout, statistics of the batch); returns self.

        With `mode` False it switches to inference.

        >>> kiln.nn.Dropout().eval().train().training
        True
        """
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> "Module":
        """Switches to inference; returns self.

        >>> kiln.nn.Dropout().eval().training
        False
        """
        return self.train(False)

    def requires_grad_(self, wanted: bool = True) -> "Module":
        """Freezes or unfreezes all Parameters; returns self.

        >>> kiln.nn.Linear(2, 1).requires_grad_(False).weight.requires_grad
        False
        """
        for parameter in self.parameters():
            parameter.requires_grad_(wanted)
        return self

    def zero_grad(self) -> None:
        """Drops all gradients.

        >>> net = kiln.nn.Linear(2, 1)
        >>> net(kiln.ones(1, 2)).sum().backward()
        >>> net.zero_grad()
        >>> net.weight.grad is None
        True
        """
        for parameter in self.parameters():
            parameter.grad = None

    def apply(self, function: Callable[["Module"], Any]) -> "Module":
        """Calls a function with each module, after the modules under it; returns self.

        >>> net = kiln.nn.Sequential(kiln.nn.Linear(2, 1), kiln.nn.ReLU())
        >>> _ = net.apply(lambda module: print(type(module).__name__))
        Linear
        ReLU
        Sequential
        """
        for _, child in unique(self.named_children()):
            child.apply(function)
        function(self)
        return self

    def extra_repr(self) -> str:
        """Returns the text within the brackets of repr()."""
        return ""

    def __repr__(self) -> str:
        children = list(self.named_children())
        if not children:
            return f"{type(self).__name__}({self.extra_repr()})"
        lines = [f"({name}): {child!r}".replace("\n", "\n  ") for name, child in children]
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"
