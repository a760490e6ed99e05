"""Optimizers, as PyTorch's. Their state and the learning rate are tensors on the device.

So a step inside kiln.jit needs no message of its own, and a learning rate that changes does not
trace anything again.
"""

from typing import Any, Dict, Iterable, List, Mapping, Tuple

import numpy as np

from kiln import _realize
from kiln._errors import InvalidArgument, NotFound, TraceError
from kiln._node import mode
from kiln.autograd import _recent_outputs, no_grad
from kiln.creation import zeros_like
from kiln.tensor import Tensor


class Optimizer:
    """Base of the optimizers: `update` gives each parameter its new value."""

    _kiln_watched: Tuple[str, ...] = ("params", "_lr", "_options", "_state")

    def __init__(self, params: Iterable[Tensor], lr: float, slots: Tuple[str, ...],
                 options: Dict[str, Any]) -> None:
        self.params: List[Tensor] = list(params)
        if not self.params:
            raise InvalidArgument("an optimizer without parameters")
        for parameter in self.params:
            if not isinstance(parameter, Tensor) or not parameter.requires_grad:
                raise InvalidArgument(
                    f"an optimizer of {parameter!r:.60}; its parameters must be tensors that "
                    "require a gradient")
        self._options = options
        self._state: Dict[str, List[Tensor]] = {
            slot: [zeros_like(parameter) for parameter in self.params] for slot in slots}
        self._state["step"] = [Tensor(np.float32(0))]
        self.lr = lr

    @property
    def lr(self) -> Any:
        """The learning rate. Inside kiln.jit, the tensor that holds it."""
        return self._lr if mode.trace is not None else self._lr_number

    @lr.setter
    def lr(self, value: float) -> None:
        if mode.trace is not None:
            raise TraceError("the learning rate is set inside kiln.jit; set it between the calls")
        if value < 0:
            raise InvalidArgument(f"a learning rate of {value}")
        self._lr_number = float(value)
        self._lr = Tensor(np.float32(value))

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for parameter in self.params:
            parameter.grad = None

    def step(self) -> None:
        """Changes the parameters by their gradients.

        Outside of kiln.jit this also computes, in one program with the tensor that backward() was
        called on.
        """
        with no_grad():
            count = self._state["step"][0]
            count.assign(count + 1)
            for i, parameter in enumerate(self.params):
                if parameter.grad is not None:
                    state = {slot: tensors[i] for slot, tensors in self._state.items()
                             if slot != "step"}
                    self.update(parameter, parameter.grad, state, count)
        if mode.trace is None:
            _realize.realize([*self.params, *_recent_outputs.take()])

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor],
               count: Tensor) -> None:
        """Assigns one parameter and its state; `count` is the number of steps with this one."""
        raise NotImplementedError

    def state_dict(self) -> Dict[str, Any]:
        """Learning rate and state, flat, so that kiln.save takes it."""
        result: Dict[str, Any] = {"lr": np.float64(self._lr_number)}
        for slot, tensors in self._state.items():
            for i, tensor in enumerate(tensors):
                result[f"{slot}.{i}"] = tensor.detach()
        return result

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state_dict()."""
        for slot, tensors in self._state.items():
            for i, tensor in enumerate(tensors):
                name = f"{slot}.{i}"
                if name not in state:
                    raise NotFound(f"the state has no {name}; was it saved by another optimizer?")
                value = state[name]
                tensor.assign(value if isinstance(value, Tensor) else Tensor(value))
        self.lr = float(np.asarray(state["lr"]))


class SGD(Optimizer):
    """Stochastic gradient descent. (Momentum: Sutskever et al., 2013.)"""

    def __init__(self, params: Iterable[Tensor], lr: float = 1e-3, momentum: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False) -> None:
        if nesterov and momentum <= 0:
            raise InvalidArgument("nesterov needs a momentum above 0")
        options = {"momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(params, lr, ("velocity",) if momentum else (), options)

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor],
               count: Tensor) -> None:
        """One parameter."""
        options = self._options
        if options["weight_decay"]:
            gradient = gradient + parameter * options["weight_decay"]
        if options["momentum"]:
            velocity = state["velocity"]
            velocity.assign(velocity * options["momentum"] + gradient)
            gradient = gradient + velocity * options["momentum"] if options["nesterov"] else (
                velocity)
        parameter.assign(parameter - gradient * self._lr.cast(parameter.dtype))


class Adam(Optimizer):
    """Adam. (Kingma and Ba, 2015.)"""

    _decoupled = False

    def __init__(self, params: Iterable[Tensor], lr: float = 1e-3,
                 betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0) -> None:
        if not (0 <= betas[0] < 1 and 0 <= betas[1] < 1):
            raise InvalidArgument(f"betas {betas}; each must be in [0, 1)")
        options = {"betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, lr, ("mean", "square"), options)

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor],
               count: Tensor) -> None:
        """One parameter."""
        first, second = self._options["betas"]
        decay = self._options["weight_decay"]
        lr = self._lr
        value: Tensor = parameter
        if decay and self._decoupled:
            value = value * (1.0 - lr * decay).cast(parameter.dtype)
        elif decay:
            gradient = gradient + value * decay
        mean, square = state["mean"], state["square"]
        mean.assign(mean * first + gradient * (1 - first))
        square.assign(square * second + gradient * gradient * (1 - second))
        size = (lr / (1.0 - first**count)).cast(parameter.dtype)
        scale = (1.0 - second**count).sqrt().cast(parameter.dtype)
        parameter.assign(value - mean * size / (square.sqrt() / scale + self._options["eps"]))


class AdamW(Adam):
    """Adam with decoupled weight decay. (Loshchilov and Hutter, 2019.)"""

    _decoupled = True

    def __init__(self, params: Iterable[Tensor], lr: float = 1e-3,
                 betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)


__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
