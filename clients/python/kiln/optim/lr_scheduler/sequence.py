"""Schedulers one after the other."""

import bisect
from typing import Sequence

from kiln._basics.errors import InvalidArgument
from kiln.optim.lr_scheduler.scheduler import LRScheduler
from kiln.optim.optimizer import Optimizer


class SequentialLR(LRScheduler):
    """Uses one scheduler after the other: at each milestone the next one begins, from epoch 0.

        warmup = LinearLR(optimizer, 0.01, total_iters=100)
        decay = CosineAnnealingLR(optimizer, 900)
        scheduler = SequentialLR(optimizer, [warmup, decay], [100])

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> warm = kiln.optim.lr_scheduler.LinearLR(optimizer, total_iters=2)
    >>> rest = kiln.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = kiln.optim.lr_scheduler.SequentialLR(optimizer, [warm, rest], milestones=[2])
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.25
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler],
                 milestones: Sequence[int], last_epoch: int = -1) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise InvalidArgument(
                f"{len(schedulers)} schedulers and {len(milestones)} milestones; there must be one "
                "milestone between each two")
        self.schedulers = list(schedulers)
        self.milestones = list(milestones)
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Returns the rate of the epoch's scheduler."""
        number = bisect.bisect_right(self.milestones, epoch)
        begin = self.milestones[number - 1] if number else 0
        return self.schedulers[number].rate(base_lr, epoch - begin, group)
