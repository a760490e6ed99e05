"""torch.optim.Optimizer, and the optimizers of kiln.optim with PyTorch's groups and state."""

from collections import defaultdict
from typing import Any, Callable, Dict, List, Mapping, Optional

import numpy as np

from kiln._basics import dtypes
from kiln._basics.source import one_source
from kiln._graph import realize
from kiln._graph.gradient_mode import enable_grad, no_grad
from kiln._graph.node import mode
from kiln.tensor import Tensor as KilnTensor
from kiln.torch._tensor import Removable, adopt, convert

# Arguments of PyTorch's optimizers that choose among its own implementations.
IGNORED = ("foreach", "fused", "capturable", "differentiable")


class ParameterGroup(Dict[str, Any]):
    """A dict of Parameters and options. Kiln's schedules read and set these attributes."""

    @property
    def lr(self) -> Any:
        """The learning rate."""
        return self["lr"]

    @lr.setter
    def lr(self, value: Any) -> None:
        self["lr"] = value

    @property
    def initial_lr(self) -> Any:
        """The rate that a schedule starts from."""
        return self.get("initial_lr")

    @initial_lr.setter
    def initial_lr(self, value: Any) -> None:
        self["initial_lr"] = value


class Optimizer:
    """The base class of optimizers. Own ones override step(), as in PyTorch.

    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> isinstance(torch.optim.SGD([w], lr=0.1), torch.optim.Optimizer)
    True
    """

    def __init__(self, params: Any, defaults: Dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: Any = defaultdict(dict)
        self.param_groups: List[Any] = []
        self._before: Dict[int, Any] = {}
        self._after: Dict[int, Any] = {}
        if isinstance(params, KilnTensor):
            raise TypeError("params argument given to the optimizer should be an iterable of "
                            "Tensors or dicts, but got a tensor")
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: Any) -> None:
        """Adds {"params": tensors, "lr": …}; missing options take the defaults."""
        given = param_group["params"]
        params = [given] if isinstance(given, KilnTensor) else list(given)
        params = [pair[1] if isinstance(pair, tuple) else pair for pair in params]
        for parameter in params:
            if not isinstance(parameter, KilnTensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is "
                                f"{type(parameter).__name__}")
            if not parameter.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, usual in self.defaults.items():
            if usual is _REQUIRED and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization "
                                 f"parameter {name}")
        known = {id(parameter) for group in self.param_groups for parameter in group["params"]}
        if len({id(parameter) for parameter in params}) < len(params) or any(
                id(parameter) in known for parameter in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(
            ParameterGroup({**self.defaults, **param_group, "params": params}))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops all gradients or, without `set_to_none`, makes them zeros."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none or parameter.grad is None:
                    parameter.grad = None
                else:
                    parameter.grad = parameter.grad.detach() * 0

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Updates the Parameters by their gradients. Subclasses override it."""
        raise NotImplementedError

    def register_step_pre_hook(self, hook: Any) -> Removable:
        """Registers hook(optimizer, args, kwargs), called before step()."""
        return _registered(self._before, hook)

    def register_step_post_hook(self, hook: Any) -> Removable:
        """Registers hook(optimizer, args, kwargs), called after step()."""
        return _registered(self._after, hook)

    def _numbers(self) -> Dict[int, int]:
        params = [parameter for group in self.param_groups for parameter in group["params"]]
        return {id(parameter): i for i, parameter in enumerate(params)}

    def state_dict(self) -> Dict[str, Any]:
        """Returns the state and the groups, with Parameters as numbers."""
        numbers = self._numbers()
        groups = [{**{name: value for name, value in group.items() if name != "params"},
                   "params": [numbers[id(parameter)] for parameter in group["params"]]}
                  for group in self.param_groups]
        state = {numbers[id(parameter)]: dict(values) for parameter, values in self.state.items()
                 if id(parameter) in numbers}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restores a state_dict()."""
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(mine["params"]) != len(other["params"])
               for mine, other in zip(self.param_groups, groups)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the "
                             "size of optimizer's group")
        params = [parameter for group in self.param_groups for parameter in group["params"]]
        numbers = [number for group in groups for number in group["params"]]
        self.state = defaultdict(dict)
        for number, parameter in zip(numbers, params):
            if number in state_dict["state"]:
                self.state[parameter] = {
                    name: _like(value, parameter, name)
                    for name, value in state_dict["state"][number].items()}
        for mine, other in zip(self.param_groups, groups):
            mine.update({name: value for name, value in other.items() if name != "params"})
        self._loaded()

    def _loaded(self) -> None:
        """Called after load_state_dict()."""

    def __getstate__(self) -> Any:
        return dict(vars(self))

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


_REQUIRED = object()
required = _REQUIRED


def _registered(hooks: Dict[int, Any], hook: Any) -> Removable:
    number = max(hooks, default=-1) + 1
    hooks[number] = hook
    return Removable(hooks, number)


def _like(value: Any, parameter: Any, name: str) -> Any:
    if not isinstance(value, KilnTensor):
        return value
    made = convert(value).detach().clone()
    if name != "step" and parameter.dtype.is_float and made.dtype.is_float:
        made = made._cast(parameter.dtype)
    return made


class Rule(Optimizer):
    """An optimizer whose update of one Parameter is that of a class of kiln.optim.

    Parameters that have taken the same steps share the tensor that counts them.
    """

    _rule_class: Any = None

    def __init__(self, params: Any, defaults: Dict[str, Any]) -> None:
        self._rates: Dict[Any, Any] = {}
        rule = self._rule = type(self)._rule_class.__new__(type(self)._rule_class)
        rule._of_step = {}
        rule.defaults = defaults
        super().__init__(params, defaults)

    def add_param_group(self, param_group: Any) -> None:
        """Adds {"params": tensors, "lr": …}; missing options take the defaults."""
        self._rule.check({**self.defaults, **param_group})
        super().add_param_group(param_group)

    def _loaded(self) -> None:
        shared: Dict[float, Any] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state.get(parameter)
                if not state:
                    continue
                # PyTorch's own SGD counts no steps: it has made at least one.
                step = state.get("step", 1.0)
                count = float(step.item() if isinstance(step, KilnTensor) else step)
                state["step"] = shared.setdefault(count, adopt(KilnTensor(np.float32(count))))
                for slot in self._rule.slots(group):
                    if state.get(slot) is None:
                        state[slot] = self._rule.initial(slot, parameter, group)

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Updates the Parameters by their gradients."""
        loss = None
        for hook in list(self._before.values()):
            hook(self, (closure,), {})
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad(), one_source():
            self._update()
        if mode.trace is None:
            params = [parameter for group in self.param_groups for parameter in group["params"]]
            realize.realize(params, without={id(parameter.grad) for parameter in params})
        for hook in list(self._after.values()):
            hook(self, (closure,), {})
        return loss

    def _update(self) -> None:
        moving = [(group, parameter) for group in self.param_groups
                  for parameter in group["params"] if parameter.grad is not None]
        fresh: Any = None
        for group, parameter in moving:
            if not self.state[parameter]:
                if fresh is None:
                    fresh = adopt(KilnTensor(np.float32(0)))
                state = {slot: self._rule.initial(slot, parameter, group)
                         for slot in self._rule.slots(group)}
                self.state[parameter] = {"step": fresh, **state}
        self._advance([parameter for _, parameter in moving])
        # Values that a rule computes once for a step depend on the count of steps.
        shared: Dict[int, Dict[Any, Any]] = {}
        rates, self._rates = self._rates, {}
        try:
            for group, parameter in moving:
                state = self.state[parameter]
                self._rule._of_step = shared.setdefault(id(state["step"]), {})
                gradient = parameter.grad.detach()
                if group.get("maximize"):
                    gradient = -gradient
                self._rule.update(parameter, gradient, state,
                                  self._rate(group["lr"], parameter, rates), state["step"], group)
        finally:
            self._rule._of_step = {}

    def _advance(self, moving: List[Any]) -> None:
        """Counts a step of the Parameters that have a gradient."""
        ids = {id(parameter) for parameter in moving}
        counts = {id(self.state[parameter]["step"]): self.state[parameter]["step"]
                  for parameter in moving}
        left: Dict[int, Any] = {}
        for parameter, state in self.state.items():
            count = state.get("step")
            if id(parameter) not in ids and id(count) in counts:
                state["step"] = left.setdefault(id(count), count.clone())
        for count in counts.values():
            count.assign(count + 1)

    def _rate(self, lr: Any, parameter: Any, before: Dict[Any, Any]) -> Any:
        """Returns a learning rate as a tensor, the last step's if it has not changed."""
        wide = parameter.dtype is dtypes.float64
        key = (id(lr) if isinstance(lr, KilnTensor) else float(lr), wide)
        if key not in self._rates:
            if isinstance(lr, KilnTensor):
                made = convert(lr)._cast(dtypes.float64 if wide else dtypes.float32)
            else:
                number: Any = np.float64(lr) if wide else np.float32(lr)
                made = before[key] if key in before else adopt(KilnTensor(number))
            self._rates[key] = made
        return self._rates[key]


def checked(name: str, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the options without those that choose among PyTorch's own implementations."""
    lr = options.get("lr")
    if not isinstance(lr, KilnTensor) and lr is not None and not lr >= 0:
        raise ValueError(f"Invalid learning rate: {lr}")
    return {key: value for key, value in options.items() if key not in IGNORED}


