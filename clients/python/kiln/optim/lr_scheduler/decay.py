"""Learning rates that fall from the initial one, or rise to it."""

import bisect
from typing import Callable, Sequence, Union

from kiln._basics.errors import InvalidArgument
from kiln.optim.lr_scheduler.scheduler import LRScheduler
from kiln.optim.optimizer import Optimizer


class LambdaLR(LRScheduler):
    """Multiplies the initial rate by a function of the epoch, one for all groups or one for each.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.2
    """

    def __init__(self, optimizer: Optimizer,
                 lr_lambda: Union[Callable[[int], float], Sequence[Callable[[int], float]]],
                 last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise InvalidArgument(f"{len(self.lr_lambdas)} functions for {count} groups")
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Returns base_lr times the function."""
        return base_lr * self.lr_lambdas[group](epoch)


class StepLR(LRScheduler):
    """Multiplies the rate by gamma every step_size epochs.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.01
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Returns base_lr times a power of gamma."""
        return base_lr * self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Multiplies the rate by gamma at each milestone.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 3])
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.01
    """

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.milestones = sorted(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Returns base_lr times a power of gamma."""
        return base_lr * self.gamma ** bisect.bisect_right(self.milestones, epoch)


class ExponentialLR(LRScheduler):
    """Multiplies the rate by gamma every epoch.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.0625
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Returns base_lr times a power of gamma."""
        return float(base_lr * self.gamma**epoch)


class ConstantLR(LRScheduler):
    """Multiplies the rate by factor for total_iters epochs.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=10)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.5
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Returns base_lr, times the factor in the first epochs."""
        return base_lr * (self.factor if epoch < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """Moves the factor linearly from start_factor to end_factor in total_iters epochs: a warmup.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.LinearLR(optimizer, total_iters=8)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.6667
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3,
                 end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Returns base_lr times the factor."""
        share = min(epoch, self.total_iters) / self.total_iters
        return base_lr * (self.start_factor + (self.end_factor - self.start_factor) * share)


class PolynomialLR(LRScheduler):
    """Falls to 0 in total_iters epochs, by a power of the remaining fraction.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=8)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.5
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0,
                 last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Returns base_lr times the power."""
        left = 1 - min(epoch, self.total_iters) / self.total_iters
        return float(base_lr * left**self.power)
