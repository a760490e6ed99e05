"""Optimizers that scale each element's step by its past gradients."""

from typing import Any, Dict, Mapping, Tuple

from kiln._array_api.creation import full_like, zeros_like
from kiln.optim._moments import MomentOptimizer, moments
from kiln.optim.optimizer import Optimizer, Params, decayed
from kiln.tensor import Tensor


class Adam(MomentOptimizer):
    """Adam. (Kingma and Ba, 2015; amsgrad: Reddi et al., 2018.)

    >>> weight = kiln.nn.Parameter([1.0, 2.0])
    >>> optimizer = kiln.optim.Adam([weight], lr=0.25)
    >>> (weight * 3).sum().backward()
    >>> optimizer.step()  # a first step is lr long
    >>> weight.tolist()
    [0.75, 1.75]
    """

    _decoupled = False

    def __init__(self, params: Params, lr: float = 1e-3,
                 betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, amsgrad: bool = False, *,
                 maximize: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize})

    def slots(self, options: Mapping[str, Any]) -> Tuple[str, ...]:
        """Adds the largest mean square with amsgrad."""
        return (*super().slots(options), *["max_exp_avg_sq"] * bool(options["amsgrad"]))

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor], lr: Tensor,
               count: Tensor, options: Mapping[str, Any]) -> None:
        """Updates one parameter and its state."""
        first, second = options["betas"]
        value: Tensor = parameter
        if options["weight_decay"] and self._decoupled:
            value = value * (1.0 - (lr * options["weight_decay"]).cast(parameter.dtype))
        else:
            gradient = decayed(gradient, parameter, options)
        moments(gradient, state, options)
        square = state["exp_avg_sq"]
        if options["amsgrad"]:
            square = state["max_exp_avg_sq"].assign(state["max_exp_avg_sq"].maximum(square))
        dtype = parameter.dtype
        size = self._once(("size", id(lr), first, dtype), lambda: (
            lr / self._correction(first, count)).cast(dtype))
        scale = self._once(("scale", second, dtype), lambda: (
            self._correction(second, count).sqrt().cast(dtype)))
        parameter.assign(
            value - state["exp_avg"] * size / (square.sqrt() / scale + options["eps"]))


class AdamW(Adam):
    """Adam with decoupled weight decay. (Loshchilov and Hutter, 2019.)

    >>> w = kiln.nn.Parameter(kiln.ones(2))
    >>> optimizer = kiln.optim.AdamW([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> print(w)
    tensor([0.899, 0.899], dtype=float32, requires_grad=True)
    """

    _decoupled = True

    def __init__(self, params: Params, lr: float = 1e-3,
                 betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *,
                 maximize: bool = False) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class LAMB(MomentOptimizer):
    """Adam's direction, scaled to the parameter's norm, for large batches. (You et al., 2020.)

    The ratio of norms is 1 if either norm is 0.

    >>> w = kiln.nn.Parameter(kiln.ones(2))
    >>> optimizer = kiln.optim.LAMB([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> print(w)
    tensor([0.9, 0.9], dtype=float32, requires_grad=True)
    """

    def __init__(self, params: Params, lr: float = 1e-3,
                 betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-6,
                 weight_decay: float = 0.0) -> None:
        super().__init__(params, {
            "lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay})

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor], lr: Tensor,
               count: Tensor, options: Mapping[str, Any]) -> None:
        """Updates one parameter and its state."""
        first, second = options["betas"]
        moments(gradient, state, options)
        mean = state["exp_avg"] / self._correction(first, count).cast(parameter.dtype)
        square = state["exp_avg_sq"] / self._correction(second, count).cast(parameter.dtype)
        direction = mean / (square.sqrt() + options["eps"])
        if options["weight_decay"]:
            direction = direction + parameter * options["weight_decay"]
        length, wanted = (direction.square().sum().sqrt(), parameter.square().sum().sqrt())
        usable = (length > 0).logical_and(wanted > 0)
        # The inner `where` keeps the quotient finite: both sides of the outer one are computed.
        ratio = (wanted / length.where(usable, 1.0)).where(usable, 1.0)
        parameter.assign(parameter - direction * (ratio * lr.cast(parameter.dtype)))


class RMSprop(Optimizer):
    """Divides gradients by their root mean square. (Tieleman and Hinton, 2012.)

    >>> w = kiln.nn.Parameter(kiln.ones(2))
    >>> optimizer = kiln.optim.RMSprop([w], lr=0.05)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> print(w)
    tensor([0.5, 0.5], dtype=float32, requires_grad=True)
    """

    def __init__(self, params: Params, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum: float = 0.0,
                 centered: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay,
            "momentum": momentum, "centered": centered})

    def slots(self, options: Mapping[str, Any]) -> Tuple[str, ...]:
        """Returns the mean square, the mean if centered, and the velocity with momentum."""
        return ("square_avg", *["grad_avg"] * bool(options["centered"]),
                *["momentum_buffer"] * bool(options["momentum"]))

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor], lr: Tensor,
               count: Tensor, options: Mapping[str, Any]) -> None:
        """Updates one parameter and its state."""
        alpha = options["alpha"]
        gradient = decayed(gradient, parameter, options)
        square = state["square_avg"]
        square.assign(square * alpha + gradient * gradient * (1 - alpha))
        spread: Tensor = square
        if options["centered"]:
            mean = state["grad_avg"]
            mean.assign(mean * alpha + gradient * (1 - alpha))
            spread = square - mean.square()
        step = gradient / (spread.sqrt() + options["eps"])
        if options["momentum"]:
            velocity = state["momentum_buffer"]
            step = velocity.assign(velocity * options["momentum"] + step)
        parameter.assign(parameter - step * lr.cast(parameter.dtype))


class Adagrad(Optimizer):
    """Divides gradients by the root of the sum of their squares. (Duchi et al., 2011.)

    >>> w = kiln.nn.Parameter(kiln.ones(2))
    >>> optimizer = kiln.optim.Adagrad([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> print(w)
    tensor([0.9, 0.9], dtype=float32, requires_grad=True)
    """

    def __init__(self, params: Params, lr: float = 1e-2, lr_decay: float = 0.0,
                 weight_decay: float = 0.0, initial_accumulator_value: float = 0.0,
                 eps: float = 1e-10) -> None:
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "eps": eps})

    def slots(self, options: Mapping[str, Any]) -> Tuple[str, ...]:
        """Returns the sum of squares."""
        return ("sum",)

    def initial(self, slot: str, parameter: Tensor, options: Mapping[str, Any]) -> Tensor:
        """Returns a tensor filled with initial_accumulator_value."""
        value = options["initial_accumulator_value"]
        return full_like(parameter, value) if value else zeros_like(parameter)

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor], lr: Tensor,
               count: Tensor, options: Mapping[str, Any]) -> None:
        """Updates one parameter and its state."""
        gradient = decayed(gradient, parameter, options)
        total = state["sum"]
        total.assign(total + gradient * gradient)
        size = lr / ((count - 1.0) * options["lr_decay"] + 1.0)
        parameter.assign(
            parameter - gradient * size.cast(parameter.dtype) / (total.sqrt() + options["eps"]))
