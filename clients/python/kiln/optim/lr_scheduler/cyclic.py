"""Cyclic learning rates."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from kiln._basics.errors import InvalidArgument
from kiln.optim.lr_scheduler.scheduler import LRScheduler
from kiln.optim.optimizer import Optimizer

Rates = Union[float, Sequence[float]]

# The height of a peak, as a fraction of the way to max_lr, by the cycle's number (from 1) and step.
_HEIGHTS: Dict[str, Callable[[int, int, float], float]] = {
    "triangular": lambda cycle, step, gamma: 1.0,
    "triangular2": lambda cycle, step, gamma: 1 / 2.0 ** (cycle - 1),
    "exp_range": lambda cycle, step, gamma: gamma**step,
}


class CyclicLR(LRScheduler):
    """Rises from base_lr to max_lr in step_size_up steps, falls in step_size_down. (Smith, 2017.)

    `mode` is "triangular", "triangular2" (half as high in each cycle) or "exp_range" (the height is
    gamma^step). `scale_fn` replaces it: a function of the cycle's number or, with `scale_mode`
    "iterations", of the step. Unlike in PyTorch, the momentum does not cycle. Raises
    InvalidArgument for other arguments.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, step_size_up=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(optimizer.lr, 4))
    ...     scheduler.step()
    >>> rates
    [0.1, 0.3, 0.5, 0.3]
    """

    def __init__(self, optimizer: Optimizer, base_lr: Rates, max_lr: Rates,
                 step_size_up: int = 2000, step_size_down: Optional[int] = None,
                 mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Optional[Callable[[float], float]] = None, scale_mode: str = "cycle",
                 cycle_momentum: bool = False, last_epoch: int = -1) -> None:
        if cycle_momentum:
            raise InvalidArgument("CyclicLR with cycle_momentum is not supported; set "
                                  "cycle_momentum=False")
        if scale_fn is None and mode not in _HEIGHTS:
            raise InvalidArgument(
                f'CyclicLR\'s mode is {mode!r}; it must be "triangular", "triangular2" or '
                '"exp_range", or a scale_fn must be given')
        if scale_mode not in ("cycle", "iterations"):
            raise InvalidArgument(
                f'CyclicLR\'s scale_mode is {scale_mode!r}; it must be "cycle" or "iterations"')
        self.up = step_size_up
        self.down = step_size_up if step_size_down is None else step_size_down
        if self.up < 1 or self.down < 1:
            raise InvalidArgument(
                f"CyclicLR with {self.up} steps up and {self.down} down; each must be at least 1")
        self.mode, self.gamma, self.scale_fn, self.scale_mode = mode, gamma, scale_fn, scale_mode
        self.low = _for_each(base_lr, optimizer, "base_lr")
        self.high = _for_each(max_lr, optimizer, "max_lr")
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Interpolates between the group's two rates."""
        whole = self.up + self.down
        cycle, place = 1 + epoch // whole, epoch % whole
        share = place / self.up if place <= self.up else (whole - place) / self.down
        return self.low[group] + (self.high[group] - self.low[group]) * share * float(
            self._height(cycle, epoch))

    def _height(self, cycle: int, step: int) -> Any:
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else step)
        return _HEIGHTS[self.mode](cycle, step, self.gamma)


def _for_each(rates: Rates, optimizer: Optimizer, name: str) -> List[float]:
    groups = len(optimizer.param_groups)
    given = [float(rates)] * groups if isinstance(rates, (int, float)) else list(rates)
    if len(given) != groups:
        raise InvalidArgument(
            f"CyclicLR with {len(given)} numbers as {name}; there are {groups} groups of "
            "parameters, it needs one number or one for each")
    return given


__all__ = ["CyclicLR"]
