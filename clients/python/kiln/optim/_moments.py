"""The base of optimizers that keep moving averages of the gradient."""

from typing import Any, Dict, Mapping, Tuple

from kiln._basics.errors import InvalidArgument
from kiln.optim.optimizer import Optimizer
from kiln.tensor import Tensor


def _check_betas(options: Mapping[str, Any]) -> None:
    """Raises InvalidArgument unless betas are two numbers in [0, 1)."""
    betas = tuple(options["betas"])
    if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        raise InvalidArgument(f"betas {betas}; there must be two, each in [0, 1)")


def moments(gradient: Tensor, state: Dict[str, Tensor], options: Mapping[str, Any]) -> None:
    """Updates the averages of the gradient and of its square."""
    first, second = options["betas"]
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    mean.assign(mean * first + gradient * (1 - first))
    square.assign(square * second + gradient * gradient * (1 - second))


class MomentOptimizer(Optimizer):
    """An optimizer with two betas and, by default, two moving averages."""

    def check(self, options: Mapping[str, Any]) -> None:
        """Raises InvalidArgument unless betas are in [0, 1)."""
        _check_betas(options)

    def slots(self, options: Mapping[str, Any]) -> Tuple[str, ...]:
        """Returns the moving averages of the gradient and of its square."""
        return ("exp_avg", "exp_avg_sq")

    def _correction(self, beta: float, count: Tensor) -> Tensor:
        """Returns 1 - beta^count, the divisor of a moving average that started from 0.

        In float64: in float32 the difference would keep only five digits.
        """
        return self._once(("correction", beta), lambda: 1.0 - beta ** count.double())
