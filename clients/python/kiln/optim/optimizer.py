"""The base of all optimizers: groups of parameters, state, the step."""

import contextlib
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

import numpy as np

from kiln._array_api.creation import zeros_like
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument, NotFound, TraceError
from kiln._basics.source import one_source
from kiln._graph import realize
from kiln._graph.gradient_mode import no_grad
from kiln._graph.node import mode
from kiln._tensor.device_transfer import beside
from kiln._tensor.gradients import snapshot
from kiln.tensor import Tensor

_OPTIMIZERS = __name__.rpartition(".")[0]
Params = Iterable[Union[Tensor, Mapping[str, Any]]]


def decayed(gradient: Tensor, parameter: Tensor, options: Mapping[str, Any]) -> Tensor:
    """Returns the gradient plus weight_decay times the parameter, which is L2 regularization."""
    decay = options["weight_decay"]
    return gradient + parameter * decay if decay else gradient


class ParameterGroup:
    """Parameters with their own options, used like a dict.

    `group["lr"] = 1e-4` changes the learning rate without tracing again; another option is part of
    a kiln.jit function's key, so changing it causes another trace.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
    >>> optimizer.param_groups[0].lr
    0.1
    """

    _kiln_watched: Tuple[str, ...] = ("params", "_lr", "_wide_lr", "options")

    def __init__(self, params: List[Tensor], options: Dict[str, Any]) -> None:
        self.params = params
        self.options = {name: value for name, value in options.items() if name != "lr"}
        self.initial_lr: Optional[float] = None  # the rate that a scheduler starts from
        self.lr = options["lr"]

    @property
    def lr(self) -> Any:
        """The learning rate. Inside kiln.jit, the tensor that holds it.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> optimizer.param_groups[0].lr
        0.1
        """
        return self._lr if mode.trace is not None else self._lr_number

    @lr.setter
    def lr(self, value: float) -> None:
        if mode.trace is not None:
            raise TraceError("the learning rate is set inside kiln.jit; set it between the calls")
        value = float(value)
        if not value >= 0:
            raise InvalidArgument(f"a learning rate of {value}; it must be 0 or more")
        # Also kept as a number: reading it between steps must not wait for the device.
        self._lr_number = value
        self._lr = Tensor(np.float32(value))
        self._wide_lr = Tensor(np.float64(value))  # for float64 parameters

    def __getitem__(self, name: str) -> Any:
        if name in ("params", "lr"):
            return getattr(self, name)
        return self.options[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "lr":
            self.lr = value
        elif name in self.options:
            self.options[name] = value
        else:
            raise NotFound(f"unknown option {name!r}; use one of lr, {', '.join(self.options)}")

    def __contains__(self, name: object) -> bool:
        return name in ("params", "lr") or name in self.options

    def __iter__(self) -> Iterator[str]:
        return iter(("params", "lr", *self.options))

    def keys(self) -> List[str]:
        """Returns the options' names, and "params".

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> sorted(optimizer.param_groups[0].keys())
        ['dampening', 'lr', 'maximize', 'momentum', 'nesterov', 'params', 'weight_decay']
        """
        return list(self)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={self[name]!r}" for name in self if name != "params")
        return f"ParameterGroup({len(self.params)} parameters, {options})"


class Optimizer:
    """The base class of the optimizers.

    A subclass names its state in `slots` and updates one parameter in `update`.

    Args:
      params: tensors that require a gradient, or dicts {"params": tensors, "lr": …} whose options
        apply only to those tensors.
      defaults: the options of all others; "lr" is one of them.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
    >>> isinstance(optimizer, kiln.optim.Optimizer)
    True
    """

    _kiln_watched: Tuple[str, ...] = ("param_groups", "_state", "_count")

    def __init__(self, params: Params, defaults: Dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: List[ParameterGroup] = []
        self._state: List[Dict[str, Tensor]] = []  # by parameter, in the order of the groups
        self._count = Tensor(np.float32(0))
        self._of_step: Dict[Any, Tensor] = {}  # made once, for all parameters
        given = list(params)
        if not given:
            raise InvalidArgument("an optimizer needs at least one parameter")
        groups: List[Any] = given if isinstance(given[0], Mapping) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    @property
    def params(self) -> List[Tensor]:
        """All parameters.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> len(optimizer.params)
        1
        """
        return [parameter for group in self.param_groups for parameter in group.params]

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Adds {"params": tensors, "lr": …}; missing options take the defaults.

        Raises InvalidArgument for an unknown or invalid option, for a tensor that does not require
        a gradient, and for a parameter that is in a group already.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> optimizer.add_param_group({"params": [kiln.nn.Parameter(kiln.ones(1))], "lr": 0.01})
        >>> [group.lr for group in optimizer.param_groups]
        [0.1, 0.01]
        """
        if not isinstance(group, Mapping) or "params" not in group:
            raise InvalidArgument('a group of parameters is a dict with "params"')
        tensors = group["params"]
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        options = {**self.defaults, **{n: v for n, v in group.items() if n != "params"}}
        unknown = sorted(set(options) - set(self.defaults))
        if unknown:
            raise InvalidArgument(
                f"{type(self).__name__} has no option {', '.join(unknown)}; use one of "
                f"{', '.join(self.defaults)}")
        self.check(options)
        known = {id(parameter) for parameter in self.params}
        for parameter in tensors:
            if not isinstance(parameter, Tensor) or not parameter.requires_grad:
                raise InvalidArgument(
                    f"an optimizer of {parameter!r:.60}; its parameters must be tensors that "
                    "require a gradient")
            if id(parameter) in known:
                raise InvalidArgument(
                    f"a parameter of shape {parameter.shape} is in two groups")
            known.add(id(parameter))
        made = ParameterGroup(tensors, options)
        self.param_groups.append(made)
        self._state += [
            {slot: self.initial(slot, parameter, made.options) for slot in self.slots(made.options)}
            for parameter in tensors]

    def check(self, options: Mapping[str, Any]) -> None:
        """Raises InvalidArgument for invalid options."""

    def slots(self, options: Mapping[str, Any]) -> Tuple[str, ...]:
        """Returns the names of the state tensors of a parameter."""
        return ()

    def initial(self, slot: str, parameter: Tensor, options: Mapping[str, Any]) -> Tensor:
        """Returns the initial value of a slot; here zeros of the parameter's shape."""
        return zeros_like(parameter)

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor], lr: Tensor,
               count: Tensor, options: Mapping[str, Any]) -> None:
        """Assigns one parameter and its state. With "maximize" the gradient is already negated.

        `lr` and `count` (the number of steps including this one) are scalars on the device,
        float32, except that `lr` is float64 for a float64 parameter.
        """
        raise NotImplementedError

    @property
    def lr(self) -> Any:
        """The first group's learning rate; setting it sets those of all groups.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> optimizer.lr = 0.01
        >>> optimizer.lr
        0.01
        """
        return self.param_groups[0].lr

    @lr.setter
    def lr(self, value: float) -> None:
        for group in self.param_groups:
            group.lr = value

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops all gradients.

        >>> w = kiln.nn.Parameter(kiln.ones(2))
        >>> w.sum().backward()
        >>> kiln.optim.SGD([w], lr=0.1).zero_grad()
        >>> w.grad is None
        True
        """
        for parameter in self.params:
            parameter.grad = None

    def step(self, only_if: Optional[Tensor] = None) -> None:
        """Updates the parameters by their gradients; those without a gradient do not change.

        If `only_if`, a bool scalar on the device, is false, neither parameters nor state change.
        Outside of kiln.jit this also starts the computation, in one program with other tensors that
        are still referenced, such as the loss.

        >>> w = kiln.nn.Parameter(kiln.ones(2))
        >>> optimizer = kiln.optim.SGD([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> print(w)
        tensor([0.9, 0.9], dtype=float32, requires_grad=True)
        """
        with no_grad():
            changing = self._changing() if only_if is not None else []
            # A program cannot branch on a value: it computes everything, and reverts it if the
            # value is false.
            before = [snapshot(tensor) for tensor in changing]
            self._update_all()
            for tensor, old in zip(changing, before):
                assert only_if is not None
                tensor.assign(tensor.where(beside(only_if, tensor), old))
        if mode.trace is None:
            # Gradients have been used, and most are dropped unread.
            gradients = {id(parameter.grad) for parameter in self.params}
            realize.realize(self.params, without=gradients)

    def _once(self, key: Any, make: Callable[[], Tensor]) -> Tensor:
        """Returns the result of `make`, called once per step for all parameters with this key."""
        found = self._of_step.get(key)
        if found is None:
            found = self._of_step[key] = make()
        return found

    def _update_all(self) -> None:
        own = type(self).update.__module__.startswith(_OPTIMIZERS)
        try:
            with one_source() if own else contextlib.nullcontext():
                self._update_each()
        finally:
            self._of_step.clear()  # tensors kept here would be computed as results

    def _update_each(self) -> None:
        self._count.assign(self._count + 1)
        states = iter(self._state)
        for group in self.param_groups:
            for parameter, state in zip(group.params, states):
                if parameter.grad is not None:
                    gradient = parameter.grad.detach()
                    if group.options.get("maximize"):
                        gradient = -gradient
                    lr = group._wide_lr if parameter.dtype == dtypes.float64 else group._lr
                    self.update(parameter, gradient, state, lr, self._count, group.options)

    def _changing(self) -> List[Tensor]:
        tensors = [self._count]
        for parameter, state in zip(self.params, self._state):
            if parameter.grad is not None:
                tensors += [parameter, *state.values()]
        return tensors

    def named_state(self) -> Iterator[Tuple[str, Tensor]]:
        """Yields the state of each parameter, with its names in state_dict(); see kiln.shard.

        >>> weights = [kiln.nn.Parameter(kiln.ones(2))]
        >>> [name for name, _ in kiln.optim.SGD(weights, lr=0.1, momentum=0.9).named_state()]
        ['state.0.momentum_buffer']
        """
        for i, state in enumerate(self._state):
            for slot, tensor in state.items():
                yield f"state.{i}.{slot}", tensor

    def state_dict(self) -> Dict[str, Any]:
        """Returns learning rates and state as a flat dict, which kiln.save accepts.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> sorted(optimizer.state_dict())
        ['param_groups.0.lr', 'step']
        """
        result: Dict[str, Any] = {"step": self._count.detach()}
        for i, group in enumerate(self.param_groups):
            result[f"param_groups.{i}.lr"] = np.float64(group._lr_number)
        result.update({name: tensor.detach() for name, tensor in self.named_state()})
        return result

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state_dict(). Raises NotFound if it is another optimizer's, and
        InvalidArgument if shapes differ.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> optimizer.load_state_dict(optimizer.state_dict())
        """
        mine = dict(self.named_state())
        mine["step"] = self._count
        rates = [f"param_groups.{i}.lr" for i in range(len(self.param_groups))]
        missing = [name for name in [*mine, *rates] if name not in state]
        unexpected = [name for name in state if name not in mine and name not in rates]
        if missing or unexpected:
            raise NotFound(
                f"the state does not fit {type(self).__name__}; check that it was saved by the "
                f"same optimizer and for the same parameters. Missing {missing[:4]}, unexpected "
                f"{unexpected[:4]}")
        for name, tensor in mine.items():
            value = state[name]
            value = value.detach() if isinstance(value, Tensor) else Tensor(value)
            if value.shape != tensor.shape:
                raise InvalidArgument(
                    f"{name} has shape {tensor.shape}, but the state has {value.shape}")
            tensor.assign(value.cast(tensor.dtype))
        for group, name in zip(self.param_groups, rates):
            group.lr = float(np.asarray(state[name]))

    def __repr__(self) -> str:
        groups = "\n".join(f"  {group!r}" for group in self.param_groups)
        return f"{type(self).__name__}(\n{groups}\n)"
