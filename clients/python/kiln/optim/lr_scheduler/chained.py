"""Several schedules of the learning rate at once."""

from typing import Sequence

from kiln._basics.errors import InvalidArgument
from kiln.optim.lr_scheduler.scheduler import LRScheduler


class ChainedScheduler(LRScheduler):
    """Applies several schedulers at once: their factors are multiplied.

    Each scheduler's factor is its rate divided by its initial rate. Call only the step() of this
    one. Raises InvalidArgument for no schedulers, and for schedulers of different optimizers.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> half = kiln.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> decay = kiln.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = kiln.optim.lr_scheduler.ChainedScheduler([half, decay])
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(optimizer.lr)
    ...     scheduler.step()
    >>> rates
    [0.5, 0.25, 0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler]) -> None:
        if not schedulers:
            raise InvalidArgument("a ChainedScheduler of no schedulers; it needs at least one")
        optimizer = schedulers[0].optimizer
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise InvalidArgument("a ChainedScheduler of schedulers of several optimizers; use "
                                  "schedulers of one optimizer")
        self.schedulers = list(schedulers)
        super().__init__(optimizer)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Returns base_lr times the product of the factors."""
        result = base_lr
        for scheduler in self.schedulers:
            result *= scheduler.rate(base_lr, epoch, group) / base_lr if base_lr else 0.0
        return result


__all__ = ["ChainedScheduler"]
