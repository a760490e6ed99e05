"""Variants of Adam: Nesterov's momentum, a rectified step, the largest gradient; and Adadelta."""

from typing import Any, Dict, Mapping, Tuple

from kiln._array_api.creation import full, zeros_like
from kiln._basics.errors import InvalidArgument
from kiln.optim._moments import MomentOptimizer, moments
from kiln.optim.optimizer import Optimizer, Params, decayed
from kiln.tensor import Tensor


class NAdam(MomentOptimizer):
    """Adam with Nesterov's momentum. (Dozat, 2016; as PyTorch from version 2 on.)

    >>> w = kiln.nn.Parameter(kiln.ones(2))
    >>> optimizer = kiln.optim.NAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> print(w)
    tensor([0.8944, 0.8944], dtype=float32, requires_grad=True)
    """

    def __init__(self, params: Params, lr: float = 2e-3,
                 betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum_decay: float = 4e-3, *,
                 maximize: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "maximize": maximize})

    def slots(self, options: Mapping[str, Any]) -> Tuple[str, ...]:
        """Adds the product of all momentums."""
        return (*super().slots(options), "mu_product")

    def initial(self, slot: str, parameter: Tensor, options: Mapping[str, Any]) -> Tensor:
        """Returns zeros; for the product of momentums the scalar 1."""
        if slot == "mu_product":
            return full((), 1.0, dtype="float64")
        return zeros_like(parameter)

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor], lr: Tensor,
               count: Tensor, options: Mapping[str, Any]) -> None:
        """Updates one parameter and its state."""
        first, second = options["betas"]
        gradient = decayed(gradient, parameter, options)
        step = count.double()
        decay = options["momentum_decay"]
        now, later = (first * (1.0 - 0.5 * 0.96 ** (at * decay)) for at in (step, step + 1.0))
        product = state["mu_product"]
        product.assign(product * now)
        moments(gradient, state, options)
        scale = (state["exp_avg_sq"] / self._correction(second, count).cast(parameter.dtype)).sqrt()
        scale = scale + options["eps"]
        of_gradient = lr * (1.0 - now) / (1.0 - product)
        of_mean = lr * later / (1.0 - product * later)
        parameter.assign(parameter - (gradient * of_gradient.cast(parameter.dtype)
                                      + state["exp_avg"] * of_mean.cast(parameter.dtype)) / scale)


class RAdam(MomentOptimizer):
    """Adam that steps like SGD while there are too few gradients to estimate their variance.

    (Liu et al., 2020.)

    >>> w = kiln.nn.Parameter(kiln.ones(2))
    >>> optimizer = kiln.optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> print(w)
    tensor([0.8, 0.8], dtype=float32, requires_grad=True)
    """

    def __init__(self, params: Params, lr: float = 1e-3,
                 betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, *, maximize: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize})

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor], lr: Tensor,
               count: Tensor, options: Mapping[str, Any]) -> None:
        """Updates one parameter and its state."""
        first, second = options["betas"]
        gradient = decayed(gradient, parameter, options)
        moments(gradient, state, options)
        size = lr / self._correction(first, count)
        bias = self._correction(second, count)
        longest = 2.0 / (1.0 - second) - 1.0
        # The number of gradients in the mean square, effectively; its variance is known above 5.
        length = longest - 2.0 * count.double() * (1.0 - bias) / bias
        known = length > 5.0
        # `where` computes both sides, so the square root below must not be of a negative number on
        # either.
        safe = length.where(known, 6.0)
        rectified = ((safe - 4.0) * (safe - 2.0) * longest
                     / (safe * ((longest - 4.0) * (longest - 2.0)))).sqrt()
        scale = (rectified * bias.sqrt()).cast(parameter.dtype) / (
            state["exp_avg_sq"].sqrt() + options["eps"])
        parameter.assign(
            parameter - state["exp_avg"] * size.cast(parameter.dtype) * scale.where(known, 1.0))


class Adamax(MomentOptimizer):
    """Adam with a decaying maximum of the gradient in place of the mean square.

    (Kingma and Ba, 2015.)

    >>> w = kiln.nn.Parameter(kiln.ones(2))
    >>> optimizer = kiln.optim.Adamax([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> print(w)
    tensor([0.9, 0.9], dtype=float32, requires_grad=True)
    """

    def __init__(self, params: Params, lr: float = 2e-3,
                 betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, *, maximize: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize})

    def slots(self, options: Mapping[str, Any]) -> Tuple[str, ...]:
        """Returns the moving average of the gradient, and the decaying maximum."""
        return ("exp_avg", "exp_inf")

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor], lr: Tensor,
               count: Tensor, options: Mapping[str, Any]) -> None:
        """Updates one parameter and its state."""
        first, second = options["betas"]
        gradient = decayed(gradient, parameter, options)
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.assign(mean * first + gradient * (1 - first))
        largest.assign((largest * second).maximum(gradient.abs() + options["eps"]))
        size = (lr / self._correction(first, count)).cast(parameter.dtype)
        parameter.assign(parameter - mean * size / largest)


class Adadelta(Optimizer):
    """Divides gradients by their root mean square, times that of the steps. (Zeiler, 2012.)

    >>> w = kiln.nn.Parameter(kiln.ones(2))
    >>> optimizer = kiln.optim.Adadelta([w], lr=100.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> print(w)
    tensor([0.6838, 0.6838], dtype=float32, requires_grad=True)
    """

    def __init__(self, params: Params, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0.0, *, maximize: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize})

    def check(self, options: Mapping[str, Any]) -> None:
        """Raises InvalidArgument unless rho is in [0, 1]."""
        if not 0 <= options["rho"] <= 1:
            raise InvalidArgument(f"a rho of {options['rho']}; it must be in [0, 1]")

    def slots(self, options: Mapping[str, Any]) -> Tuple[str, ...]:
        """Returns the mean squares of gradients and of steps."""
        return ("square_avg", "acc_delta")

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor], lr: Tensor,
               count: Tensor, options: Mapping[str, Any]) -> None:
        """Updates one parameter and its state."""
        rho, eps = options["rho"], options["eps"]
        gradient = decayed(gradient, parameter, options)
        square, steps = state["square_avg"], state["acc_delta"]
        square.assign(square * rho + gradient * gradient * (1 - rho))
        step = gradient * (steps + eps).sqrt() / (square + eps).sqrt()
        steps.assign(steps * rho + step * step * (1 - rho))
        parameter.assign(parameter - step * lr.cast(parameter.dtype))
