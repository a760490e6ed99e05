"""Stochastic gradient descent."""

from typing import Any, Dict, Mapping, Tuple

from kiln._basics.errors import InvalidArgument
from kiln.optim.optimizer import Optimizer, Params, decayed
from kiln.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent, or ascent with maximize. (Momentum: Sutskever et al., 2013.)

    Raises InvalidArgument for nesterov without a momentum above 0, or with dampening.

    >>> weight = kiln.nn.Parameter([1.0, 2.0])
    >>> optimizer = kiln.optim.SGD([weight], lr=0.5)
    >>> weight.sum().backward()
    >>> optimizer.step()
    >>> weight.tolist()
    [0.5, 1.5]
    """

    def __init__(self, params: Params, lr: float = 1e-3, momentum: float = 0.0,
                 dampening: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, *, maximize: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize})

    def check(self, options: Mapping[str, Any]) -> None:
        """Raises InvalidArgument for nesterov without momentum or with dampening."""
        if options["nesterov"] and (options["momentum"] <= 0 or options["dampening"] != 0):
            raise InvalidArgument("nesterov needs a momentum above 0 and no dampening")

    def slots(self, options: Mapping[str, Any]) -> Tuple[str, ...]:
        """Returns the velocity, with momentum."""
        return ("momentum_buffer",) if options["momentum"] else ()

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor], lr: Tensor,
               count: Tensor, options: Mapping[str, Any]) -> None:
        """Updates one parameter and its state."""
        gradient = decayed(gradient, parameter, options)
        if options["momentum"]:
            velocity = state["momentum_buffer"]
            added = gradient
            if options["dampening"]:  # the first gradient is not dampened
                added = gradient * (1 - options["dampening"] * (count > 1).cast(gradient.dtype))
            velocity.assign(velocity * options["momentum"] + added)
            gradient = gradient + velocity * options["momentum"] if options["nesterov"] else (
                velocity)
        parameter.assign(parameter - gradient * lr.cast(parameter.dtype))
